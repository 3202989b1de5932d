/* The smallest thing that counts checks. CHECK continues after a failure, so that one run shows all failures. */
#ifndef STEWARD_TEST_CHECK_H
#define STEWARD_TEST_CHECK_H

#include <stdio.h>

static unsigned check_passed, check_failed;

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (condition) {                                                                \
			check_passed++;                                                         \
		} else {                                                                        \
			check_failed++;                                                         \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
		}                                                                               \
	} while (0)

#define CHECK_DONE() (printf("%u passed, %u failed\n", check_passed, check_failed), check_failed != 0)

#endif

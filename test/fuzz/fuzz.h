/* What the fuzzers share. Each target is one file with LLVMFuzzerTestOneInput(); libFuzzer brings its own main(), and
 * replay.c another that runs a corpus as an ordinary test.
 *
 * A target asserts what must hold for any bytes, not only that nothing crashes. */
#ifndef STEWARD_TEST_FUZZ_H
#define STEWARD_TEST_FUZZ_H

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stops where the property broke, so that the fuzzer keeps the input. */
#define HOLDS(condition)                                                                               \
	do {                                                                                           \
		if (!(condition)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                       \
		}                                                                                      \
	} while (0)

static inline struct str fuzz_input(const uint8_t *data, size_t size)
{
	return (struct str){(const char *)data, size};
}

/* Takes one byte off the front; 0 at the end. */
static inline unsigned fuzz_byte(struct str *s)
{
	if (s->n == 0)
		return 0;
	unsigned byte = (unsigned char)*s->p;
	*s = (struct str){s->p + 1, s->n - 1};
	return byte;
}

/* Whether the edge would let such a target pass; what comes after it need not be asked about other bytes. */
static inline bool fuzz_is_target(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] == 0x7f || s.p[i] == '#')
			return false;
	return true;
}

/* A copy in a malloc of exactly its size, so that a read past its end is seen. Freed by the caller. */
static inline char *fuzz_copy(struct str s)
{
	char *p = malloc(s.n ? s.n : 1);
	HOLDS(p);
	if (s.n)
		memcpy(p, s.p, s.n);
	return p;
}

#endif

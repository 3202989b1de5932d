/* Runs unit tests in one process: all of them, or those that are named, in that order; with the URL of a store on that one.
 *
 *   test_unit [NAME[=URL]...] */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNIT(name) int unit_##name(void);
#include "joined.h"
#undef UNIT

static const struct unit {
	const char *name;
	int (*run)(void);
} units[] = {
#define UNIT(name) {#name, unit_##name},
#include "joined.h"
#undef UNIT
};
#define UNIT_COUNT (sizeof units / sizeof *units)

static bool unit_run(const struct unit *u)
{
	/* Named first, so that a crash says where. */
	fprintf(stderr, "%s\n", u->name);
	bool ok = u->run() == 0;
	fflush(stdout);
	if (!ok)
		fprintf(stderr, "%s failed\n", u->name);
	return ok;
}

int main(int argc, char **argv)
{
	unsigned failed = 0;
	for (size_t i = 0; argc == 1 && i < UNIT_COUNT; i++)
		failed += !unit_run(&units[i]);
	for (int k = 1; k < argc; k++) {
		size_t i = 0;
		char *url = strchr(argv[k], '=');
		if (url) {
			*url = '\0';
			setenv("TEST_STORE_URL", url + 1, 1);
		}
		while (i < UNIT_COUNT && strcmp(units[i].name, argv[k]) != 0)
			i++;
		if (i == UNIT_COUNT)
			fprintf(stderr, "test_unit: no unit is called %s\n", argv[k]);
		failed += i == UNIT_COUNT || !unit_run(&units[i]);
	}
	return failed != 0;
}

/* The PostgreSQL engine against real servers.
 *
 *   test_postgres_engine [PART...]   all parts but the figures by default
 *
 * ROUNDS in the environment repeats the faults, DEBUG shows the engine's log. */
#include "harness.h"

static const struct {
	const char *name;
	void (*run)(void);
} parts[] = {
        {"single", part_single},       {"set", part_set},         {"access", part_access},   {"faults", part_faults},
        {"crash", part_crash},         {"shards", part_shards},   {"races", part_races},     {"upgrade", part_upgrade},
        {"retention", part_retention}, {"missing", part_missing}, {"archive", part_archive}, {"backup", part_backup},
        {"moments", part_moments},     {"copies", part_copies},   {"crypt", part_crypt},     {"figures", part_figures},
};

int main(int argc, char **argv)
{
	if (harness_begin(argc, argv) != 0)
		return 1;
	int found = 1;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		bool wanted = argc == 1 && parts[i].run != part_figures;
		for (int k = 1; k < argc; k++)
			if (strcmp(argv[k], parts[i].name) == 0) {
				wanted = true;
				found++;
			}
		if (wanted)
			parts[i].run();
	}
	CHECK(found == argc); /* a name that is no part's, or one twice */
	return harness_end();
}

/* What the property tests ask, answered in one process:
 *
 *   test_batch [NAME INPUT OUTPUT]... */
#include <stdio.h>
#include <string.h>

int unit_policy(void), unit_role(void), unit_yaml(void), unit_flags(void), unit_dialect(void);

static const struct batch {
	const char *name;
	int (*run)(void);
} batches[] = {
        {"policy", unit_policy}, {"role", unit_role},       {"yaml", unit_yaml},
        {"flags", unit_flags},   {"dialect", unit_dialect},
};
#define BATCH_COUNT (sizeof batches / sizeof *batches)

static int batch_run(char **words)
{
	size_t i = 0;
	while (i < BATCH_COUNT && strcmp(batches[i].name, words[0]) != 0)
		i++;
	if (i == BATCH_COUNT || !freopen(words[1], "re", stdin) || !freopen(words[2], "we", stdout)) {
		fprintf(stderr, "test_batch: %s cannot be run\n", words[0]);
		return 1;
	}
	int failed = batches[i].run();
	if (fflush(stdout) != 0 || failed)
		fprintf(stderr, "test_batch: %s failed\n", words[0]);
	return failed || ferror(stdout);
}

int main(int argc, char **argv)
{
	int failed = 0;
	for (int k = 1; k + 2 < argc; k += 3)
		failed |= batch_run(argv + k);
	return failed;
}

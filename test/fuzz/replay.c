/* The fuzz targets without libFuzzer, so that every build, also gcc's, runs the corpora as ordinary tests: each target with each
 * file of a folder, or with one file. Each input is a malloc of exactly its size.
 *
 *   replay TARGET PATH [TARGET PATH...] */
#include "catalog/catalog.h"
#include "catalog/schema.h"
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#define INPUT_MAX (1u << 20)

/* SAML's is a program of its own, because of its libraries. */
#ifdef REPLAY_SAML
#define TARGETS "replayed_saml.h"
#else
#define TARGETS "replayed.h"
#endif

#define TARGET(name)                                      \
	int fuzz_##name##_start(int *argc, char ***argv); \
	int fuzz_##name(const uint8_t *data, size_t size);
#include TARGETS
#undef TARGET

static const struct target {
	const char *name;
	int (*start)(int *argc, char ***argv);
	int (*one)(const uint8_t *data, size_t size);
} targets[] = {
#define TARGET(name) {#name, fuzz_##name##_start, fuzz_##name},
#include TARGETS
#undef TARGET
};

static const struct target *target;
static unsigned ran;

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
		return 1;
	}
	char *all = malloc(INPUT_MAX);
	HOLDS(all);
	size_t n = fread(all, 1, INPUT_MAX, f);
	fclose(f);
	char *exact = fuzz_copy((struct str){all, n});
	free(all);
	/* Named first, so that a crash says which one it was. */
	fprintf(stderr, "%s\n", path);
	target->one((const uint8_t *)exact, n);
	free(exact);
	ran++;
	return 0;
}

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int replay(const char *path)
{
	struct stat st;
	struct dirent **list;
	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		return replay_file(path);
	int n = scandir(path, &list, is_visible, alphasort), failed = 0;
	if (n < 0) {
		fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
		return 1;
	}
	for (int i = 0; i < n; i++) {
		char file[4096];
		snprintf(file, sizeof file, "%s/%s", path, list[i]->d_name);
		failed |= replay_file(file);
		free(list[i]);
	}
	free(list);
	return failed;
}

static const struct target *target_find(const char *name)
{
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
		if (strcmp(targets[i].name, name) == 0)
			return &targets[i];
	fprintf(stderr, "replay: no target is called %s\n", name);
	return NULL;
}

int main(int argc, char **argv)
{
	int failed = argc < 3 || argc % 2 == 0;
	for (int i = 1; i + 1 < argc; i += 2) {
		target = target_find(argv[i]);
		ran = 0;
		failed |= !target || target->start(&argc, &argv) || replay(argv[i + 1]);
		/* An empty corpus would pass without having tested anything. */
		printf("%s: %u inputs\n", argv[i], ran);
		failed |= ran == 0;
		/* Where a target has set them up. */
		catalog_teardown();
		schema_teardown();
	}
	return failed;
}

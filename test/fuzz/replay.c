/* A main() for the fuzz targets without libFuzzer: runs each file of the folders (or each file) that it is given, so
 * that every build, also gcc's, runs the corpora as ordinary tests. Each input is a malloc of exactly its size. */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#define INPUT_MAX (1u << 20)

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
	LLVMFuzzerTestOneInput((const uint8_t *)exact, n);
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

int main(int argc, char **argv)
{
	int failed = LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	/* An empty corpus would pass without having tested anything. */
	printf("%u inputs\n", ran);
	return failed || ran == 0;
}

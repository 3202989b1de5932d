/* Writes a directory into the repository of a data directory, as the service does with a database's files.
 *
 *   repository_write DATA REGION GROUP CLUSTER SNAPSHOT SET SOURCE [SEGMENT...]
 *
 * With PROJECT_KEY=FILE in the environment the project has encryption at rest, with the 32 bytes of that file as its data
 * key. Segments are files named as PostgreSQL's log; they become the incarnation "i1". Prints how many bytes were added. */
#include "base/arena.h"
#include "base/data_key.h"
#include "repository/setup.h"
#include "store/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct repo_writer *writer;
static size_t skip;

static void must(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s: %d: %s\n", what, result, repository_why());
	exit(1);
}

static int visit(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	const char *name = path + skip;
	(void)where;
	if (!*name)
		return 0;
	name++;
	if (kind == FTW_D) {
		must(repo_write_directory(writer, name, st->st_mode & 07777), name);
		return 0;
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct repo_file f = {.path = name, .mode = st->st_mode & 07777, .modified_s = st->st_mtime};
	must(fd < 0 ? -1 : repo_write_file(writer, &f, fd, UINT64_MAX), name);
	close(fd);
	return 0;
}

static void segment_put(struct repository *r, const struct repo_line *line, const char *path)
{
	const char *slash = strrchr(path, '/');
	FILE *f = fopen(path, "rb");
	size_t room = (size_t)16 << 20;
	char *bytes = must_malloc(room);
	must(f ? 0 : -1, path);
	size_t n = fread(bytes, 1, room, f);
	fclose(f);
	must(repo_wal_put(r, line, slash ? slash + 1 : path, bytes, n), path);
	free(bytes);
}

static int key_get(void *ctx, struct str group, struct str id, struct data_key *ret_key, char ret_why[DATA_KEY_WHY])
{
	const char *path = ctx;
	FILE *f = path ? fopen(path, "rb") : NULL;
	(void)group;
	(void)id;
	ret_why[0] = 0;
	if (!f)
		return -ENOENT;
	data_key_make(ret_key);
	memcpy(ret_key->id, "6740a1b2c3d4e5f60123000a", sizeof ret_key->id);
	must(fread(ret_key->bytes, 1, DATA_KEY_BYTES, f) == DATA_KEY_BYTES ? 0 : -1, path);
	fclose(f);
	return 0;
}

static int key_wrapped(void *ctx, struct str group, struct str id, char **ret_json)
{
	(void)ctx;
	(void)group;
	(void)id;
	*ret_json = must_strdup("{\"id\": \"6740a1b2c3d4e5f60123000a\", \"wraps\": []}");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 8)
		return fprintf(stderr, "usage: see the first comment\n"), 2;
	const struct data_keys keys = {.ctx = getenv("PROJECT_KEY"), .get = key_get, .wrapped = key_wrapped};
	struct repository_settings settings = {.data_dir = argv[1], .parity = 8, .keys = &keys};
	struct repositories *all;
	struct repository *r;
	struct repo_amount amount;
	json_setup();
	must(seal_setup(argv[1]), argv[1]);
	must(repositories_setup(&settings, &all), "setup");
	must(repository_get(all, argv[2], argv[3], &r), argv[3]);
	struct repo_line line = {argv[4], "i1", argv[6]};
	for (int i = 8; i < argc; i++)
		segment_put(r, &line, argv[i]);
	must(repo_write_begin(r, &writer), "begin");
	skip = strlen(argv[7]);
	must(nftw(argv[7], visit, 32, FTW_PHYS), argv[7]);
	json_t *ranges = json_array();
	must(repo_write_backup_manifest(writer, ranges), "backup_manifest");
	json_decref(ranges);
	must(repo_write_commit(writer, argv[4], argv[5], argv[6], NULL, &amount), "commit");
	printf("%llu\n", (unsigned long long)amount.stored);
	repository_put(r);
	repositories_close(all);
	return 0;
}

/* Files and directories of the PostgreSQL engine. What the service relies on after a crash is written whole
 * (base/file.h). */
#include "engine/postgres/postgres.h"

#include "base/arena.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path that does not fit becomes empty, which no call accepts. */
void pg_path_set(char ret_path[PG_PATH], const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(ret_path, PG_PATH, format, args);
	va_end(args);
	if (n < 0 || n >= PG_PATH)
		ret_path[0] = 0;
}

int pg_dir_sync(const char *path)
{
	return directory_sync(path);
}

int pg_filesystem_sync(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = syncfs(fd) < 0 ? -errno : 0;
	close(fd);
	return r;
}

int pg_file_write(const struct engine *e, const char *path, const void *bytes, size_t n, bool for_nodes)
{
	bool shared = e->drop && for_nodes;
	return file_replace(path, (struct str){bytes, n}, shared ? 0640 : 0600, shared ? e->gid : FILE_NO_GROUP);
}

int pg_file_read(const char *path, size_t max, char **ret_text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	char *text = must_malloc(max + 1);
	size_t n = 0;
	int r = 0;
	while (n <= max) {
		ssize_t got = read(fd, text + n, max + 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			r = -errno;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	close(fd);
	if (r == 0 && n > max)
		r = -EFBIG;
	if (r < 0) {
		free(text);
		return r;
	}
	text[n] = 0;
	*ret_text = text;
	return 0;
}

bool pg_file_is(const char *path)
{
	return access(path, F_OK) == 0;
}

/* The nodes' own: theirs alone. Ours: they may pass through, no more. */
int pg_dir_make(const struct engine *e, const char *path, bool owned_by_nodes)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (!e->drop)
		return 0;
	if (chown(path, owned_by_nodes ? e->uid : 0, e->gid) < 0 || chmod(path, owned_by_nodes ? 0700 : 0710) < 0)
		return -errno;
	return 0;
}

static int entry_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path) < 0 && errno != ENOENT ? -errno : 0;
}

int pg_tree_remove(const char *path)
{
	/* A server that is just ending can add a file behind our back; once more then. */
	for (int i = 0; i < 5; i++) {
		int r = nftw(path, entry_remove, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
		if (r == 0 || (r == -1 && errno == ENOENT) || r == -ENOENT || !pg_file_is(path))
			return 0;
		if (r != -ENOTEMPTY && r != -EEXIST)
			return r == -1 ? -errno : r;
	}
	return -ENOTEMPTY;
}

/* Files and directories of the PostgreSQL engine. What the service relies on after a crash is written whole
 * (base/file.h). The servers' user may write to most of the directories, and the service is often root: it follows no
 * symbolic link below its own directory (base/nolink.h). */
#include "engine/postgres/host/files.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/nolink.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int pg_dir_sync(const char *path)
{
	return directory_sync(path);
}

int pg_filesystem_sync(const char *path)
{
	int fd = nolink_open(path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return -errno;
	int r = syncfs(fd) < 0 ? -errno : 0;
	close(fd);
	return r;
}

int pg_file_write(const struct pg_user *u, const char *path, const void *bytes, size_t n, bool for_nodes)
{
	char name[NAME_MAX + 1];
	bool shared = u->other && for_nodes;
	int dir = nolink_parent(AT_FDCWD, path, name);
	if (dir < 0)
		return -errno;
	int r = file_replace_at(dir, name, (struct str){bytes, n},
	                        !shared       ? 0600
	                        : u->everyone ? 0644
	                                      : 0640,
	                        (uid_t)-1, shared ? u->gid : FILE_NO_GROUP);
	close(dir);
	return r;
}

int pg_key_write(const struct pg_user *u, const char *path, const void *bytes, size_t n)
{
	char name[NAME_MAX + 1];
	if (!u->other || geteuid() == 0)
		return pg_file_write(u, path, bytes, n, true);
	int dir = nolink_parent(AT_FDCWD, path, name);
	if (dir < 0)
		return -errno;
	int r = file_replace_at(dir, name, (struct str){bytes, n}, 0600, u->uid, u->gid);
	close(dir);
	return r;
}

int pg_file_give(const struct pg_user *u, const char *path)
{
	char name[NAME_MAX + 1];
	int dir = nolink_parent(AT_FDCWD, path, name);
	if (dir < 0)
		return -errno;
	int r = file_replace_at(dir, name, (struct str){"", 0}, 0600, u->uid, u->other ? u->gid : FILE_NO_GROUP);
	close(dir);
	return r;
}

int pg_file_read(const char *path, size_t max, char **ret_text)
{
	int fd = nolink_open(path, O_RDONLY, 0);
	return fd < 0 ? -errno : pg_file_take(fd, max, ret_text);
}

int pg_file_take(int fd, size_t max, char **ret_text)
{
	struct stat st;
	/* One byte more than it has tells its end. It may grow meanwhile; the kernel's own say that they are empty. */
	size_t n = 0,
	       room = fstat(fd, &st) == 0 && st.st_size > 0 && (size_t)st.st_size < max ? (size_t)st.st_size : 4096;
	room = room < max ? room : max;
	char *text = must_malloc(room + 1);
	int r = 0;
	while (n <= max) {
		if (n > room) {
			room = room < max / 2 ? room * 2 : max;
			text = must_realloc(text, room + 1);
		}
		ssize_t got = read(fd, text + n, room + 1 - n);
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

int pg_file_look(const char *path)
{
	struct stat st;
	if (nolink_lstat(path, &st) == 0)
		return 1;
	/* This look needs no descriptor, and opens nothing. */
	if ((errno == EMFILE || errno == ENFILE || errno == ENOMEM) && lstat(path, &st) == 0)
		return 1;
	return pg_is_absence(errno) ? 0 : -errno;
}

bool pg_is_absence(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

bool pg_file_is(const char *path)
{
	return pg_file_look(path) > 0;
}

/* The nodes' own: theirs alone. Ours: they may pass through, no more. */
int pg_dir_make(const struct pg_user *u, const char *path, bool owned_by_nodes)
{
	if (nolink_mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = nolink_open(path, O_RDONLY | O_DIRECTORY, 0), r = 0;
	if (fd < 0)
		return -errno;
	mode_t mode = owned_by_nodes ? 0700 : u->everyone ? 0711 : 0710;
	if (u->other && (fchown(fd, owned_by_nodes ? u->uid : geteuid(), u->gid) < 0 || fchmod(fd, mode) < 0))
		r = -errno;
	close(fd);
	return r;
}

int pg_tree_remove(const char *path)
{
	/* A server that is just ending can add a file behind our back; once more then. */
	for (int i = 0; i < 5; i++) {
		int r = nolink_tree_remove(path);
		if (r != -ENOTEMPTY && r != -EEXIST)
			return r;
	}
	return -ENOTEMPTY;
}

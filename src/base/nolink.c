/* Step by step from directory to directory, each opened without following a link: what is put in place of one
 * meanwhile is met by nobody. */
#include "base/nolink.h"

#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define DEPTH_MAX 64      /* directories that are open at once, while a tree is removed */
#define ROUNDS_MAX 100000 /* against somebody who adds to it meanwhile */

int nolink_parent(int at, const char *path, char ret_name[NAME_MAX + 1])
{
	int dir = openat(at, *path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (dir >= 0) {
		path += strspn(path, "/");
		size_t n = strcspn(path, "/");
		if (n > NAME_MAX) {
			close(dir);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(ret_name, path, n);
		ret_name[n] = 0;
		path += n;
		path += strspn(path, "/");
		if (!*path)
			break;
		int below = openat(dir, ret_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(dir);
		dir = below;
	}
	return dir;
}

int nolink_openat(int at, const char *path, int flags, mode_t mode)
{
	char name[NAME_MAX + 1];
	struct stat st;
	int dir = nolink_parent(at, path, name);
	if (dir < 0)
		return -1;
	int fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
	close(dir);
	if (fd >= 0 && !(flags & O_DIRECTORY) && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		errno = ELOOP;
		return -1;
	}
	return fd;
}

int nolink_open(const char *path, int flags, mode_t mode)
{
	return nolink_openat(AT_FDCWD, path, flags, mode);
}

DIR *nolink_opendir(const char *path)
{
	int fd = nolink_open(path, O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d && fd >= 0)
		close(fd);
	return d;
}

int nolink_lstat(const char *path, struct stat *ret_stat)
{
	char name[NAME_MAX + 1];
	int dir = nolink_parent(AT_FDCWD, path, name);
	if (dir < 0)
		return -1;
	int r = fstatat(dir, name, ret_stat, AT_SYMLINK_NOFOLLOW);
	close(dir);
	return r;
}

int nolink_mkdirat(int at, const char *path, mode_t mode)
{
	char name[NAME_MAX + 1];
	int dir = nolink_parent(at, path, name);
	if (dir < 0)
		return -1;
	int r = mkdirat(dir, name, mode);
	close(dir);
	return r;
}

int nolink_mkdir(const char *path, mode_t mode)
{
	return nolink_mkdirat(AT_FDCWD, path, mode);
}

static int entry_remove(const char *path, int flags)
{
	char name[NAME_MAX + 1];
	int dir = nolink_parent(AT_FDCWD, path, name);
	if (dir < 0)
		return -1;
	int r = unlinkat(dir, name, flags);
	close(dir);
	return r;
}

int nolink_unlink(const char *path)
{
	return entry_remove(path, 0);
}

int nolink_rmdir(const char *path)
{
	return entry_remove(path, AT_REMOVEDIR);
}

int nolink_rename(const char *from, const char *to)
{
	char old[NAME_MAX + 1], new[NAME_MAX + 1];
	int source = nolink_parent(AT_FDCWD, from, old), target = source < 0 ? -1 : nolink_parent(AT_FDCWD, to, new);
	int r = target < 0 ? -1 : renameat(source, old, target, new), error = errno;
	if (source >= 0)
		close(source);
	if (target >= 0)
		close(target);
	errno = error;
	return r;
}

/* A tree that is removed. Who may write in it can make it as deep as there is space, so that neither descriptors nor
 * the stack may grow with it, and "..", which could have come to lead elsewhere, is no way back: what lies too deep is
 * moved up, to the top, and removed from there. */
struct removal {
	int top;
	dev_t device;
	unsigned moved;
};

static int deep_move(struct removal *t, int dir, const char *name)
{
	struct id id = id_new(); /* a name that nobody has put there */
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
		return 0;
	if (renameat(dir, name, t->top, id.z) < 0)
		return errno == ENOENT ? 0 : -errno;
	t->moved++;
	return 0;
}

static int below_remove(struct removal *t, int dir, const char *name, int depth);

static int entries_remove(struct removal *t, DIR *d, int depth)
{
	int r = 0;
	for (struct dirent *entry; r == 0 && (entry = readdir(d));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = below_remove(t, dirfd(d), entry->d_name, depth);
	return r;
}

static DIR *below_open(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d && fd >= 0)
		close(fd);
	return d;
}

static int below_remove(struct removal *t, int dir, const char *name, int depth)
{
	struct stat st;
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -errno;
	if (depth > DEPTH_MAX)
		return deep_move(t, dir, name);
	DIR *d = below_open(dir, name);
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	int r = fstat(dirfd(d), &st) < 0 || st.st_dev != t->device ? -EXDEV : entries_remove(t, d, depth + 1);
	closedir(d);
	if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

/* All that is in it. Each round takes DEPTH_MAX levels off what was moved up in the one before. */
static int top_clear(DIR *d)
{
	struct removal t = {.top = dirfd(d)};
	struct stat st;
	int r = fstat(t.top, &st) < 0 ? -errno : 0;
	t.device = st.st_dev;
	for (unsigned rounds = 0; r == 0; rounds++) {
		t.moved = 0;
		r = entries_remove(&t, d, 1);
		if (!t.moved)
			break;
		if (rounds == ROUNDS_MAX)
			r = -ELOOP;
		rewinddir(d);
	}
	return r;
}

static int top_remove(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -errno;
	DIR *d = below_open(dir, name);
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	int r = top_clear(d);
	closedir(d);
	if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		r = -errno;
	return r;
}

int nolink_tree_remove(const char *path)
{
	char name[NAME_MAX + 1];
	int dir = nolink_parent(AT_FDCWD, path, name);
	if (dir < 0)
		return errno == ENOENT ? 0 : -errno;
	int r = top_remove(dir, name);
	close(dir);
	return r;
}

/* Replacing a file: written under a temporary name, flushed, renamed, and the directory flushed. A reader sees the old
 * text or the new one, never a part, and nothing of it is readable by more than the mode says at any moment. */
#include "base/file.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int directory_sync(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = fsync(fd) < 0 ? -errno : 0;
	close(fd);
	return r;
}

static int write_all(int fd, struct str bytes)
{
	while (bytes.n > 0) {
		ssize_t done = write(fd, bytes.p, bytes.n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		bytes.p += done;
		bytes.n -= (size_t)done;
	}
	return 0;
}

static int file_fill(int fd, struct str bytes, mode_t mode, uid_t owner, gid_t group)
{
	int r = write_all(fd, bytes);
	if (r == 0 && group != FILE_NO_GROUP && fchown(fd, owner, group) < 0)
		r = -errno;
	if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
		r = -errno;
	return r;
}

/* What O_PATH has opened cannot be flushed. */
static int descriptor_sync(int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = fsync(fd) < 0 ? -errno : 0;
	close(fd);
	return r;
}

int file_replace_at(int directory, const char *name, struct str bytes, mode_t mode, uid_t owner, gid_t group)
{
	char temporary[NAME_MAX + 1];
	if (snprintf(temporary, sizeof temporary, "%s.new", name) > NAME_MAX)
		return -ENAMETOOLONG;
	unlinkat(directory, temporary, 0);
	int fd = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : file_fill(fd, bytes, mode, owner, group);
	if (fd >= 0 && close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0 && renameat(directory, temporary, directory, name) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlinkat(directory, temporary, 0);
	return r < 0 ? r : descriptor_sync(directory);
}

int file_replace(const char *path, struct str bytes, mode_t mode, gid_t group)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *parent = slash ? must_strdup(path) : NULL;
	if (slash)
		parent[slash == path ? 1 : slash - path] = 0;
	int dir = open(parent ? parent : ".", O_PATH | O_DIRECTORY | O_CLOEXEC), r = dir < 0 ? -errno : 0;
	free(parent);
	if (r < 0)
		return r;
	r = file_replace_at(dir, name, bytes, mode, 0, group);
	close(dir);
	return r;
}

bool file_beside_program(const char *name, char *ret_path, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n <= 0)
		return false;
	self[n] = 0;
	char *slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = 0;
	int length = snprintf(ret_path, size, "%s/%s", self, name);
	return length > 0 && (size_t)length < size && access(ret_path, X_OK) == 0;
}

/* Replacing a file: written under a temporary name, flushed, renamed, and the directory flushed. A reader sees the old
 * text or the new one, never a part, and nothing of it is readable by more than the mode says at any moment. */
#include "base/file.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
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

static int parent_sync(const char *path)
{
	char *parent = must_strdup(path), *slash = strrchr(parent, '/');
	if (slash)
		slash[slash == parent] = 0;
	int r = directory_sync(slash ? parent : ".");
	free(parent);
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

static int file_fill(int fd, struct str bytes, mode_t mode, gid_t group)
{
	int r = write_all(fd, bytes);
	if (r == 0 && group != FILE_NO_GROUP && fchown(fd, 0, group) < 0)
		r = -errno;
	if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
		r = -errno;
	return r;
}

int file_replace(const char *path, struct str bytes, mode_t mode, gid_t group)
{
	char *temporary;
	if (asprintf(&temporary, "%s.new", path) < 0)
		return -ENOMEM;
	unlink(temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : file_fill(fd, bytes, mode, group);
	if (fd >= 0 && close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0 && rename(temporary, path) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlink(temporary);
	free(temporary);
	return r < 0 ? r : parent_sync(path);
}

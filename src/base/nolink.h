/* Files below directories into which somebody else may put symbolic links: none is followed, in no part of a path.
 * The calls are those of libc without "nolink_", and fail as they do; a link on the way is ENOTDIR, one at the end
 * ELOOP. */
#ifndef STEWARD_BASE_NOLINK_H
#define STEWARD_BASE_NOLINK_H

#include "base/str.h"

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The directory that the path's last part lies in, as an O_PATH descriptor. */
must_check int nolink_parent(int at, const char *path, char ret_name[NAME_MAX + 1]);
/* A regular file, or with O_DIRECTORY a directory; nothing else is opened, so that no pipe keeps the caller waiting. */
must_check int nolink_openat(int at, const char *path, int flags, mode_t mode);
must_check int nolink_open(const char *path, int flags, mode_t mode);
must_check DIR *nolink_opendir(const char *path);
must_check int nolink_lstat(const char *path, struct stat *ret_stat);
int nolink_mkdirat(int at, const char *path, mode_t mode);
int nolink_mkdir(const char *path, mode_t mode);
int nolink_unlink(const char *path);
int nolink_rmdir(const char *path);
int nolink_rename(const char *from, const char *to);
/* A file, or a directory with all that is in it on the same file system, however deep; 0, or a negative errno. */
must_check int nolink_tree_remove(const char *path);

#endif

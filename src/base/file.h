/* Files that are complete or absent, even after a power cut. */
#ifndef STEWARD_BASE_FILE_H
#define STEWARD_BASE_FILE_H

#include "base/str.h"

#include <sys/types.h>

#define FILE_NO_GROUP ((gid_t)-1)

/* Replaces the file or creates it. With a group other than FILE_NO_GROUP the file is owned by root and that group. */
must_check int file_replace(const char *path, struct str bytes, mode_t mode, gid_t group);
/* The same, of a name in an open directory (O_PATH is enough). With an owner and a group other than -1 it is theirs. */
must_check int file_replace_at(int directory, const char *name, struct str bytes, mode_t mode, uid_t owner,
                               gid_t group);
/* Flushes a directory, so that names created, renamed or removed in it survive a power cut. */
must_check int directory_sync(const char *path);

/* The path of a program that lies where this one does; false: it does not. */
must_check bool file_beside_program(const char *name, char *ret_path, size_t size);

#endif

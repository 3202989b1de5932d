/* Files that are there as a whole or not at all, also after a power cut. */
#ifndef STEWARD_BASE_FILE_H
#define STEWARD_BASE_FILE_H

#include "base/str.h"

#include <sys/types.h>

#define FILE_NO_GROUP ((gid_t)-1)

/* Puts a file in place of the one that is there, if any. With a group other than FILE_NO_GROUP it is given to that group,
 * and to root. */
must_check int file_replace(const char *path, struct str bytes, mode_t mode, gid_t group);
/* Flushes a directory: names that were made, renamed or removed in it stay so. */
must_check int directory_sync(const char *path);

#endif

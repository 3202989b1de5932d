/* A set as a tar. */
#ifndef STEWARD_REPOSITORY_TAR_H
#define STEWARD_REPOSITORY_TAR_H

#include "repository/common.h"

struct repo_manifest; /* manifest.h */

/* As a tar (ustar with pax headers where needed); `extra` files are put in front of its end. */
struct repo_extra {
	const char *path;
	unsigned mode;
	const void *bytes; /* or, where NULL, read from fd */
	size_t n;
	int fd;
};
must_check int repo_tar(struct repo_manifest *m, const struct repo_extra *extra, size_t extra_count,
                        objects_write *write, void *ctx);
/* The same without what lies before that byte, for a reader who has it: a manifest makes the same bytes each time. */
must_check int repo_tar_from(struct repo_manifest *m, uint64_t from, objects_write *write, void *ctx);
/* How long it is. Reads nothing but the manifest. */
must_check int repo_tar_size(struct repo_manifest *m, uint64_t *ret_bytes);

#endif

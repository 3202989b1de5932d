/* `steward repository check`, and the mending of what it finds. */
#ifndef STEWARD_REPOSITORY_CHECK_H
#define STEWARD_REPOSITORY_CHECK_H

#include "repository/common.h"

struct repo_check {
	uint64_t snapshots, packs, chunks, segments, bytes; /* that were looked at */
	uint64_t locked; /* objects that were not, because the project's key is not at hand */
	uint64_t faults;
	uint64_t mended; /* of these: by repo_repair() */
};
/* `share`: 1 all of it, below 1 a sample. Each fault is told in words that name the object and what depends on it. */
must_check int repo_check(struct repository *r, double share, void (*fault)(void *ctx, const char *words), void *ctx,
                          struct repo_check *ret_check);
/* The same of all of it, and what has a second copy is made whole from that. */
must_check int repo_repair(struct repository *r, void (*fault)(void *ctx, const char *words), void *ctx,
                           struct repo_check *ret_check);

#endif

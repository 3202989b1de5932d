/* What several headers of the repository speak of. */
#ifndef STEWARD_REPOSITORY_COMMON_H
#define STEWARD_REPOSITORY_COMMON_H

#include "objects/objects.h"

struct repository;   /* one project in one region's object store */
struct repositories; /* all of a service */

#define REPO_KEY_BYTES 32

struct repo_amount {
	uint64_t files, bytes; /* as they are on disk */
	uint64_t chunks, new_chunks;
	uint64_t stored; /* bytes that were added to the repository */
};

struct repo_progress {
	void (*tell)(void *ctx, uint64_t done, uint64_t of); /* bytes; from any thread; may be NULL */
	void *ctx;
	const volatile bool *cancel; /* may be NULL: true ends it with -ECANCELED */
};

/* A snapshot, as it lies in the repository. */
typedef int repo_snapshot_visit(void *ctx, struct str cluster, struct str snapshot, int64_t modified_ms);

#endif

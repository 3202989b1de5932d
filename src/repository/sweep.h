/* What nobody keeps, goes. */
#ifndef STEWARD_REPOSITORY_SWEEP_H
#define STEWARD_REPOSITORY_SWEEP_H

#include "repository/wal.h"

struct repo_keep {
	const char *const *snapshots; /* "CLUSTER/SNAPSHOT" of all that are kept */
	size_t snapshot_count;
	const struct repo_keep_wal {
		struct repo_line line; /* set NULL: all sets */
		const char *
		        /* the first segment that is needed, without its timeline (16 hex digits); NULL: all of it */
		        from;
		int64_t from_ms; /* the first moment whose position is asked for; 0: all */
	} * wal;                 /* lines that are not listed go whole */
	size_t wal_count;
	/* Objects that are younger, by the object store's clock, are left alone: a snapshot may have been taken since
	 * the list of those that are kept was made. */
	int64_t young_ms;
	/* Whether what has that id (of a snapshot, of a log's incarnation) and is not listed was made behind the back
	 * of whoever made the list, and stays; snapshots of the kind are told of. NULL: nothing is. */
	bool (*stranger)(void *ctx, struct str id);
	void (*stranger_found)(void *ctx, struct str name); /* "CLUSTER/SNAPSHOT" */
	void *stranger_ctx;
	/* The record of a snapshot that lies here and has none: a text on the heap, or NULL. May be NULL. */
	char *(*record)(void *ctx, struct str cluster, struct str snapshot);
	void *record_ctx;
	/* clock_boot_us() before the list was made; 0: not known. -ESTALE: too long ago for young_ms. */
	int64_t read_us;
};
struct repo_swept {
	uint64_t manifests, packs, rewritten, segments;
	uint64_t bytes_freed, bytes_kept;
};
/* Mark and sweep: manifests, WAL and packs; packs less than half live are written anew without what is dead. Safe
 * beside writers and readers, and may be ended at any moment. While somebody writes, packs are left alone; a writer
 * that begins meanwhile waits until the pack at hand is done. -EBADMSG: a manifest does not open, so no pack went. */
must_check int repo_sweep(struct repository *r, const struct repo_keep *keep, struct repo_swept *ret_swept);
/* Bytes that the project takes in the repository, from its list of objects. */
must_check int repo_usage(struct repository *r, uint64_t *ret_packs, uint64_t *ret_wal);

#endif

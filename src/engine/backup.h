/* Backups: what the databases' data was at a moment, kept in the repository, and brought back. Functions that take
 * `progress` block and are called by job threads, on the host of the cluster (restores: of the target); each may be
 * repeated after a crash and finds its way from whatever is there. What an engine keeps is found by the cluster's and
 * the snapshot's ids alone, so that it outlives the cluster.
 *
 * WAL is archived for clusters whose engine_cluster.backup says so, without being asked: see engine_backup_ops.window
 * for how far that has come. Times are the service's clock, in milliseconds. */
#ifndef STEWARD_ENGINE_BACKUP_H
#define STEWARD_ENGINE_BACKUP_H

#include "engine/core.h"
#include "objects/objects.h"
#include "repository/repository.h"

/* Where it lies. The incarnation is of the data: a new one with each restore into the cluster. */
struct engine_source {
	char group_id[25], cluster_id[25], incarnation[25], snapshot_id[25]; /* snapshot_id "": none in particular */
	char region[48];                                                     /* whose repository */
};

/* A place in the databases' log. Sharded clusters have one for each set, and only points that all sets share. */
struct engine_position {
	char set[64];
	unsigned timeline;
	uint64_t lsn;
	uint64_t bytes, stored; /* of a snapshot: the set's share of both */
};

struct engine_snapshot {
	int64_t at_ms;                /* what it brings back is as of then */
	struct engine_position *sets; /* in the arena */
	size_t set_count;
	uint64_t bytes, stored; /* of the databases; and what was added to the repository */
	char version[24];       /* "15.18.0" */
	bool from_standby;
	char data_key[25]; /* the project's key that it is sealed with; "": with the service's alone */
};

enum engine_point_kind { POINT_SNAPSHOT, POINT_TIME, POINT_POSITION };
struct engine_point {
	enum engine_point_kind kind;
	int64_t time_ms;
	/* Of a cluster with one set. With a time: what position() told when it was found to be in the window, or 0. */
	struct engine_position position;
};

/* A stretch of time without gaps: each moment of it can be restored, by the snapshots that were taken in it or at its
 * start. Of a sharded cluster: the moments are its checkpoints. */
struct engine_window {
	int64_t from_ms, to_ms;
};

/* A moment at which all sets of a sharded cluster (and the one set of another) are consistent with each other. */
struct engine_checkpoint {
	int64_t at_ms;
	char id[25]; /* made from its time: stable, and sorts as time does */
	struct engine_position *sets;
	size_t set_count;
};

struct engine_archive {
	bool on, broken;      /* broken: the last window ended, and no snapshot has begun another */
	bool proving;         /* whether all of it is there is being found out: see prove_log */
	int64_t lag_ms;       /* age of the newest log that is in the repository, while there is newer; else 0 */
	int64_t last_ms;      /* when something was last brought there; 0: never */
	uint64_t spool_bytes; /* that wait on this host */
	bool crowded;         /* more than half of what may */
	const char *why;      /* it does not go on; NULL: it does */
};

/* A table that is exported: rows as newline-separated JSON. */
struct engine_table {
	const char *database, *schema, *name, *set;
};
struct engine_export {
	void (*count)(void *ctx, size_t tables); /* that are known so far; again, when there are more */
	/* Again for a table that was begun and has not ended: what was written of it counts for nothing. */
	int (*begin)(void *ctx, const struct engine_table *table);
	int (*write)(void *ctx, const void *bytes, size_t n);
	int (*end)(void *ctx, uint64_t rows);
	/* Instead of `end`, and also without `begin`: it cannot be exported, for that reason. What was written of it
	 * counts for nothing; the others go on. A table without a schema and a name: none of the database can. Names
	 * need not be UTF-8, the reason is. */
	int (*skip)(void *ctx, const struct engine_table *table, const char *why);
	void *ctx;
};

/* What comes back by itself: a database, or one of its tables. */
struct engine_piece {
	char id[25]; /* of whoever asks: a repetition finds by it that all is done */
	const char *database;
	const char *schema, *table; /* NULL: all of the database */
	const char *as;             /* the name that it gets */
	const char *suffix;         /* of names that come with a table which gets another name */
	bool replace;               /* in the place of what has its name now; `as` is that name */
};

/* What a drill has looked at. */
struct engine_proof {
	uint64_t files, bytes, relations;
	bool started; /* a server was started on it and answered */
};

struct engine_backup_ops {
	/* Of a running cluster, from a standby where there is one; of a paused one from its files. Under the ids of
	 * `to`. */
	int (*snapshot)(struct engine *e, const struct engine_source *to, struct engine_progress *progress,
	                struct arena *a, struct engine_snapshot *ret_snapshot, const char **ret_why);
	/* The cluster's data becomes what the source's was at the point. `want` is the cluster as it shall be, with
	 * its new incarnation; what is in force for it (users, access, certificates) is after it as before. Until the
	 * new data is proven to have reached the point, the old serves; should it fail or be cancelled, it goes on
	 * serving. -ECANCELED: `cancel` (may be NULL) became true in time. -ENOENT: that point cannot be restored.
	 * -EINPROGRESS: the new data is the cluster's, but not all of its nodes have come up with it; a repetition, or
	 * any later converge, goes on. */
	int (*restore)(struct engine *e, const struct engine_source *from, const struct engine_point *to,
	               const struct engine_cluster *want, const struct engine_access *access,
	               const _Atomic bool *cancel, struct engine_progress *progress, struct arena *a,
	               const char **ret_why);
	/* A database or a table of what the source was at the point becomes part of a running cluster, whose other data
	 * goes on. What users have written into it (checks, defaults, indexes) runs with no rights beyond it. It is
	 * there as a whole or not at all. -EINVAL: that cannot be, however often it is tried; -ENOENT and -ECANCELED
	 * as above. */
	int (*restore_piece)(struct engine *e, const struct engine_source *from, const struct engine_point *to,
	                     const struct engine_piece *piece, const struct engine_cluster *want,
	                     const struct engine_access *access, const _Atomic bool *cancel,
	                     struct engine_progress *progress, struct arena *a, const char **ret_why);
	/* What can be restored of an incarnation, oldest first. `sets`: how many sets the cluster has. */
	int (*window)(struct engine *e, const struct engine_source *of, struct arena *a,
	              struct engine_window **ret_list, size_t *ret_count);
	/* Within [from, to], newest first, at most `max`. */
	int (*checkpoints)(struct engine *e, const struct engine_source *of, int64_t from_ms, int64_t to_ms, size_t max,
	                   struct arena *a, struct engine_checkpoint **ret_list, size_t *ret_count);
	/* The position that the only set had reached at that time, and at the beginning of that second. -ENOENT. */
	int (*position)(struct engine *e, const struct engine_source *of, int64_t time_ms,
	                struct engine_position *ret_position, uint64_t *ret_second_lsn);
	/* One set of a snapshot as a tar that stock PostgreSQL starts from, without its first `from` bytes: it is the
	 * same each time, and from every region. Blocks; `write` may be slow. */
	int (*stream)(struct engine *e, const struct engine_source *of, const char *set, uint64_t from,
	              objects_write *write, void *ctx, const char **ret_why);
	/* How long that is. May have to ask a repository behind a network. */
	int (*stream_size)(struct engine *e, const struct engine_source *of, const char *set, uint64_t *ret_bytes,
	                   const char **ret_why);
	/* A snapshot's missing parts into another region's repository. */
	int (*copy)(struct engine *e, const struct engine_source *from, const char *region,
	            struct engine_progress *progress, const char **ret_why);
	/* Into a throwaway server, and each table of its databases out of it. */
	int (*export)(struct engine *e, const struct engine_source *of, const struct engine_export *to,
	              struct engine_progress *progress, struct arena *a, const char **ret_why);
	/* Reads all of it, checks every hash and page; `start`: also starts a throwaway server on it and checks its
	 * tables and indexes. Negative: it would not come back as it was, and *ret_why says what is wrong. */
	int (*prove)(struct engine *e, const struct engine_source *of, bool start, struct engine_progress *progress,
	             struct arena *a, struct engine_proof *ret_proof, const char **ret_why);
	/* What the catalogue says of a snapshot is kept beside it, so that the catalogue may be lost. */
	int (*record)(struct engine *e, const struct engine_source *of, const char *text);
	/* The snapshot is not to be restored any more; its space comes back with the next sweep. */
	int (*forget)(struct engine *e, const struct engine_source *of);
	/* Takes away what `keep` does not name, of one project in one region. */
	int (*sweep)(struct engine *e, const char *region, const char *group_id, const struct repo_keep *keep,
	             struct repo_swept *ret_swept);
	/* The log of one set of a cluster of this host is to be there without a hole from the segment `from` on, in
	 * that region's repository. It is looked at soon, by names alone; what is missing is put there again where a
	 * node has it, and is a window that has ended (engine_archive.broken) where none has. -ENOENT: it is nobody's
	 * here. */
	int (*prove_log)(struct engine *e, const char *region, const struct repo_keep_wal *of);
	/* Tells what the logs of a repository lack that nobody has noted: without an engine, beside whoever writes
	 * there. Adds to `seen` what it has found, and what is sealed with a key that is not at hand. */
	int (*check_log)(struct repository *r, void (*fault)(void *ctx, const char *words), void *ctx,
	                 struct repo_check *seen);
	/* How archiving stands; of a cluster of this host. */
	int (*archive)(struct engine *e, const char *cluster_id, struct arena *a, struct engine_archive *ret_archive);
	/* Bytes that the project takes in that region's repository. */
	int (*usage)(struct engine *e, const char *region, const char *group_id, uint64_t *ret_bytes);
};

#endif

/* The threads that store the log, and what they can be asked. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_RUN_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_RUN_H

#include "engine/postgres/archive/archive_index.h"

/* What the host of a cluster knows of a set's archive; false: it is not this one. */
struct pg_archive_now {
	struct pg_mark last; /* with how long the log has stood still behind it */
	uint32_t timeline;
	uint64_t stored;
};

/* Until the repository has the set's log up to there. -ETIMEDOUT; -ENODATA: it never will, there is a gap. */
int pg_archive_wait(struct pg_cluster *c, const struct pg_set *s, unsigned timeline, uint64_t lsn, int timeout_ms);
void *pg_archive_run(void *engine);          /* a thread, until the engine stops */
void pg_archive_hurry(struct pg_cluster *c); /* there is something to do for it now */
void pg_archive_last(struct pg_cluster *c);  /* its nodes are gone, its directory not yet */
/* Until nobody reads its files for it, but not for long; of a cluster that is not looked at any more. */
void pg_archive_settle(struct pg_cluster *c);
int pg_backup_archive(struct engine *e, const char *cluster_id, struct arena *a, struct engine_archive *ret_archive);
bool pg_archive_now(struct engine *e, const struct engine_source *of, const char *set, struct pg_archive_now *ret_now);

#endif

/* What can be restored from a cluster's archive: archive_read.c. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_READ_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_READ_H

#include "engine/postgres/archive/archive_index.h"

/* What PostgreSQL is told to recover to, for one set. */
struct pg_target {
	unsigned timeline;
	uint64_t lsn;    /* up to and with what ends there; 0: by time */
	int64_t time_us; /* up to and with what was committed then; all of it, where nothing is later */
	uint64_t least;  /* the position that it must have reached, or has not what it should have */
	uint64_t end;    /* log up to here is needed; 0: up to the target and a little more */
};
/* -ENOENT: the set cannot be brought to that point, by the snapshot or at all. */
int pg_archive_resolve(struct engine *e, const struct engine_source *of, const struct engine_point *point,
                       const char *set, struct pg_target *ret_target, const char **ret_why);
/* Of engine_backup_ops. */
int pg_backup_window(struct engine *e, const struct engine_source *of, struct arena *a, struct engine_window **ret_list,
                     size_t *ret_count);
int pg_backup_checkpoints(struct engine *e, const struct engine_source *of, int64_t from_ms, int64_t to_ms, size_t max,
                          struct arena *a, struct engine_checkpoint **ret_list, size_t *ret_count);
int pg_backup_position(struct engine *e, const struct engine_source *of, int64_t time_ms,
                       struct engine_position *ret_position, uint64_t *ret_second_lsn);

#endif

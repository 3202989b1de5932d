/* One set's archive, as it lies in the repository. */
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
int pg_backup_check_log(struct repository *r, void (*fault)(void *ctx, const char *words), void *ctx,
                        struct repo_check *seen);

/* One set's archive, as it lies in the repository. */
struct pg_view {
	struct repository *repository;
	struct repo_line line;
	struct pg_segments known;
	uint32_t newest;
	struct pg_chain chain; /* to the newest timeline */
	struct pg_index index;
	struct pg_marks marks; /* of one hour */
	int64_t hour;
	int64_t left_ms; /* when the newest mark was made that was met and lies behind a fork */
};
/* `of` and `set` outlive it. Without segments: the index alone. */
int pg_view_open(struct engine *e, const struct engine_source *of, const char *set, bool segments, struct pg_view *v);
void pg_view_close(struct pg_view *v);
int pg_view_chain(struct pg_view *v, uint32_t timeline, struct pg_chain *chain); /* that leads to the timeline */
/* 2: all of the segment is there, 1: its beginning, 0: nothing. */
int pg_view_segment(const struct pg_view *v, const struct pg_chain *chain, uint64_t number);

#endif

/* One set's archive, as it lies in the repository: archive_view.c. A view is its caller's alone, without a lock. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_VIEW_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_VIEW_H

#include "engine/postgres/archive/archive_index.h"

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
/* Whether the log from one position to the other is there. */
bool pg_view_is_whole(const struct pg_view *v, const struct pg_chain *chain, uint64_t from, uint64_t to);
/* The number of the last segment on the way, and of the first of all; 0: there is none. */
uint64_t pg_view_last(const struct pg_view *v);
uint64_t pg_view_first(const struct pg_view *v);

int pg_view_index_load(struct pg_view *v);
/* The segments that lie there, and the chain to the newest timeline; one whose history is not there yet leads
 * nowhere. What was there before stays. */
int pg_view_segments_load(struct pg_view *v);

/* --- marks: what one of them is asked; positions are of the log, times of the service's clock */
typedef bool pg_mark_test(const struct pg_mark *m, uint64_t value);
pg_mark_test pg_mark_is_from;     /* at that position or behind it */
pg_mark_test pg_mark_ends_by;     /* its log ends there at the latest */
pg_mark_test pg_mark_is_by;       /* at that position or before it */
pg_mark_test pg_mark_is_after;    /* begun after that time */
pg_mark_test pg_mark_is_not_over; /* made at that time, or later */
pg_mark_test pg_mark_is_over;     /* made by that time */

/* The last hour of the index that begins before the position, or the time. */
size_t pg_view_hour_of_lsn(const struct pg_view *v, uint64_t lsn);
size_t pg_view_hour_of_time(const struct pg_view *v, int64_t ms);
/* The marks of an hour that are on the way to the newest timeline. */
int pg_view_hour_load(struct pg_view *v, int64_t hour);
/* The first mark from that hour on, or, backwards, the last up to it. -ENOENT. */
int pg_view_seek(struct pg_view *v, size_t hour, bool backwards, pg_mark_test *test, uint64_t value,
                 struct pg_mark *ret_mark);
/* Until when the log stood still behind that mark. Of the newest the cluster's host knows better than the repository.
 * */
int64_t pg_view_still_until(struct engine *e, const struct engine_source *of, const struct pg_view *v,
                            const struct pg_mark *m);

#endif

/* What a repository holds of one set's log: which segments lie there, which timelines lead to the newest one, and the
 * marks on that way, of which one hour is held at a time. Nothing here needs the cluster, which may be gone; only that
 * its log stands still at this moment is asked of its host. */
#include "engine/postgres/archive/archive_view.h"

#include "base/buf.h"
#include "engine/postgres/archive/archive_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int listed(void *ctx, const char *name, uint64_t stored)
{
	struct pg_view *v = ctx;
	uint32_t timeline;
	uint64_t number;
	(void)stored;
	enum pg_wal_kind kind = pg_wal_parse(name, &timeline, &number);
	if (kind == WAL_NONE)
		return 0;
	if (timeline > v->newest)
		v->newest = timeline;
	if (kind != WAL_HISTORY)
		pg_segments_add(&v->known, timeline, number, kind == WAL_SEGMENT);
	return 0;
}

int pg_view_chain(struct pg_view *v, uint32_t timeline, struct pg_chain *chain)
{
	char name[PG_WAL_NAME], *text = NULL;
	size_t n;
	snprintf(name, sizeof name, "%08X.history", timeline);
	int r = timeline > 1 ? repo_wal_get(v->repository, &v->line, name, 1 << 20, &text, &n) : 0;
	if (r == 0)
		pg_chain_parse(chain, timeline, text);
	free(text);
	return r;
}

int pg_view_index_load(struct pg_view *v)
{
	char *text;
	size_t n;
	int r = repo_seconds_get(v->repository, &v->line, 0, &text, &n);
	if (r < 0)
		return r;
	pg_index_parse(&v->index, (struct str){text, n});
	free(text);
	return 0;
}

void pg_view_close(struct pg_view *v)
{
	repository_put(v->repository);
	free(v->known.list);
	free(v->chain.parts);
	free(v->marks.list);
	pg_index_free(&v->index);
}

/* --- marks, by hour */

int pg_view_hour_load(struct pg_view *v, int64_t hour)
{
	char *text;
	size_t n, kept = 0;
	if (v->hour == hour)
		return 0;
	v->marks.count = 0;
	v->hour = -1;
	int r = repo_seconds_get(v->repository, &v->line, hour, &text, &n);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	pg_marks_parse(&v->marks, (struct str){text, n});
	free(text);
	/* What lies behind a fork is no part of the way. */
	for (size_t i = 0; i < v->marks.count; i++)
		if (pg_chain_has(&v->chain, v->marks.list[i].timeline, v->marks.list[i].end))
			v->marks.list[kept++] = v->marks.list[i];
		else if (v->marks.list[i].from_ms > v->left_ms)
			v->left_ms = v->marks.list[i].from_ms;
	v->marks.count = kept;
	v->hour = hour;
	return 0;
}

bool pg_mark_is_from(const struct pg_mark *m, uint64_t lsn)
{
	return m->lsn >= lsn;
}

bool pg_mark_ends_by(const struct pg_mark *m, uint64_t lsn)
{
	return m->end <= lsn;
}

bool pg_mark_is_by(const struct pg_mark *m, uint64_t lsn)
{
	return m->lsn <= lsn;
}

bool pg_mark_is_after(const struct pg_mark *m, uint64_t ms)
{
	return m->from_ms > (int64_t)ms;
}

bool pg_mark_is_not_over(const struct pg_mark *m, uint64_t ms)
{
	return m->to_ms > (int64_t)ms;
}

bool pg_mark_is_over(const struct pg_mark *m, uint64_t ms)
{
	return m->to_ms <= (int64_t)ms;
}

int pg_view_seek(struct pg_view *v, size_t hour, bool backwards, pg_mark_test *test, uint64_t value,
                 struct pg_mark *ret_mark)
{
	while (hour < v->index.hour_count) { /* below 0 is above it too */
		int r = pg_view_hour_load(v, v->index.hours[hour].hour);
		if (r < 0)
			return r;
		for (size_t i = 0; i < v->marks.count; i++) {
			const struct pg_mark *m = &v->marks.list[backwards ? v->marks.count - 1 - i : i];
			if (test(m, value)) {
				*ret_mark = *m;
				return 0;
			}
		}
		hour = backwards ? hour - 1 : hour + 1;
	}
	return -ENOENT;
}

size_t pg_view_hour_of_lsn(const struct pg_view *v, uint64_t lsn)
{
	size_t i = v->index.hour_count;
	while (i > 1 && v->index.hours[i - 1].lsn > lsn)
		i--;
	return i ? i - 1 : 0;
}

size_t pg_view_hour_of_time(const struct pg_view *v, int64_t ms)
{
	size_t i = v->index.hour_count;
	while (i > 1 && v->index.hours[i - 1].hour > ms / PG_HOUR_MS)
		i--;
	return i ? i - 1 : 0;
}

/* --- stretches without a gap */

int pg_view_segment(const struct pg_view *v, const struct pg_chain *chain, uint64_t number)
{
	const struct pg_chain_part *part = pg_chain_part(chain, number);
	const struct pg_segment *g = part ? pg_segments_find(&v->known, part->timeline, number) : NULL;
	return !g ? 0 : g->complete ? 2 : 1;
}

bool pg_view_is_whole(const struct pg_view *v, const struct pg_chain *chain, uint64_t from, uint64_t to)
{
	uint64_t last = (to - 1) / PG_SEGMENT;
	for (uint64_t number = from / PG_SEGMENT; number < last; number++)
		if (pg_view_segment(v, chain, number) < 2)
			return false;
	return pg_view_segment(v, chain, last) > 0;
}

uint64_t pg_view_last(const struct pg_view *v)
{
	for (size_t i = v->known.count; i > 0; i--)
		if (pg_view_segment(v, &v->chain, v->known.list[i - 1].number))
			return v->known.list[i - 1].number;
	return 0;
}

uint64_t pg_view_first(const struct pg_view *v)
{
	return v->known.count ? v->known.list[0].number : 0;
}

/* Whether there is no hole but those that are known, and the newest mark's log is there, which was stored before the
 * mark. */
static bool looks_whole(struct pg_view *v)
{
	struct pg_mark last;
	struct pg_hole hole;
	return !pg_hole_find(&v->known, &v->chain, &v->index, pg_view_first(v), pg_view_last(v), &hole) &&
	       (pg_view_seek(v, v->index.hour_count - 1, true, pg_mark_ends_by, UINT64_MAX, &last) < 0 ||
	        pg_view_is_whole(v, &v->chain, last.lsn, last.end));
}

int pg_view_segments_load(struct pg_view *v)
{
	int r = repo_wal_list(v->repository, &v->line, listed, v), missing = -ENOENT;
	while (r == 0 && missing == -ENOENT && v->newest) {
		missing = pg_view_chain(v, v->newest, &v->chain);
		r = missing == -ENOENT ? 0 : missing;
		v->newest -= missing == -ENOENT;
	}
	return r;
}

int pg_view_open(struct engine *e, const struct engine_source *of, const char *set, bool segments, struct pg_view *v)
{
	*v = (struct pg_view){.line = {of->cluster_id, of->incarnation, set}, .hour = -1, .newest = 1};
	struct pg_archive_now now;
	int r = e->repositories ? repository_get(e->repositories, of->region, of->group_id, &v->repository) : -ENOENT;
	r = r < 0 ? r : pg_view_index_load(v);
	/* Of the segment that is being written the host knows best: a list that is made while it is replaced may miss
	 * it. */
	if (r == 0 && segments && pg_archive_now(e, of, set, &now) && now.stored)
		pg_segments_add(&v->known, now.timeline, (now.stored - 1) / PG_SEGMENT, false);
	r = r < 0 || !segments ? r : pg_view_segments_load(v);
	/* A segment whose beginning is replaced by the whole while the list is made can be missed in both forms. */
	if (r == 0 && segments && !looks_whole(v)) {
		v->hour = -1;
		r = pg_view_segments_load(v);
	}
	if (r < 0)
		pg_view_close(v);
	return r;
}

int64_t pg_view_still_until(struct engine *e, const struct engine_source *of, const struct pg_view *v,
                            const struct pg_mark *m)
{
	struct pg_archive_now now;
	bool same =
	        pg_archive_now(e, of, v->line.set, &now) && now.last.lsn == m->lsn && now.last.timeline == m->timeline;
	return same && now.last.still_ms > m->still_ms ? now.last.still_ms : m->still_ms;
}

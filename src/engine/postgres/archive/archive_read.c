/* What can be restored, told from the archive itself: the windows within which each moment can be, the points that all
 * sets share, and what PostgreSQL is told to recover to. */
#include "engine/postgres/archive/archive_read.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/postgres/archive/archive_common.h"
#include "engine/postgres/archive/archive_view.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"

#include <errno.h>
#include <stdio.h>

#define KEPT_MS 1000

/* --- stretches without a gap */

struct run {
	uint64_t from, to; /* numbers; the last may be there in part */
};

static size_t runs_find(const struct pg_view *v, struct run **ret_runs)
{
	struct run *runs = NULL;
	size_t count = 0;
	bool open = false;
	for (size_t i = 0; i < v->known.count; i++) {
		uint64_t number = v->known.list[i].number;
		if (i && v->known.list[i - 1].number == number)
			continue;
		int state = pg_view_segment(v, &v->chain, number);
		if (state && open && runs[count - 1].to + 1 == number) {
			runs[count - 1].to = number;
		} else if (state) {
			runs = must_realloc(runs, (count + 1) * sizeof *runs);
			runs[count++] = (struct run){number, number};
		}
		open = state == 2;
	}
	*ret_runs = runs;
	return count;
}

/* Of the log from one position to the other. -ENOENT: no moment of it is known. */
static int log_window(struct engine *e, const struct engine_source *of, struct pg_view *v, uint64_t from, uint64_t to,
                      struct engine_window *ret_window)
{
	struct pg_mark first, last;
	int r = pg_view_seek(v, pg_view_hour_of_lsn(v, from), false, pg_mark_is_from, from, &first);
	r = r < 0 ? r : pg_view_seek(v, pg_view_hour_of_lsn(v, to), true, pg_mark_ends_by, to, &last);
	if (r < 0)
		return r;
	if (first.end > to || last.lsn < from)
		return -ENOENT;
	int64_t still = pg_view_still_until(e, of, v, &last), before = last.from_ms - 1;
	*ret_window = (struct engine_window){first.to_ms, still > before ? still : before};
	return ret_window->from_ms <= ret_window->to_ms ? 0 : -ENOENT;
}

/* Where the clock was put back far one window ends and another begins. */
static int run_windows(struct engine *e, const struct engine_source *of, struct pg_view *v, const struct run *run,
                       struct engine_window *list, size_t *count)
{
	uint64_t from = run->from * PG_SEGMENT, end = (run->to + 1) * PG_SEGMENT, to;
	int r = 0;
	for (; from < end && (r == 0 || r == -ENOENT); from = to) {
		uint64_t back = pg_index_back_find(&v->index, from, end);
		to = back ? back : end;
		r = log_window(e, of, v, from, to, &list[*count]);
		*count += r == 0;
	}
	return r == -ENOENT ? 0 : r;
}

static int set_windows(struct engine *e, const struct engine_source *of, const char *set, struct arena *a,
                       struct engine_window **ret_list, size_t *ret_count)
{
	struct pg_view v;
	struct run *runs = NULL;
	*ret_count = 0;
	int r = pg_view_open(e, of, set, true, &v);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	size_t count = runs_find(&v, &runs);
	*ret_list = arena_new_array(a, struct engine_window, count + v.index.back_count + 1);
	for (size_t i = 0; i < count && r == 0; i++)
		r = run_windows(e, of, &v, &runs[i], *ret_list, ret_count);
	free(runs);
	pg_view_close(&v);
	return r;
}

/* --- points of all sets */

/* The views of a cluster's sets, opened when they are needed. */
struct cluster_view {
	struct engine *engine;
	const struct engine_source *of;
	struct pg_view common;
	struct pg_view *sets;
	size_t open;
};

static void cluster_close(struct cluster_view *c)
{
	for (size_t i = 0; i < c->open; i++)
		pg_view_close(&c->sets[i]);
	free(c->sets);
	pg_view_close(&c->common);
}

static int cluster_open(struct engine *e, const struct engine_source *of, struct cluster_view *c)
{
	*c = (struct cluster_view){.engine = e, .of = of};
	return pg_view_open(e, of, PG_COMMON, false, &c->common);
}

static bool is_sharded(const struct cluster_view *c)
{
	return c->common.index.set_count > 1;
}

static const char *only_set(const struct cluster_view *c)
{
	return c->common.index.set_count == 1 ? c->common.index.sets[0] : "0";
}

static int set_open(struct cluster_view *c, const char *set, struct pg_view **ret_view)
{
	for (size_t i = 0; i < c->open; i++)
		if (strcmp(c->sets[i].line.set, set) == 0) {
			*ret_view = &c->sets[i];
			return 0;
		}
	const char *name = NULL; /* one that lives as long as the view */
	for (size_t i = 0; i < c->common.index.set_count; i++)
		if (strcmp(c->common.index.sets[i], set) == 0)
			name = c->common.index.sets[i];
	if (!name)
		return -ENOENT; /* of a set that is no more */
	if (!c->sets)
		c->sets = must_calloc(c->common.index.set_count, sizeof *c->sets);
	int r = pg_view_open(c->engine, c->of, name, true, &c->sets[c->open]);
	if (r == 0)
		*ret_view = &c->sets[c->open++];
	return r;
}

/* Whether all of it is on the way that the sets have gone; 0 or -ENOENT. */
static int common_check(struct cluster_view *c, const struct pg_common *m)
{
	int r = m->count == c->common.index.set_count ? 0 : -ENOENT;
	for (size_t i = 0; i < m->count && r == 0; i++) {
		const struct pg_common_set *s = &m->sets[i];
		struct pg_view *v;
		r = set_open(c, s->name, &v);
		if (r == 0 &&
		    (!pg_chain_has(&v->chain, s->timeline, s->end) || !pg_view_is_whole(v, &v->chain, s->lsn, s->end)))
			r = -ENOENT;
	}
	return r;
}

/* Good ones within [from, to], newest first, until `visit` returns other than 0. */
typedef int common_visit(void *ctx, const struct pg_common *m);
static int commons_visit(struct cluster_view *c, int64_t from_ms, int64_t to_ms, common_visit *visit, void *ctx)
{
	struct pg_common *m = must_calloc(1, sizeof *m);
	int r = 0;
	for (size_t i = c->common.index.hour_count; i > 0 && r == 0; i--) {
		int64_t hour = c->common.index.hours[i - 1].hour;
		char *text;
		size_t n;
		if (hour < from_ms / PG_HOUR_MS || hour > to_ms / PG_HOUR_MS)
			continue;
		r = repo_seconds_get(c->common.repository, &c->common.line, hour, &text, &n);
		if (r < 0) {
			r = r == -ENOENT ? 0 : r;
			continue;
		}
		for (size_t end = n; end > 0 && r == 0;) { /* line by line, from the last */
			size_t begin = end - 1;
			while (begin > 0 && text[begin - 1] != '\n')
				begin--;
			bool good = pg_common_parse((struct str){text + begin, end - 1 - begin}, m) &&
			            m->to_ms >= from_ms && m->to_ms <= to_ms;
			end = begin;
			int checked = good ? common_check(c, m) : -ENOENT;
			r = checked == 0 ? visit(ctx, m) : checked == -ENOENT ? 0 : checked;
		}
		free(text);
	}
	free(m);
	return r;
}

struct bounds {
	int64_t first_ms, last_ms;
	struct pg_common *newest;
	bool one;
};

static int bounds_take(void *ctx, const struct pg_common *m)
{
	struct bounds *b = ctx;
	if (b->newest)
		*b->newest = *m;
	b->first_ms = m->to_ms;
	b->last_ms = b->last_ms ? b->last_ms : m->to_ms;
	return b->one;
}

/* Each to the points that lie in it. */
static int windows_narrow(struct cluster_view *c, struct engine_window *list, size_t *count)
{
	size_t kept = 0;
	int r = 0;
	for (size_t i = 0; i < *count && r >= 0; i++) {
		struct bounds last = {.one = true}, first = {0};
		struct engine_window w = list[i];
		r = commons_visit(c, w.from_ms, w.to_ms, bounds_take, &last);
		if (r >= 0 && last.last_ms) {
			/* The first is in the first hour, or, where that has none, later. */
			int64_t end = w.from_ms - w.from_ms % PG_HOUR_MS + PG_HOUR_MS;
			r = commons_visit(c, w.from_ms, end < w.to_ms ? end : w.to_ms, bounds_take, &first);
			if (r >= 0 && !first.first_ms)
				r = commons_visit(c, w.from_ms, w.to_ms, bounds_take, &first);
			list[kept++] = (struct engine_window){first.first_ms, last.last_ms};
		}
	}
	*count = kept;
	return r < 0 ? r : 0;
}

/* What lies in both. */
static size_t windows_meet(struct arena *a, const struct engine_window *x, size_t xs, const struct engine_window *y,
                           size_t ys, struct engine_window **ret_list)
{
	struct engine_window *list = arena_new_array(a, struct engine_window, xs + ys + 1);
	size_t count = 0;
	for (size_t i = 0; i < xs; i++)
		for (size_t k = 0; k < ys; k++) {
			int64_t from = x[i].from_ms > y[k].from_ms ? x[i].from_ms : y[k].from_ms;
			int64_t to = x[i].to_ms < y[k].to_ms ? x[i].to_ms : y[k].to_ms;
			if (from <= to && count < xs + ys)
				list[count++] = (struct engine_window){from, to};
		}
	*ret_list = list;
	return count;
}

/* --- what was told a moment ago */

static bool kept_is(const struct pg_windows *k, const struct engine_source *of)
{
	return strcmp(k->cluster, of->cluster_id) == 0 && strcmp(k->incarnation, of->incarnation) == 0 &&
	       strcmp(k->region, of->region) == 0;
}

static bool kept_find(struct engine *e, const struct engine_source *of, struct arena *a,
                      struct engine_window **ret_list, size_t *ret_count)
{
	bool found = false;
	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; i < PG_WINDOWS_KEPT && !found; i++) {
		const struct pg_windows *k = &e->windows[i];
		found = kept_is(k, of) && pg_mono_ms() < k->until_ms;
		if (found) {
			*ret_list = arena_grow(a, k->list, k->count, k->count + 1, sizeof *k->list);
			*ret_count = k->count;
		}
	}
	pthread_mutex_unlock(&e->lock);
	return found;
}

static void kept_set(struct engine *e, const struct engine_source *of, const struct engine_window *list, size_t count)
{
	if (count > PG_WINDOWS_KEPT)
		return;
	pthread_mutex_lock(&e->lock);
	struct pg_windows *k = &e->windows[0];
	for (size_t i = 0; i < PG_WINDOWS_KEPT; i++)
		if (kept_is(&e->windows[i], of) || (!kept_is(k, of) && e->windows[i].until_ms < k->until_ms))
			k = &e->windows[i];
	snprintf(k->cluster, sizeof k->cluster, "%s", of->cluster_id);
	snprintf(k->incarnation, sizeof k->incarnation, "%s", of->incarnation);
	snprintf(k->region, sizeof k->region, "%s", of->region);
	k->until_ms = pg_mono_ms() + KEPT_MS;
	k->count = count;
	if (count)
		memcpy(k->list, list, count * sizeof *list);
	pthread_mutex_unlock(&e->lock);
}

static int windows_find(struct engine *e, const struct engine_source *of, struct arena *a,
                        struct engine_window **ret_list, size_t *ret_count)
{
	struct cluster_view c;
	int r = cluster_open(e, of, &c);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	const size_t sets = c.common.index.set_count;
	for (size_t i = 0; i < sets && r == 0; i++) {
		struct engine_window *list = NULL;
		size_t count = 0;
		r = set_windows(e, of, c.common.index.sets[i], a, &list, &count);
		if (r == 0 && i == 0) {
			*ret_list = list;
			*ret_count = count;
		} else if (r == 0) {
			*ret_count = windows_meet(a, *ret_list, *ret_count, list, count, ret_list);
		}
	}
	if (r == 0 && is_sharded(&c))
		r = windows_narrow(&c, *ret_list, ret_count);
	cluster_close(&c);
	return r;
}

int pg_backup_window(struct engine *e, const struct engine_source *of, struct arena *a, struct engine_window **ret_list,
                     size_t *ret_count)
{
	*ret_list = NULL;
	*ret_count = 0;
	if (kept_find(e, of, a, ret_list, ret_count))
		return 0;
	int r = windows_find(e, of, a, ret_list, ret_count);
	if (r == 0)
		kept_set(e, of, *ret_list, *ret_count);
	return r;
}

struct gather {
	struct arena *arena;
	struct engine_checkpoint *list;
	size_t count, max;
};

static int gather_common(void *ctx, const struct pg_common *m)
{
	struct gather *g = ctx;
	pg_common_tell(m, g->arena, &g->list[g->count++]);
	return g->count == g->max;
}

/* Of one set: its marks. */
static int gather_marks(struct pg_view *v, int64_t from_ms, int64_t to_ms, struct gather *g)
{
	for (size_t i = v->index.hour_count; i > 0 && g->count < g->max; i--) {
		int64_t hour = v->index.hours[i - 1].hour;
		if (hour < from_ms / PG_HOUR_MS || hour > to_ms / PG_HOUR_MS)
			continue;
		int r = pg_view_hour_load(v, hour);
		if (r < 0)
			return r;
		for (size_t k = v->marks.count; k > 0 && g->count < g->max; k--) {
			const struct pg_mark *m = &v->marks.list[k - 1];
			struct pg_common one = {m->from_ms, m->to_ms, 1, {{"", m->timeline, m->lsn, m->end}}};
			snprintf(one.sets[0].name, sizeof one.sets[0].name, "%s", v->line.set);
			if (m->to_ms >= from_ms && m->to_ms <= to_ms && pg_view_is_whole(v, &v->chain, m->lsn, m->end))
				pg_common_tell(&one, g->arena, &g->list[g->count++]);
		}
	}
	return 0;
}

int pg_backup_checkpoints(struct engine *e, const struct engine_source *of, int64_t from_ms, int64_t to_ms, size_t max,
                          struct arena *a, struct engine_checkpoint **ret_list, size_t *ret_count)
{
	struct cluster_view c;
	struct pg_view *v;
	*ret_count = 0;
	*ret_list = NULL;
	int r = max ? cluster_open(e, of, &c) : -ENOENT;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct gather g = {a, arena_new_array(a, struct engine_checkpoint, max), 0, max};
	if (is_sharded(&c))
		r = commons_visit(&c, from_ms, to_ms, gather_common, &g);
	else if ((r = set_open(&c, only_set(&c), &v)) == 0)
		r = gather_marks(v, from_ms, to_ms, &g);
	cluster_close(&c);
	*ret_list = g.list;
	*ret_count = g.count;
	return r < 0 && r != -ENOENT ? r : 0;
}

int pg_backup_position(struct engine *e, const struct engine_source *of, int64_t time_ms,
                       struct engine_position *ret_position, uint64_t *ret_second_lsn)
{
	struct cluster_view c;
	struct pg_view *v;
	struct pg_mark m, second;
	int r = cluster_open(e, of, &c);
	if (r < 0)
		return r;
	r = is_sharded(&c) ? -ENOENT : set_open(&c, only_set(&c), &v);
	r = r < 0 ? r : pg_view_seek(v, pg_view_hour_of_time(v, time_ms), true, pg_mark_is_over, (uint64_t)time_ms, &m);
	if (r == 0) {
		int64_t begin = time_ms - time_ms % 1000;
		*ret_position = (struct engine_position){.timeline = m.timeline, .lsn = m.lsn};
		snprintf(ret_position->set, sizeof ret_position->set, "%s", v->line.set);
		r = pg_view_seek(v, pg_view_hour_of_time(v, begin), true, pg_mark_is_over, (uint64_t)begin, &second);
		*ret_second_lsn = r == 0 ? second.lsn : m.lsn;
		r = r == -ENOENT ? 0 : r;
	}
	cluster_close(&c);
	return r;
}

/* --- from a point to what PostgreSQL is told */

/* Whether recovery by time gets from one position to the other: it stops at the first commit that is later, and before
 * the clock was put back there are such. */
static bool is_passable(const struct pg_view *v, const struct pg_mark *from, const struct pg_mark *to)
{
	return !pg_index_back_find(&v->index, from->lsn, to->lsn) && pg_view_is_whole(v, &v->chain, from->lsn, to->end);
}

/* A mark that is over at that time, and one that begins after it. */
static int time_resolve(struct engine *e, const struct engine_source *of, struct pg_view *v,
                        const struct engine_point *point, struct pg_target *ret_target)
{
	struct pg_mark before, after = {0}, during = {0};
	const int64_t time_ms = point->time_ms;
	size_t hour = pg_view_hour_of_time(v, time_ms);
	int r = pg_view_seek(v, hour, true, pg_mark_is_over, (uint64_t)time_ms, &before);
	if (r < 0)
		return r;
	int later = pg_view_seek(v, hour, false, pg_mark_is_after, (uint64_t)time_ms, &after);
	if (later < 0 && later != -ENOENT)
		return later;
	/* A mark that was being made then: what was committed since the one before it may be older than the moment. */
	int made = pg_view_seek(v, hour, false, pg_mark_is_not_over, (uint64_t)time_ms, &during);
	if (made < 0 && made != -ENOENT)
		return made;
	bool making = made == 0 && during.from_ms <= time_ms;
	/* Who has found the point knew that the log stood still, which the repository may not know yet; unless what it
	 * was found by was a later mark, which went with a former primary. */
	bool known = later < 0 && v->left_ms <= time_ms && point->position.lsn == before.lsn &&
	             point->position.timeline == before.timeline;
	if (((known && !making) || pg_view_still_until(e, of, v, &before) >= time_ms) &&
	    pg_view_is_whole(v, &v->chain, before.lsn, before.end)) {
		*ret_target = (struct pg_target){
		        .timeline = before.timeline, .lsn = before.lsn, .least = before.lsn, .end = before.end};
		return 0;
	}
	/* Nothing follows that mark, or a hole does: its own log has all that was committed until the moment. */
	if (making && (later < 0 || !is_passable(v, &before, &after))) {
		if (!known && pg_view_still_until(e, of, v, &during) < time_ms)
			return -ENOENT;
		after = during;
		later = 0;
	}
	if (later < 0 || !is_passable(v, &before, &after))
		return -ENOENT;
	*ret_target = (struct pg_target){
	        .timeline = after.timeline, .time_us = time_ms * 1000, .least = before.lsn, .end = after.end};
	return 0;
}

static int position_resolve(struct pg_view *v, const struct engine_position *p, struct pg_target *ret_target)
{
	struct pg_mark before, after;
	size_t hour = pg_view_hour_of_lsn(v, p->lsn);
	if (p->timeline && !pg_chain_has(&v->chain, p->timeline, p->lsn))
		return -ENOENT;
	int r = pg_view_seek(v, hour, false, pg_mark_is_from, p->lsn, &after);
	if (r < 0)
		return r;
	r = pg_view_seek(v, hour, true, pg_mark_is_by, p->lsn, &before);
	if (r < 0 && r != -ENOENT)
		return r;
	if (!pg_view_is_whole(v, &v->chain, p->lsn, after.end))
		return -ENOENT;
	*ret_target = (struct pg_target){
	        .timeline = after.timeline, .lsn = p->lsn, .least = r == 0 ? before.lsn : 0, .end = after.end};
	return 0;
}

/* The point of all sets at that very time: one that went with a former primary is not replaced by an earlier one, which
 * nobody has asked for. */
static int common_resolve(struct cluster_view *c, int64_t time_ms, const char *set, struct pg_target *ret_target)
{
	struct pg_common *m = must_calloc(1, sizeof *m);
	struct bounds b = {.newest = m, .one = true};
	int r = commons_visit(c, time_ms, time_ms, bounds_take, &b);
	r = r < 0 ? r : b.last_ms ? 0 : -ENOENT;
	size_t i = 0;
	while (r == 0 && i < m->count && strcmp(m->sets[i].name, set) != 0)
		i++;
	if (r == 0 && i == m->count)
		r = -ENOENT;
	if (r == 0)
		*ret_target = (struct pg_target){.timeline = m->sets[i].timeline,
		                                 .lsn = m->sets[i].lsn,
		                                 .least = m->sets[i].lsn,
		                                 .end = m->sets[i].end};
	free(m);
	return r;
}

int pg_archive_resolve(struct engine *e, const struct engine_source *of, const struct engine_point *point,
                       const char *set, struct pg_target *ret_target, const char **ret_why)
{
	struct cluster_view c;
	struct pg_view *v;
	int r = point->kind == POINT_SNAPSHOT ? -EINVAL : cluster_open(e, of, &c);
	if (r == -ENOENT)
		pg_why_set(ret_why, "nothing of the cluster's log was kept");
	else if (r < 0)
		pg_why_set(ret_why, "the archive cannot be read: %s", r == -EINVAL ? strerror(-r) : repository_why());
	if (r < 0)
		return r;
	if (is_sharded(&c))
		r = point->kind == POINT_TIME ? common_resolve(&c, point->time_ms, set, ret_target) : -ENOENT;
	else if ((r = set_open(&c, set, &v)) == 0)
		r = point->kind == POINT_TIME ? time_resolve(e, of, v, point, ret_target)
		                              : position_resolve(v, &point->position, ret_target);
	cluster_close(&c);
	if (r == -ENOENT)
		pg_why_set(ret_why,
		           "the cluster's log was not kept without a gap around that point, or not until then");
	else if (r < 0)
		pg_why_set(ret_why, "the archive cannot be read: %s", repository_why());
	return r;
}

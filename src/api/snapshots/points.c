/* Which point a request means, and whether it can be restored: the engine tells what it has without gaps, the catalogue
 * which snapshots are kept. Both have to hold. */
#include "api/snapshots/points.h"

#include "api/snapshots/catalogue.h"
#include "api/snapshots/snapshot.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

#define MOMENT_LAST INT64_C(253402300799999) /* of the year 9999 */

/* One incarnation of the cluster's data, with its snapshots. */
struct era {
	struct engine_source source;
	struct engine_window *windows;
	size_t count;
};

struct search {
	struct call *call;
	struct backup_line line;
	struct snapshot *snapshots;
	size_t snapshot_count;
	struct wanted_point wanted;
	struct engine_window nearest;
};

static int catalogue_read(struct search *s, struct tx *reader)
{
	struct call *c = s->call;
	tx_begin_read(reader);
	int r = backup_line_load(c, &s->line);
	if (r == 0)
		r = snapshots_of(reader, c->arena, s->line.doc.id, &s->snapshots, &s->snapshot_count);
	tx_end_read(reader);
	tx_rest(reader);
	return r;
}

/* The window begins with the first snapshot in it that is kept. */
static bool window_trim(const struct search *s, const struct era *e, struct engine_window *w)
{
	int64_t first = 0;
	for (size_t i = 0; i < s->snapshot_count; i++) {
		int64_t at = json_number(s->snapshots[i].plan, "at");
		if (snapshot_is_base(&s->snapshots[i], &e->source, w) && (!first || at < first))
			first = at;
	}
	w->from_ms = first;
	return first;
}

static const struct snapshot *base_of(const struct search *s, const struct era *e, const struct engine_window *w,
                                      int64_t at_ms)
{
	const struct snapshot *best = NULL;
	for (size_t i = 0; i < s->snapshot_count; i++) {
		const struct snapshot *one = &s->snapshots[i];
		int64_t at = json_number(one->plan, "at");
		if (snapshot_is_base(one, &e->source, w) && at <= at_ms &&
		    (!best || at > json_number(best->plan, "at")))
			best = one;
	}
	return best;
}

static int64_t distance(const struct engine_window *w, int64_t at_ms)
{
	return at_ms < w->from_ms ? w->from_ms - at_ms : at_ms > w->to_ms ? at_ms - w->to_ms : 0;
}

static void nearest_note(struct search *s, const struct engine_window *w)
{
	if (!s->nearest.to_ms || distance(w, s->wanted.ms) < distance(&s->nearest, s->wanted.ms))
		s->nearest = *w;
}

/* By a position within the second. */
static int position_find(const struct search *s, const struct era *e, const struct engine_window *w, int64_t units,
                         struct engine_point *point)
{
	const struct service *service = s->call->service;
	const struct engine_backup_ops *backup = service->engine_ops->backup;
	struct engine_position at, end;
	uint64_t second, other;
	int r = backup->position(service->engine_state, &e->source, s->wanted.ms, &at, &second);
	if (r == 0)
		r = backup->position(service->engine_state, &e->source, w->to_ms, &end, &other);
	if (r < 0)
		return r;
	at.lsn = second + (uint64_t)(units - 1) * POSITION_UNIT;
	if (at.lsn > end.lsn)
		return -ENOENT;
	*point = (struct engine_point){.kind = POINT_POSITION, .time_ms = s->wanted.ms, .position = at};
	return 0;
}

/* Sets of a sharded cluster agree only at its checkpoints. */
static int checkpoint_find(const struct search *s, const struct era *e, const struct engine_window *w,
                           struct engine_point *point)
{
	const struct service *service = s->call->service;
	struct engine_checkpoint *list;
	size_t count = 0;
	int r = service->engine_ops->backup->checkpoints(service->engine_state, &e->source, w->from_ms, s->wanted.ms, 1,
	                                                 s->call->arena, &list, &count);
	if (r < 0 || !count)
		return r < 0 ? r : -ENOENT;
	*point = (struct engine_point){.kind = POINT_TIME, .time_ms = list[0].at_ms};
	return 0;
}

/* What lies at that time, for an engine that alone knows so far that nothing has happened since. */
static void position_note(const struct search *s, const struct era *e, struct engine_point *point)
{
	const struct service *service = s->call->service;
	uint64_t second;
	if (service->engine_ops->backup->position(service->engine_state, &e->source, point->time_ms, &point->position,
	                                          &second) < 0)
		point->position = (struct engine_position){.lsn = 0};
}

static int64_t units_of(int64_t increment)
{
	return increment > INCREMENT_BASE ? increment - INCREMENT_BASE : increment;
}

static int era_search(struct search *s, const struct era *e, struct found_point *found)
{
	int64_t increment = s->wanted.increment;
	for (size_t i = 0; i < e->count; i++) {
		struct engine_window w = e->windows[i];
		if (!window_trim(s, e, &w))
			continue;
		nearest_note(s, &w);
		/* A position's second may begin before the window does. */
		if (s->wanted.ms + (increment ? 999 : 0) < w.from_ms || s->wanted.ms > w.to_ms)
			continue;
		found->units = increment ? units_of(increment) : 1;
		found->point = (struct engine_point){.kind = POINT_TIME, .time_ms = s->wanted.ms};
		int r = increment                            ? position_find(s, e, &w, found->units, &found->point)
		        : json_flag(s->line.body, "sharded") ? checkpoint_find(s, e, &w, &found->point)
		                                             : 0;
		if (r < 0 && r != -ENOENT)
			return r;
		const struct snapshot *base = base_of(s, e, &w, increment ? s->wanted.ms + 999 : found->point.time_ms);
		if (r < 0 || !base)
			continue;
		if (found->point.kind == POINT_TIME && !json_flag(s->line.body, "sharded"))
			position_note(s, e, &found->point);
		found->from = e->source;
		found->base = *base;
		found->at_ms = found->point.time_ms;
		snprintf(found->from.snapshot_id, sizeof found->from.snapshot_id, "%.*s", STR_ARG(base->doc.id));
		return 1;
	}
	return 0;
}

bool window_seconds(const struct engine_window *w, int64_t *ret_from, int64_t *ret_to)
{
	*ret_from = (w->from_ms + 999) / 1000;
	*ret_to = w->to_ms / 1000;
	return *ret_from <= *ret_to;
}

struct str windows_text(struct arena *a, const struct restorable *list, size_t count)
{
	struct buf b = {0};
	char begin[CLOCK_TEXT], end[CLOCK_TEXT];
	int64_t from, to;
	for (size_t i = 0, told = 0; i < count && told < WINDOWS_TOLD; i++) {
		if (!window_seconds(&list[i].window, &from, &to))
			continue;
		clock_format(from * 1000, begin);
		clock_format(to * 1000, end);
		buf_printf(&b, "%s%s/%s", told++ ? ", " : "", begin, end);
	}
	if (!b.n)
		buf_printf(&b, "none");
	return buf_keep(&b, a);
}

static int point_refuse(struct search *s, const char *field)
{
	char from[CLOCK_TEXT], to[CLOCK_TEXT];
	int64_t first, last;
	if (!s->nearest.to_ms)
		return call_fail_field(s->call, 400, "POINT_IN_TIME_NOT_RESTORABLE", field,
		                       "no point in time of this cluster can be restored: pitEnabled has kept none.");
	window_seconds(&s->nearest, &first, &last);
	clock_format(first * 1000, from);
	clock_format(last * 1000, to);
	return call_fail_field(s->call, 400, "POINT_IN_TIME_NOT_RESTORABLE", field,
	                       "cannot be restored. The nearest points that can are from %s (%lld) to %s (%lld).", from,
	                       (long long)first, to, (long long)last);
}

int point_unavailable(struct call *c)
{
	call_header(c, STR("retry-after"), STR("5"));
	return call_fail(c, 503, "REPOSITORY_UNAVAILABLE",
	                 "The repository of the cluster's backups cannot be read. Try again in 5 seconds.");
}

/* The line's own region, and those that its log is copied to. */
static size_t region_count(const struct search *s)
{
	return json_array_size(json_object_get(s->line.body, "logCopies")) + 1;
}

static size_t era_count(const struct search *s)
{
	return json_array_size(json_object_get(s->line.body, "ended")) + 1;
}

/* The data that the cluster has now, then what it had before its last restore, and so on. */
static int era_open(const struct search *s, size_t region, size_t i, struct era *e)
{
	const struct service *service = s->call->service;
	const json_t *ended = json_object_get(s->line.body, "ended");
	*e = (struct era){.source = backup_source(&s->line)};
	if (region)
		snprintf(e->source.region, sizeof e->source.region, "%.*s",
		         STR_ARG(json_item(json_object_get(s->line.body, "logCopies"), region - 1)));
	if (i)
		snprintf(e->source.incarnation, sizeof e->source.incarnation, "%.*s",
		         STR_ARG(json_field(json_array_get(ended, json_array_size(ended) - i), "id")));
	return service->engine_ops->backup->window(service->engine_state, &e->source, s->call->arena, &e->windows,
	                                           &e->count);
}

/* Whether the line's own region, which is away, could have it: it has a snapshot from before. */
static bool first_may_have(const struct search *s)
{
	bool found = false;
	for (size_t i = 0; i < s->snapshot_count; i++) {
		const struct snapshot *one = &s->snapshots[i];
		found |= snapshot_is(one, "completed") && snapshot_lies_in(one, json_field(s->line.body, "region")) &&
		         json_number(one->plan, "at") <= s->wanted.ms + 999;
	}
	return found && s->wanted.ms <= clock_now_ms();
}

/* Copies serve where the first has not what is asked for, or is away. */
static int eras_search(struct search *s, struct found_point *found)
{
	int answer = 0;
	for (size_t region = 0; region < region_count(s); region++) {
		int r = 0;
		for (size_t i = 0; r == 0 && i < era_count(s); i++) {
			struct era e;
			r = era_open(s, region, i, &e);
			if (r == 0)
				r = era_search(s, &e, found);
		}
		if (r > 0)
			return r;
		answer = region == 0 ? r : answer;
	}
	return s->nearest.to_ms && !(answer < 0 && first_may_have(s)) ? 0 : answer;
}

static int region_list(const struct search *s, size_t region, struct restorable **list, size_t *made)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < era_count(s); i++) {
		struct era e;
		r = era_open(s, region, i, &e);
		if (r < 0)
			break;
		*list = arena_grow(s->call->arena, *list, *made, *made + e.count + 1, sizeof **list);
		for (size_t k = e.count; k-- > 0;)
			if (window_trim(s, &e, &e.windows[k]))
				(*list)[(*made)++] = (struct restorable){e.source, e.windows[k]};
	}
	return r;
}

int points_list(struct call *c, const struct backup_line *line, struct restorable **ret_list, size_t *ret_count)
{
	struct search s = {.call = c, .line = *line};
	int r = snapshots_of(c->tx, c->arena, line->doc.id, &s.snapshots, &s.snapshot_count), answer = 0;
	*ret_list = NULL;
	*ret_count = 0;
	/* Those of a copy where the first tells of none: what both have is listed once. */
	for (size_t region = 0; r == 0 && !*ret_count && region < region_count(&s); region++) {
		int result = region_list(&s, region, ret_list, ret_count);
		answer = region == 0 ? result : answer;
	}
	return r < 0 ? r : *ret_count || answer == 0 ? 0 : point_unavailable(c);
}

int point_find(struct call *c, struct tx *reader, const struct wanted_point *wanted)
{
	struct search s = {.call = c, .wanted = *wanted};
	/* pointInTimeUTCMillis has no upper bound, and sums are made of it below. */
	if (s.wanted.ms > MOMENT_LAST)
		s.wanted.ms = MOMENT_LAST;
	struct found_point *found = arena_new_of(c->arena, struct found_point);
	int r = catalogue_read(&s, reader);
	if (r < 0)
		return r;
	if (wanted->increment && json_flag(s.line.body, "sharded"))
		return call_fail_fault(c, str_of(wanted->field),
		                       "a sharded cluster has no one position; give a point in time");
	*found = (struct found_point){.wanted = *wanted};
	r = eras_search(&s, found);
	if (r == 0)
		return point_refuse(&s, wanted->field);
	if (r > 0)
		c->prepared = found;
	return r < 0 ? point_unavailable(c) : 0;
}

int prepare_with_reader(struct call *c, int (*find)(struct call *c, struct tx *reader))
{
	/* This thread has no reader of its own. */
	struct tx *reader = store_reader(c->service->store), *before = c->tx;
	if (!reader)
		return call_fail_store(c, -EIO, c->op->id);
	c->tx = reader;
	int r = find(c, reader);
	if (r == -ENOENT)
		r = call_not_found(c);
	c->tx = before;
	store_reader_free(reader);
	return r < 0 && !c->problem.status ? call_fail_store(c, r, c->op->id) : r;
}

/* Servers count shapes in memory, from when they were started on: of "the last hour" they know nothing, and what they
 * counted ends with them. So every few minutes what they have counted since is added to a document of the time it was
 * in. Periods are of ten minutes, and after some hours they become whole hours, which are kept for a week.
 *
 *   "shape_period"  parent = the cluster's id, name "START-LENGTH" in milliseconds; secret {"counted": [entry ...]}
 *   "shape_counts"  id = the cluster's; secret {"since": when this began, "thinned": the last hour that became one,
 *                   "seen": {NODE: when its last shape was seen, by its own clock}, "last": {NODE: [entry ...]},
 *                   "known": {FINGERPRINT: {"text", "database", "table", "command", "application", "first", "last"}}}
 *
 * Entries are those of counted.h. `last` is what the server said when it was last asked. Texts have no values in them,
 * and are sealed as secrets all the same: names of columns and comments are the tenant's. */
#include "api/query_shapes/history.h"

#include "api/kit/verbs.h"
#include "api/query_shapes/counted.h"
#include "api/query_shapes/plans.h"
#include "api/query_shapes/query_shapes.h"
#include "base/clock.h"
#include "base/id.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PERIOD_KIND "shape_period"
#define COUNTS_KIND "shape_counts"
#define COLLECT_JOB "shapes_collect"
#define COLLECT_MS 300000
#define FINE_MS 600000
#define HOUR_MS 3600000LL
#define FINE_KEPT_MS (3 * HOUR_MS)
#define KEPT_MS (168 * HOUR_MS) /* a week */
#define PERIOD_SHAPES 100       /* of a period, on all nodes: those that took longest */
#define LAST_SHAPES 500         /* of a node: those that were seen last */
#define SLOW_US 90000           /* the least threshold, and the error of a bucket */
#define KNOWN_SHAPES 400        /* of a cluster */

/* --- what is new */

/* By the period that it was in. */
struct growth {
	struct grown {
		int64_t start_ms;
		struct counted_list counted;
	} * list;
	size_t count, room;
};

static struct counted_list *grown_at(struct arena *a, struct growth *g, int64_t start_ms)
{
	for (size_t i = 0; i < g->count; i++)
		if (g->list[i].start_ms == start_ms)
			return &g->list[i].counted;
	ARENA_FIT(a, g->list, g->count, g->room);
	g->list[g->count] = (struct grown){.start_ms = start_ms};
	return &g->list[g->count++].counted;
}

static int by_last(const void *a, const void *b)
{
	const struct engine_shape *x = a, *y = b;
	return x->last_ms > y->last_ms ? -1 : x->last_ms < y->last_ms;
}

static bool last_find(struct arena *a, const json_t *last, const char *fingerprint, struct counted *ret_counted)
{
	const json_t *entry;
	size_t i;
	json_array_foreach(last, i, entry)
	{
		if (str_is(json_item(entry, 1), fingerprint))
			return counted_read(a, entry, ret_counted);
	}
	return false;
}

static void known_put(json_t *known, const struct engine_shape *s)
{
	json_t *one = json_default(known, s->fingerprint, json_object());
	json_int_t first = json_number(one, "first");
	if (*s->text || !json_field(one, "text").n)
		json_put_z(one, "text", s->text);
	json_put_z(one, "database", s->database);
	json_put_z(one, "table", s->table);
	json_put_z(one, "command", s->command);
	if (!first || s->first_ms <= first) {
		json_put_z(one, "application", s->application);
		json_put(one, "first", json_integer(s->first_ms));
	}
	if (s->last_ms > json_number(one, "last"))
		json_put(one, "last", json_integer(s->last_ms));
}

/* What a node has counted since it was last asked, of the shapes that it has seen last. True: there is something to
 * note. */
static bool node_add(struct arena *a, json_t *counts, const struct shapes_told *told, int64_t now, struct growth *g)
{
	json_t *seen = json_default(counts, "seen", json_object()), *all = json_default(counts, "last", json_object());
	json_t *known = json_default(counts, "known", json_object()), *last = json_array();
	const json_t *before = json_object_get(all, told->node);
	int64_t seen_ms = before ? json_number(seen, told->node) : now - FINE_MS;
	bool complete = before && json_array_size(before) < LAST_SHAPES;
	bool grown = false;
	struct engine_shape *list = arena_new_array(a, struct engine_shape, told->count + 1);
	memcpy(list, told->list, told->count * sizeof *list);
	qsort(list, told->count, sizeof *list, by_last);
	for (size_t i = 0; i < told->count && i < LAST_SHAPES; i++) {
		struct counted was;
		bool there = last_find(a, before, list[i].fingerprint, &was);
		/* One that is not among all that were there is new, whatever the clocks say. */
		bool fresh = complete && !there;
		struct engine_shape more = counted_since(&list[i], there ? &was.of : NULL, fresh ? -1 : seen_ms);
		int64_t at = more.last_ms < now ? more.last_ms : now;
		grown |= !there; /* what it grows by is known from now on */
		(void)!json_array_append_new(last, counted_write(told->node, &list[i]));
		if (!more.calls)
			continue;
		grown = true;
		known_put(known, &list[i]);
		counted_add(a, grown_at(a, g, at - at % FINE_MS), told->node, &more);
	}
	json_put(seen, told->node, json_integer(told->count ? list[0].last_ms : seen_ms));
	json_put(all, told->node, last);
	return grown;
}

static int known_by_last(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	json_int_t one = json_number(x, "last"), other = json_number(y, "last");
	return one > other ? -1 : one < other;
}

/* Texts of shapes that were not seen for longest go. */
static void known_cut(struct arena *a, json_t *known)
{
	size_t count = json_object_size(known), n = 0;
	const char *name;
	json_t *one;
	void *next;
	if (count <= KNOWN_SHAPES)
		return;
	json_t **all = arena_new_array(a, json_t *, count);
	json_object_foreach(known, name, one) all[n++] = one;
	qsort(all, count, sizeof *all, known_by_last);
	json_int_t oldest = json_number(all[KNOWN_SHAPES - 1], "last");
	json_object_foreach_safe(known, next, name, one)
	{
		if (json_number(one, "last") < oldest)
			json_object_del(known, name);
	}
}

static bool history_add(struct arena *a, json_t *counts, const struct shapes *live, int64_t now, struct growth *g)
{
	bool grown = false;
	json_default(counts, "since", json_integer(now - now % FINE_MS));
	for (size_t i = 0; i < live->told_count; i++)
		grown |= node_add(a, counts, &live->told[i], now, g);
	known_cut(a, json_object_get(counts, "known"));
	return grown;
}

static int counts_load(struct tx *tx, struct arena *a, struct str cluster_id, struct doc *ret_doc, json_t **ret_counts)
{
	int r = tx_get(tx, a, COUNTS_KIND, cluster_id, ret_doc);
	if (r == -ENOENT)
		*ret_doc = (struct doc){
		        .kind = STR(COUNTS_KIND), .id = cluster_id, .parent = cluster_id, .body = STR("{}")};
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_counts = ret_doc->secret.n ? doc_json(a, ret_doc->secret) : json_new(a);
	return r;
}

/* --- periods */

static bool period_parse(struct arena *a, struct str name, struct history_span *ret_span)
{
	int64_t start, length;
	if (sscanf(arena_z(a, name), "%" SCNd64 "-%" SCNd64, &start, &length) != 2 || length <= 0)
		return false;
	*ret_span = (struct history_span){start, start + length};
	return true;
}

static void period_read(struct arena *a, const struct doc *d, struct counted_list *list)
{
	const json_t *entry, *entries = json_object_get(d->secret.n ? doc_json(a, d->secret) : NULL, "counted");
	size_t i;
	json_array_foreach(entries, i, entry)
	{
		struct counted one;
		if (counted_read(a, entry, &one))
			counted_add(a, list, one.node, &one.of);
	}
}

/* Adds to the document of that period. */
static int period_add(struct tx *tx, struct arena *a, struct str cluster_id, int64_t start_ms, int64_t length_ms,
                      const struct counted_list *more)
{
	struct str name = arena_printf(a, "%" PRId64 "-%" PRId64, start_ms, length_ms);
	struct counted_list all = {.list = NULL};
	struct doc d;
	int r = tx_get_by_name(tx, a, PERIOD_KIND, cluster_id, name, &d);
	if (r == -ENOENT)
		d = doc_new(a, PERIOD_KIND, cluster_id, name, STR("{}"));
	else if (r < 0)
		return r;
	period_read(a, &d, &all);
	for (size_t i = 0; i < more->count; i++)
		counted_add(a, &all, more->list[i].node, &more->list[i].of);
	counted_cut(&all, PERIOD_SHAPES);
	json_t *kept = json_new(a), *entries = json_default(kept, "counted", json_array());
	for (size_t i = 0; i < all.count; i++)
		(void)!json_array_append_new(entries, counted_write(all.list[i].node, &all.list[i].of));
	d.secret = json_text(a, kept);
	return doc_put(tx, &d);
}

static int period_join(struct tx *tx, struct arena *a, const struct doc *head, int64_t hour_ms)
{
	struct counted_list list = {.list = NULL};
	struct doc d;
	int r = tx_get(tx, a, PERIOD_KIND, head->id, &d);
	if (r == 0) {
		period_read(a, &d, &list);
		r = period_add(tx, a, head->parent, hour_ms, HOUR_MS, &list);
	}
	return r < 0 ? r : tx_delete(tx, PERIOD_KIND, head->id);
}

/* Once an hour: short periods become hours, and old ones go; so do those of a clock that was ahead. */
static int periods_thin(struct tx *tx, struct arena *a, struct str cluster_id, json_t *counts, int64_t now)
{
	struct doc *heads;
	size_t count;
	if (json_number(counts, "thinned") == now / HOUR_MS)
		return 0;
	json_put(counts, "thinned", json_integer(now / HOUR_MS));
	int r = tx_heads(tx, a, PERIOD_KIND, &cluster_id, &heads, &count);
	for (size_t i = 0; i < count && r == 0; i++) {
		struct history_span span;
		heads[i].parent = cluster_id;
		bool known = period_parse(a, heads[i].name, &span);
		if (!known || span.to_ms <= now - KEPT_MS || span.from_ms > now + HOUR_MS)
			r = tx_delete(tx, PERIOD_KIND, heads[i].id);
		else if (span.to_ms - span.from_ms == FINE_MS && span.to_ms <= now - FINE_KEPT_MS)
			r = period_join(tx, a, &heads[i], span.from_ms - span.from_ms % HOUR_MS);
	}
	return r;
}

/* --- noting */

int history_note(struct tx *tx, struct arena *a, struct str cluster_id, const struct shapes *live, int64_t now)
{
	struct growth g = {.list = NULL};
	struct doc d;
	json_t *counts;
	int r = counts_load(tx, a, cluster_id, &d, &counts);
	if ((r < 0 && r != -ENOENT) || !history_add(a, counts, live, now, &g))
		return r == -ENOENT ? 0 : r;
	r = 0;
	for (size_t i = 0; i < g.count && r == 0; i++)
		r = period_add(tx, a, cluster_id, g.list[i].start_ms, FINE_MS, &g.list[i].counted);
	r = r < 0 ? r : periods_thin(tx, a, cluster_id, counts, now);
	d.secret = json_text(a, counts);
	return r < 0 ? r : doc_put(tx, &d);
}

/* --- reading */

static bool is_asked(const struct shapes *live, bool all_nodes, const char *node)
{
	bool asked = all_nodes;
	for (size_t i = 0; i < live->node_count && !asked; i++)
		asked = strcmp(live->nodes[i], node) == 0;
	return asked;
}

/* What is shown of a shape beside its figures. */
static void shape_name(struct arena *a, struct engine_shape *s, const struct shapes *live, const json_t *counts)
{
	const json_t *known = json_object_get(json_object_get(counts, "known"), s->fingerprint);
	s->text = arena_z(a, json_field(known, "text"));
	s->database = arena_z(a, json_field(known, "database"));
	s->table = arena_z(a, json_field(known, "table"));
	s->command = arena_z(a, json_field(known, "command"));
	s->application = arena_z(a, json_field(known, "application"));
	if (json_number(known, "first"))
		s->first_ms = json_number(known, "first");
	for (size_t i = 0; i < live->count; i++) {
		const struct engine_shape *now = &live->list[i].of;
		if (strcmp(now->fingerprint, s->fingerprint) != 0)
			continue;
		s->text = *now->text ? now->text : s->text;
		s->database = now->database;
		s->table = now->table;
		s->command = now->command;
		s->refused = now->refused;
	}
}

static bool is_touched(const struct history_span *period, const struct history_span *span)
{
	return period->to_ms > span->from_ms && period->from_ms <= span->to_ms;
}

static void span_widen(struct history_span *s, const struct history_span *by)
{
	s->from_ms = !s->to_ms || by->from_ms < s->from_ms ? by->from_ms : s->from_ms;
	s->to_ms = by->to_ms > s->to_ms ? by->to_ms : s->to_ms;
}

/* The short periods that a span touches, whether or not there is anything of them. */
static struct history_span span_round(const struct history_span *span, int64_t since_ms, int64_t now)
{
	int64_t from = span->from_ms > since_ms ? span->from_ms : since_ms, to = span->to_ms < now ? span->to_ms : now;
	from -= from % FINE_MS;
	to += FINE_MS - to % FINE_MS;
	return (struct history_span){from, to > from ? to : from};
}

static int periods_read(struct tx *tx, struct arena *a, struct str cluster_id, const struct history_span *span,
                        struct counted_list *list, struct history_span *told)
{
	struct doc *heads, d;
	size_t count;
	int r = tx_heads(tx, a, PERIOD_KIND, &cluster_id, &heads, &count);
	for (size_t i = 0; i < count && r == 0; i++) {
		struct history_span period;
		if (!period_parse(a, heads[i].name, &period) || !is_touched(&period, span))
			continue;
		r = tx_get(tx, a, PERIOD_KIND, heads[i].id, &d);
		if (r == 0) {
			period_read(a, &d, list);
			span_widen(told, &period);
		}
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

/* What the nodes have counted since they were last asked. */
static void growth_read(struct arena *a, const struct growth *g, const struct history_span *span,
                        struct counted_list *list)
{
	for (size_t i = 0; i < g->count; i++) {
		const struct history_span period = {g->list[i].start_ms, g->list[i].start_ms + FINE_MS};
		const struct counted_list *more = &g->list[i].counted;
		for (size_t k = 0; k < more->count && is_touched(&period, span); k++)
			counted_add(a, list, more->list[k].node, &more->list[k].of);
	}
}

int history_read(struct tx *tx, struct arena *a, struct str cluster_id, const struct shapes *live, bool all_nodes,
                 const struct history_span *span, int64_t now, struct shapes *ret_shapes, struct history_span *ret_span)
{
	struct counted_list list = {.list = NULL}, joined = {.list = NULL};
	struct growth g = {.list = NULL};
	struct doc d;
	json_t *counts;
	int r = counts_load(tx, a, cluster_id, &d, &counts);
	if (r < 0)
		return r;
	struct history_span told = span_round(span, json_number(counts, "since"), now);
	r = periods_read(tx, a, cluster_id, span, &list, &told);
	if (r < 0)
		return r;
	(void)history_add(a, counts, live, now, &g);
	growth_read(a, &g, span, &list);
	for (size_t i = 0; i < list.count; i++)
		if (is_asked(live, all_nodes, list.list[i].node))
			counted_add(a, &joined, "", &list.list[i].of);
	struct shapes shapes = {.answered = live->answered, .lacks = live->lacks};
	shapes.list = arena_new_array(a, struct shape, joined.count + 1);
	for (size_t i = 0; i < joined.count; i++) {
		shapes.list[shapes.count].of = joined.list[i].of;
		shape_name(a, &shapes.list[shapes.count++].of, live, counts);
	}
	shapes_sort(&shapes);
	*ret_shapes = shapes;
	*ret_span = told;
	return 0;
}

/* --- collecting */

struct adding {
	struct arena *arena;
	struct str cluster_id;
	const struct shapes *live;
	int64_t now_ms;
};

/* A cluster that is gone meanwhile has taken its history along. */
static int add_run(struct tx *tx, void *ctx)
{
	const struct adding *w = ctx;
	struct cluster cluster;
	int r = cluster_get(tx, w->arena, w->cluster_id, &cluster);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return history_note(tx, w->arena, w->cluster_id, w->live, w->now_ms);
}

/* Whether something took as long as the least threshold of slow statements, which are in the nodes' logs. */
static bool is_slow(const struct growth *g)
{
	bool slow = false;
	for (size_t i = 0; i < g->count; i++)
		for (size_t k = 0; k < g->list[i].counted.count; k++)
			for (unsigned b = latency_bucket(SLOW_US); b < LATENCY_BUCKETS && !slow; b++)
				slow = g->list[i].counted.list[k].of.buckets[b] > 0;
	return slow;
}

/* Most clusters have had nothing to note since: those cost no write. */
static int cluster_collect(struct job_run *r, struct str cluster_id)
{
	const struct service *s = r->ctx;
	struct arena *a = arena_new();
	struct shapes live = {.list = NULL};
	struct growth g = {.list = NULL};
	struct doc d;
	json_t *counts = NULL;
	int result = shapes_gather(s, a, cluster_id, STR_NONE, &live);
	if (result == 0 && live.count) {
		tx_begin_read(r->reader);
		result = counts_load(r->reader, a, cluster_id, &d, &counts);
		job_read_end(r);
		result = result == -ENOENT ? 0 : result;
	}
	struct adding w = {.arena = a, .cluster_id = cluster_id, .live = &live, .now_ms = clock_now_ms()};
	if (result == 0 && live.count && history_add(a, counts, &live, w.now_ms, &g))
		result = store_write_wait(s->store, add_run, &w);
	if (result == 0 && is_slow(&g))
		result = plans_collect(r, a, cluster_id, &live);
	arena_free(a);
	return result == -EAGAIN || result == -ENOENT ? 0 : result; /* it does not run: next time */
}

static int collect_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	int result = s->engine_ops->shapes ? clusters_take_here(r, cluster_collect) : 0;
	return result < 0 ? result : JOB_DONE;
}

static const struct job_kind kinds[] = {
        {.name = COLLECT_JOB,
         .step = collect_step,
         .period_ms = COLLECT_MS,
         .per_node = true,
         .lasts = JOB_IS_BACKGROUND},
};
const struct job_kinds query_shapes_jobs = JOB_KINDS(kinds);

int history_removed(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	int r = tx_delete_list(tx, PERIOD_KIND, cluster->doc.id);
	r = r == -ENOENT ? 0 : r;
	r = r < 0 ? r : tx_delete(tx, COUNTS_KIND, cluster->doc.id);
	r = r == -ENOENT ? 0 : r;
	return r < 0 ? r : plans_removed(tx, cluster);
}

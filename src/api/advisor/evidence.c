/* What suggested indexes rest on, over days: servers count statements in memory, which ends with a crash, an upgrade
 * and a failover, and give old ones up for new ones. So every few minutes what they have counted since is added to a
 * document of the cluster, day by day, and what is older than two weeks is taken away.
 *
 *   "advice_evidence"  id = the cluster's; secret {"statements": [{"node","database","user","query","text",
 *                      "last": [calls, rows, ms], "days": [[day, calls, rows, ms], ...]}]}
 *
 *
 * `last` is what the server said when it was last asked. A smaller figure was begun anew. Texts have no values in
 * them, and are sealed as secrets are all the same: names of columns and comments are the tenant's. */
#include "api/advisor/evidence.h"

#include "api/kit/verbs.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

#define EVIDENCE_KIND "advice_evidence"
#define COLLECT_JOB "advice_collect"
#define COLLECT_MS 300000
#define STATEMENTS_KEPT 300 /* of a cluster */
#define DAYS_KEPT 14
#define DAY_MS 86400000LL

enum figure { CALLS, ROWS, MS, FIGURES };

/* --- one statement */

static double figure_at(const json_t *list, size_t i)
{
	return json_number_value(json_array_get(list, i));
}

static json_t *entry_find(json_t *list, const struct engine_statement *s)
{
	json_t *entry;
	size_t i;
	json_array_foreach(list, i, entry)
	{
		if (json_number(entry, "query") == s->query && str_is(json_field(entry, "node"), s->node) &&
		    str_is(json_field(entry, "database"), s->database) && str_is(json_field(entry, "user"), s->user))
			return entry;
	}
	return NULL;
}

static json_t *entry_new(json_t *list, const struct engine_statement *s)
{
	json_t *entry = json_object();
	json_put_z(entry, "node", s->node);
	json_put_z(entry, "database", s->database);
	json_put_z(entry, "user", s->user);
	json_put(entry, "query", json_integer(s->query));
	json_put_z(entry, "text", s->text);
	json_put(entry, "days", json_array());
	(void)!json_array_append_new(list, entry);
	return entry;
}

static json_t *day_of(json_t *entry, int64_t day)
{
	json_t *days = json_object_get(entry, "days"), *last = json_array_get(days, json_array_size(days) - 1);
	if (last && json_integer_value(json_array_get(last, 0)) == day)
		return last;
	last = json_array();
	(void)!json_array_append_new(last, json_integer(day));
	for (int i = 0; i < FIGURES; i++)
		(void)!json_array_append_new(last, json_real(0));
	(void)!json_array_append_new(days, last);
	return last;
}

/* Adds what is new since the server was last asked. False: nothing is. */
static bool entry_count(json_t *entry, const struct engine_statement *s, int64_t day)
{
	const double now[FIGURES] = {(double)s->calls, (double)s->rows, s->ms};
	const json_t *last = json_object_get(entry, "last");
	bool anew = now[CALLS] < figure_at(last, CALLS) || now[MS] < figure_at(last, MS);
	if (last && !anew && now[CALLS] <= figure_at(last, CALLS))
		return false;
	json_t *today = day_of(entry, day), *told = json_array();
	for (int i = 0; i < FIGURES; i++) {
		double more = now[i] - (anew ? 0 : figure_at(last, (size_t)i));
		(void)!json_array_set_new(today, (size_t)i + 1, json_real(figure_at(today, (size_t)i + 1) + more));
		(void)!json_array_append_new(told, json_real(now[i]));
	}
	json_put(entry, "last", told);
	return true;
}

/* The sum of one figure over the days from one to another, both included. */
static double entry_sum(const json_t *entry, enum figure of, int64_t from, int64_t to)
{
	const json_t *day, *days = json_object_get(entry, "days");
	double sum = 0;
	size_t i;
	json_array_foreach(days, i, day)
	{
		int64_t at = json_integer_value(json_array_get(day, 0));
		sum += at >= from && at <= to ? figure_at(day, (size_t)of + 1) : 0;
	}
	return sum;
}

/* --- all of a cluster */

static int by_time(const void *a, const void *b)
{
	const json_t *one = *(json_t *const *)a, *other = *(json_t *const *)b;
	double x = entry_sum(one, MS, 0, INT64_MAX), y = entry_sum(other, MS, 0, INT64_MAX);
	return x > y ? -1 : x < y;
}

/* Those that took longest stay. */
static void evidence_cut(struct arena *a, json_t *list)
{
	size_t count = json_array_size(list);
	if (count <= STATEMENTS_KEPT)
		return;
	json_t **all = arena_new_array(a, json_t *, count);
	for (size_t i = 0; i < count; i++)
		all[i] = json_incref(json_array_get(list, i));
	qsort(all, count, sizeof(json_t *), by_time);
	json_array_clear(list);
	for (size_t i = 0; i < count; i++) {
		if (i < STATEMENTS_KEPT)
			(void)!json_array_append(list, all[i]);
		json_decref(all[i]);
	}
}

/* Old days go. A statement that has none left stays as long as its server tells of it: it would be new again. */
static void evidence_age(json_t *list, const struct engine_statements *live, int64_t today)
{
	for (size_t i = json_array_size(list); i-- > 0;) {
		json_t *entry = json_array_get(list, i), *days = json_object_get(entry, "days");
		while (json_array_size(days) &&
		       json_integer_value(json_array_get(json_array_get(days, 0), 0)) <= today - DAYS_KEPT)
			json_array_remove(days, 0);
		bool told = false;
		for (size_t k = 0; k < live->count && !told && !json_array_size(days); k++)
			told = live->list[k].query == json_number(entry, "query") &&
			       str_is(json_field(entry, "node"), live->list[k].node);
		if (!json_array_size(days) && !told)
			json_array_remove(list, i);
	}
}

static bool evidence_add(struct arena *a, json_t *list, const struct engine_statements *live, int64_t now_ms)
{
	bool changed = false;
	for (size_t i = 0; i < live->count; i++) {
		json_t *entry = entry_find(list, &live->list[i]);
		changed |=
		        entry_count(entry ? entry : entry_new(list, &live->list[i]), &live->list[i], now_ms / DAY_MS);
	}
	evidence_age(list, live, now_ms / DAY_MS);
	evidence_cut(a, list);
	return changed;
}

static int evidence_load(struct tx *tx, struct arena *a, struct str cluster_id, struct doc *ret_doc, json_t **ret_list)
{
	int r = tx_get(tx, a, EVIDENCE_KIND, cluster_id, ret_doc);
	if (r == -ENOENT) {
		*ret_doc = (struct doc){
		        .kind = STR(EVIDENCE_KIND), .id = cluster_id, .parent = cluster_id, .body = STR("{}")};
		r = 0;
	}
	if (r < 0)
		return r;
	json_t *kept = ret_doc->secret.n ? doc_json(a, ret_doc->secret) : json_new(a);
	*ret_list = json_default(kept, "statements", json_array());
	return 0;
}

int evidence_statements(struct tx *tx, struct arena *a, struct str cluster_id, const struct engine_statements *live,
                        const struct period *period, struct engine_statements *ret_statements)
{
	struct doc d;
	json_t *list = NULL, *entry;
	size_t i;
	int r = evidence_load(tx, a, cluster_id, &d, &list);
	if (r < 0)
		return r;
	(void)evidence_add(a, list, live, clock_now_ms());
	struct engine_statements s = {.list = arena_new_array(a, struct engine_statement, json_array_size(list) + 1),
	                              .missing = live->missing};
	int64_t from = period ? period->from_ms / DAY_MS : 0, to = period ? period->to_ms / DAY_MS : INT64_MAX;
	json_array_foreach(list, i, entry)
	{
		double calls = entry_sum(entry, CALLS, from, to);
		if (calls < 1)
			continue;
		s.list[s.count++] = (struct engine_statement){.node = arena_z(a, json_field(entry, "node")),
		                                              .database = arena_z(a, json_field(entry, "database")),
		                                              .user = arena_z(a, json_field(entry, "user")),
		                                              .query = json_number(entry, "query"),
		                                              .text = arena_z(a, json_field(entry, "text")),
		                                              .calls = (int64_t)calls,
		                                              .rows = (int64_t)entry_sum(entry, ROWS, from, to),
		                                              .ms = entry_sum(entry, MS, from, to)};
	}
	*ret_statements = s;
	return 0;
}

/* --- collecting */

struct adding {
	struct arena *arena;
	struct str cluster_id;
	const struct engine_statements *live;
	int64_t now_ms;
};

/* A cluster that is gone meanwhile has taken its evidence along. */
static int add_run(struct tx *tx, void *ctx)
{
	const struct adding *w = ctx;
	struct cluster cluster;
	struct doc d;
	json_t *list = NULL;
	int r = cluster_get(tx, w->arena, w->cluster_id, &cluster);
	if (r == 0)
		r = evidence_load(tx, w->arena, w->cluster_id, &d, &list);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (!evidence_add(w->arena, list, w->live, w->now_ms))
		return 0;
	json_t *kept = json_new(w->arena);
	(void)!json_object_set(kept, "statements", list);
	d.secret = json_text(w->arena, kept);
	return doc_put(tx, &d);
}

/* Most clusters have had nothing to note since: those cost no write. */
static int cluster_collect(struct job_run *r, struct str cluster_id)
{
	const struct service *s = r->ctx;
	struct arena *a = arena_new();
	struct engine_statements live = {.count = 0};
	struct doc d;
	json_t *list = NULL;
	int result = s->engine_ops->advice->statements(s->engine_state, arena_z(a, cluster_id), a, &live);
	if (result == 0 && live.count) {
		tx_begin_read(r->reader);
		result = evidence_load(r->reader, a, cluster_id, &d, &list);
		job_read_end(r);
	}
	struct adding w = {.arena = a, .cluster_id = cluster_id, .live = &live, .now_ms = clock_now_ms()};
	if (result == 0 && live.count && evidence_add(a, list, &live, w.now_ms))
		result = store_write_wait(s->store, add_run, &w);
	arena_free(a);
	return result == -EAGAIN || result == -ENOENT ? 0 : result; /* it does not run: next time */
}

static int collect_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	int result = s->engine_ops->advice ? clusters_take_here(r, cluster_collect) : 0;
	return result < 0 ? result : JOB_DONE;
}

static const struct job_kind kinds[] = {
        {.name = COLLECT_JOB,
         .step = collect_step,
         .period_ms = COLLECT_MS,
         .per_node = true,
         .lasts = JOB_IS_BACKGROUND},
};
const struct job_kinds advisor_jobs = JOB_KINDS(kinds);

int evidence_removed(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	int r = tx_delete(tx, EVIDENCE_KIND, cluster->doc.id);
	return r == -ENOENT ? 0 : r;
}

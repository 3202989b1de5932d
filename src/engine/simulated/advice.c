/* What advice a simulated cluster would get: a function of the clock and the node's name, the same whenever it is
 * asked. docs/advisor.md tells it to users. Each node that runs has one statement on the table `orders` of the
 * database `postgres` every ten minutes of the clock, at the full ten minutes; the k-th since 1970 takes 120 + 40 *
 * (k mod 10) milliseconds, and is written down when that is at least the threshold: 100 ms fixed, 200 ms managed.
 * Every third is one on the table `events`. */
#include "engine/simulated/state.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>

#define EVERY_MS 600000LL
#define DATABASE "postgres"
#define ORDERS 4711
#define EVENTS 4712

/* 0 when the node is there and runs; from when on, and its cluster's threshold. */
static int node_look(struct engine *e, const char *cluster_id, const char *node, int64_t *ret_from, int *ret_threshold)
{
	int r = -ENOENT;
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *s = sim_cluster_find(e, cluster_id);
	for (size_t i = 0; s && s->exists && i < s->node_count; i++) {
		const struct node_status *n = &s->nodes[i];
		if (strcmp(n->name, node) != 0)
			continue;
		r = n->state == NODE_RUNNING ? 0 : -EAGAIN;
		*ret_from = n->started_ms;
		*ret_threshold = s->slow_fixed ? ENGINE_SLOW_FIXED_MS : ENGINE_SLOW_MANAGED_MS;
	}
	pthread_mutex_unlock(&e->lock);
	return r;
}

static struct engine_slow slow_make(struct arena *a, const struct engine_slow_question *q, int64_t k)
{
	bool orders = k % 3 != 0;
	int64_t ms = 120 + 40 * (k % 10), at = k * EVERY_MS;
	const char *table = orders ? "orders" : "events";
	char time[CLOCK_TEXT];
	clock_format(at, time);
	struct engine_slow s = {.at_ms = at,
	                        .ms = (double)ms,
	                        .namespace = engine_namespace(a, DATABASE, "public", table),
	                        .operation = orders ? "select" : "update",
	                        .examined = 200000,
	                        .returned = orders ? 20 : 1,
	                        .sorts = orders,
	                        .by_user = true,
	                        .query = orders ? ORDERS : EVENTS};
	s.line = arena_printf(a,
	                      "{\"timestamp\":\"%s\",\"user\":\"app\",\"dbname\":\"" DATABASE
	                      "\",\"query_id\":%lld,\"message\":\"%s",
	                      time, (long long)s.query, q->redact ? "redacted\"}" : "");
	if (!q->redact)
		s.line = arena_printf(a, "%.*sduration: %lld.000 ms  plan: %s on %s where customer = %lld\"}",
		                      STR_ARG(s.line), (long long)ms, s.operation, table, (long long)k % 2000);
	return s;
}

static int sim_slow(struct engine *e, const struct engine_slow_question *q, struct arena *a,
                    struct engine_slow **ret_list, size_t *ret_count)
{
	int64_t from = 0, now = clock_now_ms();
	int threshold = 0, r = node_look(e, q->cluster_id, q->node, &from, &threshold);
	if (r < 0 && r != -EAGAIN)
		return r;
	struct engine_slow *list = NULL;
	size_t count = 0, room = 0;
	from = from > q->from_ms ? from : q->from_ms;
	int64_t to = q->to_ms < now + 1 ? q->to_ms : now + 1;
	for (int64_t k = (to - 1) / EVERY_MS; r == 0 && k * EVERY_MS >= from && to > from && count < q->most; k--) {
		struct engine_slow one = slow_make(a, q, k);
		if (one.ms < threshold || !engine_namespace_is_of(&q->of, one.namespace))
			continue;
		ARENA_FIT(a, list, count, room);
		list[count++] = one;
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}

static bool is_asked(const struct node_status *n, const struct str *nodes, size_t count)
{
	bool asked = count == 0;
	for (size_t i = 0; i < count && !asked; i++)
		asked = str_is(nodes[i], n->name);
	return asked && n->state == NODE_RUNNING;
}

/* Nodes that run and are asked, and since when the oldest of them does. */
static int nodes_count(struct engine *e, const char *cluster_id, const struct str *nodes, size_t count,
                       int64_t *ret_from)
{
	int found = 0;
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *s = sim_cluster_find(e, cluster_id);
	bool exists = s && s->exists;
	*ret_from = 0;
	for (size_t i = 0; exists && i < s->node_count; i++)
		if (is_asked(&s->nodes[i], nodes, count)) {
			found++;
			if (!*ret_from || s->nodes[i].started_ms < *ret_from)
				*ret_from = s->nodes[i].started_ms;
		}
	pthread_mutex_unlock(&e->lock);
	return exists ? found : -ENOENT;
}

/* What it suggests is a function of the clock, and rests on nothing that was counted. */
static int sim_statements(struct engine *e, const char *cluster_id, struct arena *a,
                          struct engine_statements *ret_statements)
{
	*ret_statements = (struct engine_statements){.count = 0};
	return 0;
}

/* One index, of which the simulated statements on `orders` would have had use. */
static int sim_indexes(struct engine *e, const char *cluster_id, const struct str *nodes, size_t node_count,
                       const struct engine_statements *statements, const struct engine_namespaces *of, struct arena *a,
                       struct engine_suggestions *ret_suggestions)
{
	static const char *const columns[] = {"customer", "placed"}, *const operators[] = {"=", ">"};
	int64_t from;
	int found = nodes_count(e, cluster_id, nodes, node_count, &from);
	if (found < 0)
		return found;
	int64_t count = found ? (clock_now_ms() - from) / EVERY_MS * found : 0;
	*ret_suggestions = (struct engine_suggestions){.since_ms = from};
	const char *namespace = engine_namespace(a, DATABASE, "public", "orders");
	if (!count || !engine_namespace_is_of(of, namespace))
		return 0;
	struct engine_condition *shape = arena_new_of(a, struct engine_condition);
	*shape = (struct engine_condition){.query = ORDERS,
	                                   .columns = columns,
	                                   .operators = operators,
	                                   .column_count = 2,
	                                   .count = count,
	                                   .examined = 10000,
	                                   .before = 4540,
	                                   .after = 22.5};
	struct engine_suggestion *one = arena_new_of(a, struct engine_suggestion);
	*one = (struct engine_suggestion){.namespace = namespace,
	                                  .database = DATABASE,
	                                  .schema = "public",
	                                  .table = "orders",
	                                  .columns = {"customer", "placed"},
	                                  .column_count = 2,
	                                  .row_bytes = 120,
	                                  .index_bytes = 4 << 20,
	                                  .shapes = shape,
	                                  .shape_count = 1};
	ret_suggestions->list = one;
	ret_suggestions->count = 1;
	return 0;
}

static int sim_drops(struct engine *e, const char *cluster_id, struct arena *a, struct engine_drop **ret_list,
                     size_t *ret_count)
{
	static const struct engine_drop all[] = {
	        {DROP_REDUNDANT, DATABASE ".orders", "orders_product", "[{\"product\":1}]", 12, 4 << 20, 0, 0},
	        {DROP_UNUSED, DATABASE ".events", "events_kind", "[{\"kind\":1},{\"at\":-1}]", 0, 8 << 20, 0, 0}};
	int64_t from;
	int found = nodes_count(e, cluster_id, NULL, 0, &from);
	if (found < 0)
		return found;
	struct engine_drop *list = arena_new_array(a, struct engine_drop, 2);
	for (size_t i = 0; i < 2; i++) {
		list[i] = all[i];
		list[i].since_ms = from;
	}
	*ret_list = list;
	*ret_count = found ? 2 : 0;
	return 0;
}

static int sim_notes(struct engine *e, const char *cluster_id, struct arena *a, struct engine_notes *ret_notes)
{
	static struct engine_note all[] = {{NOTE_LONG_ARRAYS, DATABASE ".orders", "tags", 2500},
	                                   {NOTE_CASELESS_SEARCH, DATABASE ".events", "kind", 1200}};
	int64_t from;
	int found = nodes_count(e, cluster_id, NULL, 0, &from);
	if (found < 0)
		return found;
	*ret_notes = (struct engine_notes){all, found ? 2 : 0, NULL};
	return 0;
}

const struct engine_advice_ops sim_advice = {
        .slow = sim_slow, .statements = sim_statements, .indexes = sim_indexes, .drops = sim_drops, .notes = sim_notes};

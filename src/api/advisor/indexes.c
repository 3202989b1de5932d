/* Suggested indexes, of a process or of a cluster: what the engine has tried, with ids that stay, and with examples
 * from the slow statements. Conditions are shown without what they compare with: those are data, and whoever may read
 * the project may read this. */
#include "api/advisor/evidence.h"
#include "api/kit/verbs.h"
#include "api/metrics/metrics.h"
#include "base/clock.h"
#include "store/seal.h"

#include <errno.h>
#include <math.h>

#define EXAMPLES_MAX 100
#define EXAMPLES_US 5000000 /* after which no further log is read for them */
#define INDEXES_MAX 1000
#define SLOW_READ 5000 /* slow statements in which examples are looked for, of each process */

struct advice {
	struct call *call;
	const char *cluster_id;
	struct period period;
	struct engine_suggestions found;
	struct engine_slow *slow;
	size_t slow_count, slow_room;
	int64_t examples;
};

static struct str id_of(struct arena *a, struct str text)
{
	char hex[65];
	sha256_hex(text, hex);
	return arena_printf(a, "%.24s", hex);
}

static struct str shape_id(struct arena *a, const struct engine_suggestion *of, const struct engine_condition *s)
{
	struct buf b = {0};
	buf_printf(&b, "shape\n%s\n%lld", of->namespace, (long long)s->query);
	for (size_t i = 0; i < s->column_count; i++)
		buf_printf(&b, "\n%s %s", s->columns[i], s->operators[i]);
	return id_of(a, buf_keep(&b, a));
}

static struct str index_id(struct arena *a, const struct engine_suggestion *s)
{
	struct buf b = {0};
	buf_printf(&b, "index\n%s", s->namespace);
	for (size_t i = 0; i < s->column_count; i++)
		buf_printf(&b, "\n%s", s->columns[i]);
	return id_of(a, buf_keep(&b, a));
}

/* --- asking */

static int examples_read(struct advice *x, const char *node)
{
	struct call *c = x->call;
	const struct service *s = c->service;
	struct str *tables = arena_new_array(c->arena, struct str, x->found.count + 1);
	struct engine_slow *list;
	size_t count = 0;
	for (size_t i = 0; i < x->found.count; i++)
		tables[i] = str_of(x->found.list[i].namespace);
	struct engine_slow_question q = {.cluster_id = x->cluster_id,
	                                 .node = node,
	                                 .from_ms = x->period.from_ms,
	                                 .to_ms = x->period.to_ms,
	                                 .of = {tables, x->found.count},
	                                 .most = SLOW_READ,
	                                 .redact = true};
	int result = s->engine_ops->advice->slow(s->engine_state, &q, c->arena, &list, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		ARENA_FIT(c->arena, x->slow, x->slow_count, x->slow_room);
		x->slow[x->slow_count++] = list[i];
	}
	return result;
}

/* From all that is kept, unless a period is asked for. */
static int evidence_read(struct advice *x, struct engine_statements *ret_statements)
{
	struct call *c = x->call;
	const struct service *s = c->service;
	struct engine_statements live;
	bool all = !call_query(c, "since").n && !call_query(c, "until").n && !call_query(c, "duration").n;
	int result = s->engine_ops->advice->statements(s->engine_state, x->cluster_id, c->arena, &live);
	if (result < 0)
		return result;
	return evidence_statements(c->tx, c->arena, str_of(x->cluster_id), &live, all ? NULL : &x->period,
	                           ret_statements);
}

/* A period that has ended before anything was counted has nothing of it. */
static int suggestions_read(struct advice *x, const struct str *nodes, size_t node_count)
{
	struct call *c = x->call;
	const struct service *s = c->service;
	struct engine_namespaces of = advice_namespaces(c);
	int result = advice_enter(c);
	if (result < 0)
		return result;
	struct engine_statements statements;
	result = evidence_read(x, &statements);
	if (result == 0)
		result = s->engine_ops->advice->indexes(s->engine_state, x->cluster_id, nodes, node_count, &statements,
		                                        &of, c->arena, &x->found);
	if (result == 0 && x->found.since_ms && x->period.to_ms < x->found.since_ms)
		x->found.count = 0;
	int64_t end_us = clock_mono_us() + EXAMPLES_US;
	for (size_t i = 0; result == 0 && x->found.count && i < node_count && clock_mono_us() < end_us; i++)
		result = examples_read(x, arena_z(c->arena, nodes[i]));
	advice_leave(c);
	if (result == 0)
		advice_missing(c, x->found.missing);
	return result;
}

/* --- the document */

static void example_write(struct buf *b, const struct engine_condition *s, const struct engine_slow *slow)
{
	json_open(b, '{');
	json_key(b, "predicates");
	json_open(b, '[');
	for (size_t i = 0; i < s->column_count; i++) {
		json_open(b, '{');
		json_key(b, s->columns[i]);
		json_z(b, s->operators[i]);
		json_close(b, '}');
	}
	json_close(b, ']');
	if (slow) {
		json_key(b, "stats");
		json_open(b, '{');
		json_pair_int(b, "ms", llround(slow->ms));
		json_pair_int(b, "nReturned", slow->returned);
		json_pair_int(b, "nScanned", slow->examined);
		json_pair_int(b, "ts", slow->at_ms);
		json_close(b, '}');
	}
	json_close(b, '}');
}

static void shape_write(const struct advice *x, struct buf *b, const struct engine_suggestion *of,
                        const struct engine_condition *s, struct str id)
{
	double sum = 0;
	int64_t seen = 0;
	json_open(b, '{');
	json_key(b, "operations");
	json_open(b, '[');
	for (size_t i = 0; i < x->slow_count; i++) {
		const struct engine_slow *slow = &x->slow[i];
		if (slow->query != s->query || strcmp(slow->namespace, of->namespace) != 0)
			continue;
		if (seen < x->examples)
			example_write(b, s, slow);
		sum += slow->ms;
		seen++;
	}
	/* None of them was slow: what it asks for is known nevertheless. */
	if (!seen && x->examples)
		example_write(b, s, NULL);
	json_close(b, ']');
	json_pair_int(b, "avgMs", seen ? llround(sum / (double)seen) : 0);
	json_pair_int(b, "count", s->count);
	json_pair_str(b, "id", id);
	json_pair_int(b, "inefficiencyScore", llround(s->examined));
	json_pair_str(b, "namespace", str_of(of->namespace));
	json_close(b, '}');
}

static void index_write(struct arena *a, struct buf *b, const struct engine_suggestion *s)
{
	double before = 0, after = 0;
	json_open(b, '{');
	advice_put_real(b, "avgObjSize", s->row_bytes);
	json_pair_str(b, "id", index_id(a, s));
	json_key(b, "impact");
	json_open(b, '[');
	for (size_t i = 0; i < s->shape_count; i++) {
		json_str(b, shape_id(a, s, &s->shapes[i]));
		before += s->shapes[i].before * (double)s->shapes[i].count;
		after += s->shapes[i].after * (double)s->shapes[i].count;
	}
	json_close(b, ']');
	json_key(b, "index");
	json_open(b, '[');
	for (size_t i = 0; i < s->column_count; i++) {
		json_open(b, '{');
		json_key(b, s->columns[i]);
		json_int(b, 1);
		json_close(b, '}');
	}
	json_close(b, ']');
	json_pair_str(b, "namespace", str_of(s->namespace));
	advice_put_real(b, "weight", before > 0 ? 100 * (before - after) / before : 0);
	json_close(b, '}');
}

static void document_write(const struct advice *x, struct buf *b, size_t from, size_t to)
{
	struct arena *a = x->call->arena;
	struct str *shown = NULL;
	size_t count = 0, room = 0;
	to = to < x->found.count ? to : x->found.count;
	json_open(b, '{');
	json_key(b, "shapes");
	json_open(b, '[');
	for (size_t i = from; i < to; i++)
		for (size_t k = 0; k < x->found.list[i].shape_count; k++) {
			const struct engine_suggestion *s = &x->found.list[i];
			struct str id = shape_id(a, s, &s->shapes[k]);
			const struct engine_namespaces before = {shown, count};
			if (count && engine_namespace_is_of(&before, id.p))
				continue;
			ARENA_FIT(a, shown, count, room);
			shown[count++] = id;
			shape_write(x, b, s, &s->shapes[k], id);
		}
	json_close(b, ']');
	json_key(b, "suggestedIndexes");
	json_open(b, '[');
	for (size_t i = from; i < to; i++)
		index_write(a, b, &x->found.list[i]);
	json_close(b, ']');
	json_close(b, '}');
}

int process_indexes_list(struct call *c)
{
	struct advice x = {.call = c};
	struct cluster cluster;
	struct node_status node;
	int64_t most;
	int result = process_find(c, &cluster, &node);
	if (result == 0)
		result = c->service->engine_ops->advice ? advice_period(c, &x.period) : cluster_not_offered(c);
	if (result == 0)
		result = advice_number(c, "nExamples", 5, EXAMPLES_MAX, &x.examples);
	if (result == 0)
		result = advice_number(c, "nIndexes", INDEXES_MAX, INT64_C(1) << 52, &most);
	if (result != 0)
		return result < 0 ? result : 0;
	struct str name = str_of(node.name);
	x.cluster_id = arena_z(c->arena, cluster.doc.id);
	result = suggestions_read(&x, &name, 1);
	if (result < 0)
		return result == -EAGAIN ? process_silent(c, &node) : result;
	x.found.count = (size_t)most < x.found.count ? (size_t)most : x.found.count;
	size_t from = (size_t)list_offset(c);
	document_write(&x, &c->out, from, from + (size_t)c->page_size);
	return 0;
}

/* The names of the processes that are asked about: those of processIds, or all that run. */
static int nodes_choose(struct call *c, const struct cluster_status *status, struct str **ret_names, size_t *ret_count)
{
	struct str *ids, *names = arena_new_array(c->arena, struct str, status->node_count + 1);
	size_t id_count = advice_list(c, "processIds", &ids), count = 0;
	for (size_t i = 0; i < id_count; i++) {
		bool found = false;
		for (size_t k = 0; k < status->node_count && !found; k++)
			found = str_eq(ids[i],
			               arena_printf(c->arena, "%s:%u", status->nodes[k].host, status->nodes[k].port));
		if (!found)
			return call_fail_fault(c, STR("processIds"), "%.*s is no process of the cluster",
			                       STR_ARG(ids[i]));
	}
	for (size_t i = 0; i < status->node_count; i++) {
		const struct node_status *n = &status->nodes[i];
		bool wanted = !id_count && n->state == NODE_RUNNING;
		for (size_t k = 0; k < id_count && !wanted; k++)
			wanted = str_eq(ids[k], arena_printf(c->arena, "%s:%u", n->host, n->port));
		if (wanted)
			names[count++] = str_of(n->name);
	}
	*ret_names = names;
	*ret_count = count;
	return count ? 0 : -EAGAIN;
}

int cluster_indexes_list(struct call *c)
{
	struct advice x = {.call = c, .examples = 5};
	struct cluster cluster;
	struct cluster_status status;
	struct str *names = NULL;
	size_t count = 0;
	int result = advice_cluster(c, &cluster, &status);
	if (result == 0)
		result = advice_period(c, &x.period);
	if (result == 0)
		result = nodes_choose(c, &status, &names, &count);
	if (result == 0) {
		x.cluster_id = arena_z(c->arena, cluster.doc.id);
		result = suggestions_read(&x, names, count);
	}
	if (result != 0)
		return result < 0 ? advice_fail(c, result) : 0;
	struct buf b = {0};
	document_write(&x, &b, 0, x.found.count);
	advice_answer(c, &b);
	return 0;
}

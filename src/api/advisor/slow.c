/* Slow statements of a process, from its log, and the tables that they were about. The answer is made from what the
 * server wrote down, not from documents, so no verb does it. */
#include "api/advisor/view.h"
#include "api/kit/verbs.h"
#include "api/metrics/metrics.h"

#include <errno.h>
#include <math.h>

#define LOGS_MAX 20000

/* 1: its host answers the call instead. */
static int slow_read(struct call *c, int64_t most, struct node_status *ret_node, struct engine_slow **ret_list,
                     size_t *ret_count)
{
	const struct service *s = c->service;
	const struct engine_advice_ops *ops = s->engine_ops->advice;
	struct cluster cluster;
	struct period period;
	if (!ops)
		return cluster_not_offered(c);
	int result = process_find(c, &cluster, ret_node);
	if (result == 0)
		result = advice_period(c, &period);
	if (result == 0)
		result = advice_enter(c);
	if (result != 0)
		return result;
	struct engine_slow_question q = {.cluster_id = arena_z(c->arena, cluster.doc.id),
	                                 .node = ret_node->name,
	                                 .from_ms = period.from_ms,
	                                 .to_ms = period.to_ms,
	                                 .of = advice_namespaces(c),
	                                 .most = (size_t)most,
	                                 .redact = json_flag(cluster.body, "redactClientLogData")};
	result = ops->slow(s->engine_state, &q, c->arena, ret_list, ret_count);
	advice_leave(c);
	return result;
}

static void metrics_write(struct buf *b, const struct engine_slow *q)
{
	double returned = q->returned > 0 ? (double)q->returned : 1;
	json_key(b, "metrics");
	json_open(b, '{');
	json_pair_int(b, "docsExamined", q->examined);
	advice_put_real(b, "docsExaminedReturnedRatio", (double)q->examined / returned);
	json_pair_int(b, "docsReturned", q->returned);
	json_key(b, "fromUserConnection");
	json_bool(b, q->by_user);
	/* The databases have neither models nor yields. */
	json_key(b, "hasAutoEmbedding");
	json_bool(b, false);
	json_key(b, "hasIndexCoverage");
	json_bool(b, q->by_index);
	json_key(b, "hasRerank");
	json_bool(b, false);
	json_key(b, "hasSort");
	json_bool(b, q->sorts);
	json_pair_int(b, "keysExamined", q->keys);
	advice_put_real(b, "keysExaminedReturnedRatio", (double)q->keys / returned);
	json_pair_int(b, "numYields", 0);
	json_pair_int(b, "operationExecutionTime", llround(q->ms));
	json_pair_int(b, "tokensUsed", 0);
	json_close(b, '}');
}

int slow_queries_list(struct call *c)
{
	struct node_status node;
	struct engine_slow *list;
	size_t count = 0;
	int64_t most;
	int result = advice_number(c, "nLogs", LOGS_MAX, LOGS_MAX, &most);
	if (result == 0)
		result = slow_read(c, most, &node, &list, &count);
	if (result != 0)
		return result < 0 ? result : 0;
	bool metrics = call_query_bool(c, "includeMetrics", false),
	     state = call_query_bool(c, "includeReplicaState", false),
	     type = call_query_bool(c, "includeOpType", false);
	struct buf *b = &c->out;
	json_open(b, '{');
	json_key(b, "slowQueries");
	json_open(b, '[');
	for (size_t i = 0; i < count; i++) {
		json_open(b, '{');
		json_pair_str(b, "line", list[i].line);
		if (metrics)
			metrics_write(b, &list[i]);
		json_pair_str(b, "namespace", str_of(list[i].namespace));
		if (type)
			json_pair_str(b, "opType", str_of(list[i].operation));
		if (state)
			json_pair_str(b, "replicaState", node.primary ? STR("PRIMARY") : STR("SECONDARY"));
		json_close(b, '}');
	}
	json_close(b, ']');
	json_close(b, '}');
	return 0;
}

/* Each once, in the order of the newest statement. */
int slow_namespaces_list(struct call *c)
{
	struct node_status node;
	struct engine_slow *list;
	size_t count = 0;
	int result = slow_read(c, LOGS_MAX, &node, &list, &count);
	if (result != 0)
		return result < 0 ? result : 0;
	struct buf *b = &c->out;
	struct str *shown = NULL;
	size_t shown_count = 0, room = 0;
	json_open(b, '{');
	json_key(b, "namespaces");
	json_open(b, '[');
	for (size_t i = 0; i < count; i++) {
		const struct engine_namespaces before = {shown, shown_count};
		if (!*list[i].namespace || (shown_count && engine_namespace_is_of(&before, list[i].namespace)))
			continue;
		ARENA_FIT(c->arena, shown, shown_count, room);
		shown[shown_count++] = str_of(list[i].namespace);
		json_open(b, '{');
		json_pair_str(b, "namespace", shown[shown_count - 1]);
		json_pair_str(b, "type", STR("collection"));
		json_close(b, '}');
	}
	json_close(b, ']');
	json_close(b, '}');
	return 0;
}

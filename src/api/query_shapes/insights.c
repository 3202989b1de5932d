/* Statistics of query shapes. Without a period they are what the running databases tell: figures of all the time since
 * the processes started. With one they are of the periods that it touches, from what is kept of these (history.h). What
 * has no honest source is left out. */
#include "api/clusters/clusters.h"
#include "api/kit/verbs.h"
#include "api/query_shapes/history.h"
#include "api/query_shapes/shapes.h"
#include "base/clock.h"
#include "call/service.h"

#include <errno.h>

#define SUMMARIES_MAX 100

static double count_of(const struct engine_shape *s)
{
	return (double)s->calls;
}

static double total_ms(const struct engine_shape *s)
{
	return s->total_us / 1000;
}

static double mean_ms(const struct engine_shape *s)
{
	return s->calls ? s->total_us / 1000 / (double)s->calls : 0;
}

static double total_us(const struct engine_shape *s)
{
	return s->total_us;
}

static double rows_of(const struct engine_shape *s)
{
	return (double)s->rows;
}

static double bytes_of(const struct engine_shape *s)
{
	return (double)s->bytes_read;
}

static double last_us(const struct engine_shape *s)
{
	return (double)s->last_us;
}

static double p50(const struct engine_shape *s)
{
	return engine_shape_percentile(s, 0.5);
}

static double p90(const struct engine_shape *s)
{
	return engine_shape_percentile(s, 0.9);
}

static double p99(const struct engine_shape *s)
{
	return engine_shape_percentile(s, 0.99);
}

static const struct {
	const char *name, *field;
	double (*value)(const struct engine_shape *s);
} series[] = {
        {"TOTAL_EXECUTION_TIME", "totalWorkingMillis", total_ms},
        {"AVG_EXECUTION_TIME", "avgWorkingMillis", mean_ms},
        {"EXECUTION_COUNT", "execCount", count_of},
        {"DOCS_RETURNED", "docsReturned", rows_of},
        {"TOTAL_TIME_TO_RESPONSE", "totalTimeToResponseMicros", total_us},
        {"BYTES_READ", "bytesRead", bytes_of},
        {"LAST_EXECUTION_TIME", "lastExecMicros", last_us},
        {"P50_EXECUTION_TIME", "p50ExecMicros", p50},
        {"P90_EXECUTION_TIME", "p90ExecMicros", p90},
        {"P99_EXECUTION_TIME", "p99ExecMicros", p99},
};

static json_t *summary_of(struct call *c, const struct shape *s)
{
	struct str wanted = call_query(c, "series");
	json_t *o = json_object();
	for (size_t i = 0; i < sizeof series / sizeof *series; i++)
		if (!wanted.n || str_list_has(wanted, str_of(series[i].name)))
			json_put(o, series[i].field, json_real(series[i].value(&s->of)));
	json_put_z(o, "command", s->of.command);
	json_put_str(o, "namespace", shape_namespace(c->arena, &s->of));
	json_put_z(o, "queryShape", s->of.text);
	json_put_z(o, "queryShapeHash", s->hash);
	json_put(o, "systemQuery", json_false());
	return o;
}

struct period {
	int64_t since_ms, until_ms;
};

static int time_read(struct call *c, const char *name, int64_t otherwise, int64_t *ret_ms)
{
	struct str text = call_query(c, name);
	uint64_t ms;
	*ret_ms = otherwise;
	if (!text.n)
		return 0;
	if (!str_to_u64(text, INT64_MAX, &ms))
		return call_fail_field(c, 400, "INVALID_QUERY_PARAMETER", name, "must be milliseconds since 1970.");
	*ret_ms = (int64_t)ms;
	return 0;
}

static int period_read(struct call *c, struct period *ret_period)
{
	int r = time_read(c, "since", 0, &ret_period->since_ms);
	r = r < 0 ? r : time_read(c, "until", INT64_MAX, &ret_period->until_ms);
	if (r == 0 && ret_period->until_ms < ret_period->since_ms)
		r = call_fail_field(c, 400, "INVALID_QUERY_PARAMETER", "until", "must not be before since.");
	return r;
}

static bool period_has(const struct period *p, const struct engine_shape *s)
{
	return s->last_ms >= p->since_ms && s->first_ms <= p->until_ms;
}

static void bounds_tell(struct call *c, const struct history_span *span)
{
	char text[CLOCK_TEXT];
	clock_format(span->from_ms, text);
	call_header(c, STR("x-steward-since"), arena_dup(c->arena, str_of(text)));
	clock_format(span->to_ms, text);
	call_header(c, STR("x-steward-until"), arena_dup(c->arena, str_of(text)));
}

/* Of a cluster of which nothing is kept, as those of the simulated engine, a period selects the shapes that were seen
 * in it. */
static int period_take(struct call *c, const struct cluster *cluster, const struct period *p, struct shapes *shapes)
{
	size_t kept = 0;
	const struct history_span wanted = {p->since_ms, p->until_ms};
	struct history_span span;
	if (!call_query(c, "since").n && !call_query(c, "until").n)
		return 0;
	int r = history_read(c->tx, c->arena, cluster->doc.id, shapes, !call_query(c, "processIds").n, &wanted,
	                     clock_now_ms(), shapes, &span);
	if (r == 0)
		bounds_tell(c, &span);
	if (r != -ENOENT)
		return r;
	for (size_t i = 0; i < shapes->count; i++)
		if (period_has(p, &shapes->list[i].of))
			shapes->list[kept++] = shapes->list[i];
	shapes->count = kept;
	return 0;
}

/* The path's cluster, and what its nodes tell. 1: its host answers the call instead. */
static int shapes_read(struct call *c, struct shapes *ret_shapes)
{
	struct cluster cluster;
	struct period period;
	bool forwarded = false;
	int r = period_read(c, &period);
	r = r < 0 ? r : cluster_load(c, &cluster);
	r = r < 0 ? r : cluster_forward(c, &cluster, &forwarded);
	if (r < 0 || forwarded)
		return r < 0 ? r : 1;
	r = shapes_gather(c->service, c->arena, cluster.doc.id, call_query(c, "processIds"), ret_shapes);
	if (r == -ENOENT)
		return cluster_not_offered(c);
	return r < 0 ? r : period_take(c, &cluster, &period, ret_shapes);
}

static bool is_wanted(struct call *c, const struct shape *s)
{
	struct str namespaces = call_query(c, "namespaces"), commands = call_query(c, "commands"),
	           hashes = call_query(c, "queryShapeHashes");
	return (!namespaces.n || str_list_has(namespaces, shape_namespace(c->arena, &s->of))) &&
	       (!commands.n || str_list_has(commands, str_of(s->of.command))) &&
	       (!hashes.n || str_list_has(hashes, str_of(s->hash)));
}

int shape_summaries_list(struct call *c)
{
	struct shapes shapes = {.list = NULL};
	uint64_t most = SUMMARIES_MAX;
	int r = shapes_read(c, &shapes);
	if (r == 0 && !shapes.count && !call_query(c, "processIds").n)
		r = shapes_check(c, &shapes);
	if (r != 0)
		return r < 0 ? r : 0;
	if (call_query(c, "nSummaries").n && !str_to_u64(call_query(c, "nSummaries"), SUMMARIES_MAX, &most))
		most = SUMMARIES_MAX;
	json_t *answer = json_new(c->arena), *list = json_array();
	json_put(answer, "summaries", list);
	for (size_t i = 0; i < shapes.count && json_array_size(list) < most; i++)
		if (is_wanted(c, &shapes.list[i]))
			json_array_append_new(list, summary_of(c, &shapes.list[i]));
	json_raw(&c->out, json_text(c->arena, answer));
	return 0;
}

static json_t *seen_of(int64_t ms, const char *application)
{
	json_t *o = json_object();
	json_put(o, "timestamp", json_integer(ms));
	if (application && *application)
		json_put_z(o, "applicationName", application);
	return o;
}

int shape_details_get(struct call *c)
{
	struct shapes shapes = {.list = NULL};
	int r = shapes_read(c, &shapes);
	if (r != 0)
		return r < 0 ? r : 0;
	const struct shape *s = shapes_find(&shapes, shape_path(c));
	if (!s) {
		r = shapes_check(c, &shapes);
		return r < 0 ? r : -ENOENT;
	}
	json_t *answer = json_new(c->arena);
	json_put(answer, "firstSeen", seen_of(s->of.first_ms, s->of.application));
	json_put(answer, "lastSeen", seen_of(s->of.last_ms, NULL));
	json_put(answer, "queryStats", summary_of(c, s));
	json_raw(&c->out, json_text(c->arena, answer));
	return 0;
}

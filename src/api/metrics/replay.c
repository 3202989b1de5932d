/* An alert configuration, and, where the header X-Steward-Replay asks for it, what it would have told of in the time
 * that the header names. The answer has no fields for that, so it stands in headers. */
#include "api/alerts/alerts.h"
#include "api/clusters/clusters.h"
#include "api/kit/verbs.h"
#include "api/metrics/metrics.h"
#include "api/metrics/processes.h"
#include "api/metrics/wish.h"
#include "base/clock.h"
#include "base/duration.h"
#include "call/service.h"
#include "gate/dispatch.h"
#include "hosts/hosts.h"

#include <errno.h>
#include <math.h>

#define PERIOD_MAX_DAYS 62
#define POINTS_MAX 1000000

/* A node that is judged. */
struct subject {
	struct str cluster_id, cluster;
	struct node_status node;
	int64_t created_ms, since_ms; /* of the cluster, and of what is known of the node */
	bool sharded, flex;
};

struct replaying {
	struct call *call;
	struct alert_replay replay;
	struct wish wish; /* one threshold */
	struct subject *subjects;
	size_t count, room;
	unsigned elsewhere; /* clusters of other hosts */
	enum series_level level;
};

static void nodes_note(struct replaying *p, const struct cluster *cluster, const struct cluster_status *status)
{
	struct arena *a = p->call->arena;
	for (size_t i = 0; i < status->node_count; i++) {
		const struct node_status *n = &status->nodes[i];
		ARENA_FIT(a, p->subjects, p->count, p->room);
		p->subjects[p->count++] = (struct subject){.cluster_id = cluster->doc.id,
		                                           .cluster = cluster->doc.name,
		                                           .node = *n,
		                                           .created_ms = cluster->doc.created_ms,
		                                           .since_ms = process_created_ms(cluster, n),
		                                           .sharded = cluster_is_sharded(cluster->body),
		                                           .flex = str_is(cluster->doc.kind, FLEX_KIND)};
	}
}

static int cluster_note(struct tx *tx, void *ctx, const struct doc *d)
{
	struct replaying *p = ctx;
	const struct service *s = p->call->service;
	struct cluster_status status;
	struct cluster c;
	int r = cluster_get(tx, p->call->arena, d->id, &c);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (host_is_elsewhere(cluster_host(&c))) {
		p->elsewhere++;
		return 0;
	}
	if (s->engine_ops->core->observe(s->engine_state, arena_z(p->call->arena, c.doc.id), p->call->arena, &status) ==
	            0 &&
	    status.exists)
		nodes_note(p, &c, &status);
	return 0;
}

/* The finest that reaches back so far, and is not too much to look at. */
static enum series_level level_choose(const struct replaying *p)
{
	static const enum series_level levels[] = {SERIES_1M, SERIES_5M, SERIES_1H};
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		int64_t from = p->replay.since_ms, to = clock_now_ms();
		measured_clip(p->call->service, &(struct measured){.name = ""}, levels[i], &from, &to);
		if (from <= p->replay.since_ms && series_slots(levels[i], from, to) * p->count <= POINTS_MAX)
			return levels[i];
	}
	return SERIES_1D;
}

static struct alert_reading reading_of(const struct replaying *p, const struct subject *s)
{
	const struct asked *one = &p->wish.list[0];
	bool router = s->node.kind == NODE_ROUTER;
	bool of_window = strcmp(one->type, OPLOG_WINDOW) == 0;
	struct alert_reading r = {.cluster = s->cluster,
	                          .hostname = str_of(s->node.host),
	                          .port = s->node.port,
	                          .type_name = router            ? "ROUTER"
	                                       : s->node.primary ? "PRIMARY"
	                                                         : "SECONDARY",
	                          .type = one->type,
	                          .metric = of_window ? NULL : one->name};
	if (!router) {
		r.replica_set = node_set(&s->node);
		r.shard = s->sharded ? r.replica_set : STR_NONE;
	}
	return r;
}

/* As the judge does: each process, or the primary for its cluster. */
static bool is_judged(const struct replaying *p, const struct subject *s)
{
	const char *type = p->wish.list[0].type;
	if (strcmp(type, HOST_TYPE) == 0)
		return true;
	return s->node.primary && (strcmp(type, OPLOG_WINDOW) == 0 || s->flex);
}

static void slots_judge(struct replaying *p, const struct subject *s, int64_t first_ms, size_t slots,
                        const float *values)
{
	const struct asked *one = &p->wish.list[0];
	size_t columns = p->wish.column_count[one->subject];
	struct alert_reading r = reading_of(p, s);
	alerts_replay_subject(&p->replay, &r);
	p->wish.known[one->subject] = true;
	for (size_t i = 0; i < slots; i++) {
		int64_t at = first_ms + series_step_ms(p->level) * (int64_t)i;
		memcpy(p->wish.values[one->subject], values + i * columns, columns * sizeof *values);
		r.value = wish_value(&p->wish, one);
		r.most = strcmp(one->type, OPLOG_WINDOW) == 0 ? (double)(at - s->created_ms) : 0;
		if (isfinite(r.value))
			alerts_replay_value(&p->replay, &r, at);
	}
}

static int subject_judge(struct replaying *p, const struct subject *s)
{
	struct service *v = p->call->service;
	const struct engine_statistics_ops *ops = v->engine_ops->statistics;
	struct arena *a = arena_new();
	enum measure_subject kind = p->wish.list[0].subject;
	struct measured of = {.cluster_id = arena_z(a, s->cluster_id),
	                      .node = s->node.name,
	                      .name = "",
	                      .subject = kind,
	                      .since_ms = s->since_ms};
	struct str *names;
	size_t count = 0;
	int r = 0;
	if (kind == MEASURE_DISK) {
		r = ops ? ops->partitions(v->engine_state, of.cluster_id, of.node, a, &names, &count) : -ENOENT;
		r = r == 0 && !count ? -ENOENT : r;
		bool device = count > 1 && disk_is_device(p->wish.columns[kind][0]);
		of.name = r == 0 ? arena_z(a, names[device ? 1 : 0]) : "";
	}
	if (r == 0) {
		int64_t from = p->replay.since_ms, to = clock_now_ms(), step = series_step_ms(p->level);
		measured_clip(v, &of, p->level, &from, &to);
		size_t slots = from < to ? series_slots(p->level, from, to) : 0;
		float *values = arena_new_array(a, float, slots * p->wish.column_count[kind] + 1);
		r = measured_read(v, &of, p->level, from, to, p->wish.columns[kind], p->wish.column_count[kind],
		                  values);
		if (r == 0)
			slots_judge(p, s, (from + step - 1) / step * step, slots, values);
	}
	arena_free(a);
	return r == -ENOENT || r == -EAGAIN ? 0 : r;
}

static int values_replay(struct replaying *p)
{
	struct call *c = p->call;
	int r = clusters_walk_group(c->tx, c->arena, c->group.id, cluster_note, p);
	p->level = level_choose(p);
	for (size_t i = 0; r == 0 && i < p->count; i++)
		if (is_judged(p, &p->subjects[i]))
			r = subject_judge(p, &p->subjects[i]);
	return r;
}

/* Whether values decide; with the one threshold in the wish, where something tells it. */
static bool asks_values(struct replaying *p, const json_t *config)
{
	struct str type = json_field(config, "eventTypeName"),
	           metric = json_field(json_object_get(config, "metricThreshold"), "metricName");
	bool host = str_is(type, HOST_TYPE), flex = str_is(type, FLEX_TYPE), window = str_is(type, OPLOG_WINDOW);
	if (host || flex)
		wish_add(&p->wish, p->call->arena, host ? HOST_TYPE : FLEX_TYPE, metric);
	if (window)
		wish_add(&p->wish, p->call->arena, OPLOG_WINDOW, STR("OPLOG_MASTER_TIME"));
	return host || flex || window;
}

static void time_header(struct call *c, struct str name, int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	call_header(c, name, arena_dup(c->arena, str_of(text)));
}

static void headers_put(struct replaying *p, bool known)
{
	struct call *c = p->call;
	if (!known) {
		call_header(c, STR("x-steward-replay-note"), STR("nothing is kept by which it could be judged"));
		return;
	}
	call_header(c, STR("x-steward-replay-count"), arena_printf(c->arena, "%lld", (long long)p->replay.count));
	time_header(c, STR("x-steward-replay-since"), p->replay.since_ms);
	if (p->replay.count)
		time_header(c, STR("x-steward-replay-last"), p->replay.last_ms);
	if (p->elsewhere)
		call_header(c, STR("x-steward-replay-note"),
		            arena_printf(c->arena, "without %u clusters on other hosts", p->elsewhere));
}

static int replay_run(struct call *c, int64_t period_ms)
{
	struct replaying *p = arena_new_array(c->arena, struct replaying, 1);
	struct doc d;
	p->call = c;
	int r = resource_load(c, c->op->resource, &d);
	if (r < 0 || call_takes_long(c, INT64_MAX))
		return r;
	const json_t *config = doc_json(c->arena, d.body);
	alerts_replay_begin(&p->replay, config, clock_now_ms() - period_ms);
	bool known = true;
	if (!asks_values(p, config)) {
		r = alerts_replay_events(&p->replay, c->tx, c->arena, c->group.id);
		known = r != -ENOTSUP;
	} else if (p->wish.count) {
		r = values_replay(p);
	} else {
		known = false;
	}
	if (r == 0 || !known)
		headers_put(p, known);
	return known ? r : 0;
}

/* No form has a field for it. */
static int hold_header(struct call *c)
{
	struct doc d;
	int r = resource_load(c, c->op->resource, &d);
	const json_t *config = r == 0 ? doc_json(c->arena, d.body) : NULL;
	if (json_object_get(config, "metricThreshold"))
		call_header(c, STR("x-steward-close-after"),
		            arena_printf(c->arena, "PT%lldM", (long long)alert_hold_minutes(config)));
	return r;
}

int alert_config_get(struct call *c)
{
	struct str period = request_header(c->request, "x-steward-replay");
	int64_t ms = 0;
	int r = 0;
	if (period.p && (!duration_parse(period, &ms) || ms > PERIOD_MAX_DAYS * INT64_C(86400000))) {
		call_fail(c, 400, "INVALID_HEADER",
		          "X-Steward-Replay: must be an ISO 8601 duration of at most P%dD, such as P2D.",
		          PERIOD_MAX_DAYS);
		return call_fail_param(c, STR("X-Steward-Replay"));
	}
	if (period.p)
		r = replay_run(c, ms);
	r = r < 0 || c->rerun_on_worker ? r : hold_header(c);
	return r < 0 || c->rerun_on_worker ? r : verb_get(c);
}

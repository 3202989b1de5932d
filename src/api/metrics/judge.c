/* What was measured, judged once a minute by the alert configurations that ask for it. Each host looks at the clusters
 * whose nodes it has, so that a node is judged by one process. Of a project that asks for nothing no value is read.
 *
 * Measured values are those of the last minute that is over. A gap judges nothing. States (how many nodes of a set run,
 * whether one leads) are those of the moment. */
#include "api/alerts/alerts.h"
#include "api/clusters/clusters.h"
#include "api/metrics/metrics.h"
#include "api/metrics/wish.h"
#include "base/clock.h"
#include "hosts/hosts.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>

#define JUDGE_JOB "metric_judge"
#define MINUTE_MS INT64_C(60000)
#define INTO_MINUTE_MS INT64_C(5000) /* so that each minute is judged once, however long that takes */

/* --- what a project asks for */

static void wish_make(struct wish *w, struct arena *a, const struct alert_watch *watch)
{
	w->count = 0;
	memset(w->column_count, 0, sizeof w->column_count);
	for (size_t i = 0; i < watch->rule_count; i++) {
		const struct alert_rule *r = &watch->rules[i];
		if (str_is(r->type, HOST_TYPE))
			wish_add(w, a, HOST_TYPE, r->metric);
		else if (str_is(r->type, FLEX_TYPE))
			wish_add(w, a, FLEX_TYPE, r->metric);
		else if (str_is(r->type, OPLOG_WINDOW))
			wish_add(w, a, OPLOG_WINDOW, STR("OPLOG_MASTER_TIME"));
	}
}

/* --- one cluster */

struct judged {
	struct str id, group_id, name;
	bool flex, sharded, paused, whole; /* whole: neither being made nor taken away */
	int64_t created_ms;
};

/* One round. */
struct judging {
	const struct service *service;
	struct arena *arena; /* of the round */
	struct judged *clusters;
	size_t count, room;
	struct alert_findings findings;
	struct wish wish;
	struct alert_watch watch;
	/* Of the cluster in hand. */
	struct arena *scratch;
	const struct judged *cluster;
	int64_t minute_ms;
};

static struct alert_reading reading_of(const struct judging *j, const char *type, const char *metric, double value)
{
	return (struct alert_reading){.group_id = j->cluster->group_id,
	                              .cluster = j->cluster->name,
	                              .type = type,
	                              .metric = metric,
	                              .value = value};
}

static void set_put(const struct judging *j, struct alert_reading *r, struct str set)
{
	r->replica_set = set;
	if (j->cluster->sharded)
		r->shard = set;
}

static void reading_take(struct judging *j, const struct alert_reading *r)
{
	if (isfinite(r->value) && alerts_watch_matters(&j->watch, j->scratch, r))
		alerts_find(&j->findings, &(struct alert_finding){.reading = *r});
}

/* What the node's own disk cannot tell is that of the partition which it lies on. */
static void device_load(struct judging *j, const struct measured *of)
{
	float *values = j->wish.values[MEASURE_DISK];
	for (size_t i = 0; i < j->wish.column_count[MEASURE_DISK]; i++) {
		unsigned column = j->wish.columns[MEASURE_DISK][i];
		if (disk_is_device(column) && measured_read(j->service, of, SERIES_1M, j->minute_ms,
		                                            j->minute_ms + MINUTE_MS, &column, 1, &values[i]) < 0)
			values[i] = NAN;
	}
}

static void values_load(struct judging *j, const struct node_status *n)
{
	const struct service *s = j->service;
	const struct engine_statistics_ops *ops = s->engine_ops->statistics;
	struct measured of = {.cluster_id = arena_z(j->scratch, j->cluster->id), .node = n->name, .name = ""};
	for (size_t k = 0; k < MEASURE_SUBJECTS; k++) {
		struct str *names;
		size_t count = 0;
		of.subject = (enum measure_subject)k;
		j->wish.known[k] = false;
		if (!j->wish.column_count[k])
			continue;
		if (k == MEASURE_DISK) {
			if (!ops ||
			    ops->partitions(s->engine_state, of.cluster_id, n->name, j->scratch, &names, &count) < 0 ||
			    !count)
				continue;
			of.name = arena_z(j->scratch, names[0]);
		}
		j->wish.known[k] = measured_read(s, &of, SERIES_1M, j->minute_ms, j->minute_ms + MINUTE_MS,
		                                 j->wish.columns[k], j->wish.column_count[k], j->wish.values[k]) == 0;
		if (k == MEASURE_DISK && j->wish.known[k] && count > 1) {
			of.name = arena_z(j->scratch, names[1]);
			device_load(j, &of);
		}
	}
}

static void node_judge(struct judging *j, const struct node_status *n)
{
	bool router = n->kind == NODE_ROUTER;
	values_load(j, n);
	for (size_t i = 0; i < j->wish.count; i++) {
		const struct asked *one = &j->wish.list[i];
		bool of_host = strcmp(one->type, HOST_TYPE) == 0, of_window = strcmp(one->type, OPLOG_WINDOW) == 0;
		struct alert_reading r =
		        reading_of(j, one->type, of_window ? NULL : one->name, wish_value(&j->wish, one));
		r.type_name = router ? "ROUTER" : n->primary ? "PRIMARY" : "SECONDARY";
		if (!router && (of_host || of_window))
			set_put(j, &r, node_set(n));
		if (of_host) {
			r.hostname = str_of(n->host);
			r.port = n->port;
		}
		/* A young log says nothing of how long it will be kept. */
		if (of_window)
			r.most = (double)(clock_now_ms() - j->cluster->created_ms);
		if (of_host || (n->primary && (of_window || j->cluster->flex)))
			reading_take(j, &r);
	}
}

/* How many of each set run, and whether one leads. */
static void sets_judge(struct judging *j, const struct cluster_status *status)
{
	for (size_t i = 0; i < status->node_count; i++) {
		struct str set = node_set(&status->nodes[i]);
		unsigned well = 0, ill = 0, leads = 0;
		bool again = status->nodes[i].kind == NODE_ROUTER;
		for (size_t k = 0; k < i && !again; k++)
			again = str_eq(node_set(&status->nodes[k]), set);
		for (size_t k = i; k < status->node_count && !again; k++) {
			const struct node_status *n = &status->nodes[k];
			if (!str_eq(node_set(n), set))
				continue;
			bool runs = n->state == NODE_RUNNING;
			well += runs;
			ill += !runs;
			leads += runs && n->primary;
		}
		const struct alert_reading all[] = {reading_of(j, "NO_PRIMARY", NULL, leads),
		                                    reading_of(j, "TOO_FEW_HEALTHY_MEMBERS", NULL, well),
		                                    reading_of(j, "TOO_MANY_UNHEALTHY_MEMBERS", NULL, ill)};
		for (size_t k = 0; k < sizeof all / sizeof *all && !again; k++) {
			struct alert_reading r = all[k];
			set_put(j, &r, set);
			reading_take(j, &r);
		}
	}
}

static bool has_host(const struct judging *j, const struct cluster_status *status, struct str host)
{
	for (size_t i = 0; i < status->node_count; i++)
		if (str_eq(host, arena_printf(j->scratch, "%s:%u", status->nodes[i].host, status->nodes[i].port)))
			return true;
	return false;
}

static bool is_rule(const struct judging *j, struct str config_id)
{
	for (size_t i = 0; i < j->watch.rule_count; i++)
		if (str_eq(j->watch.rules[i].config.id, config_id))
			return true;
	return false;
}

/* Alerts about hosts that the cluster does not have any more, and of a paused one those that nothing would end. */
static void ends_find(struct judging *j, const struct cluster_status *status)
{
	for (size_t i = 0; i < j->watch.open_count; i++) {
		const struct alert_open *o = &j->watch.open[i];
		if (!str_eq(o->cluster, j->cluster->name))
			continue;
		if (j->cluster->paused ? is_rule(j, o->config_id) : o->host.n && !has_host(j, status, o->host))
			alerts_find(&j->findings, &(struct alert_finding){.ends = o->alert_id});
	}
}

static void cluster_judge(struct judging *j)
{
	const struct service *s = j->service;
	struct cluster_status status;
	if (!j->watch.rule_count && !j->watch.open_count)
		return;
	if (s->engine_ops->core->observe(s->engine_state, arena_z(j->scratch, j->cluster->id), j->scratch, &status) <
	            0 ||
	    !status.exists || !status.node_count || !j->cluster->whole)
		return;
	ends_find(j, &status);
	if (j->cluster->paused || !j->watch.rule_count)
		return;
	for (size_t i = 0; j->wish.count && i < status.node_count; i++)
		node_judge(j, &status.nodes[i]);
	sets_judge(j, &status);
}

/* --- the round */

static int cluster_note(struct tx *tx, void *ctx, const struct doc *d)
{
	struct judging *j = ctx;
	struct arena *a = arena_new();
	const struct cluster c = cluster_of(a, d);
	if (!host_is_elsewhere(cluster_host(&c))) {
		ARENA_FIT(j->arena, j->clusters, j->count, j->room);
		j->clusters[j->count++] = (struct judged){
		        .id = arena_dup(j->arena, d->id),
		        .group_id = arena_dup(j->arena, d->parent),
		        .name = arena_dup(j->arena, d->name),
		        .flex = str_is(d->kind, FLEX_KIND),
		        .sharded = cluster_is_sharded(c.body),
		        .paused = json_flag(c.body, "paused"),
		        .whole = !str_is_one_of("CREATING|DELETING|DELETED", json_field(c.body, "stateName")),
		        .created_ms = d->created_ms};
	}
	arena_free(a);
	return 0;
}

static int watch_load(struct judging *j, struct tx *reader, struct arena *a, struct str group_id)
{
	static const char types[] = HOST_TYPE "|" FLEX_TYPE "|" OPLOG_WINDOW
	                                      "|NO_PRIMARY|TOO_FEW_HEALTHY_MEMBERS|TOO_MANY_UNHEALTHY_MEMBERS";
	tx_begin_read(reader);
	int r = alerts_watch_load(reader, a, group_id, types, &j->watch);
	tx_end_read(reader);
	if (r == 0)
		wish_make(&j->wish, a, &j->watch);
	return r;
}

static int project_judge(struct judging *j, struct tx *reader, size_t from, size_t to)
{
	struct arena *a = arena_new();
	int r = watch_load(j, reader, a, j->clusters[from].group_id);
	for (size_t i = from; r == 0 && i < to; i++) {
		j->cluster = &j->clusters[i];
		j->scratch = arena_new();
		cluster_judge(j);
		arena_free(j->scratch);
	}
	arena_free(a);
	return r;
}

static int next_minute(struct job_run *r)
{
	r->due_ms = (clock_now_ms() / MINUTE_MS + 1) * MINUTE_MS + INTO_MINUTE_MS;
	return JOB_LATER;
}

static int judge_step(struct job_run *r)
{
	static _Atomic bool looked;
	struct judging *j = arena_new_array(r->arena, struct judging, 1);
	/* When the process has just begun, it may not be known yet which node is what. */
	if (!atomic_exchange(&looked, true))
		return next_minute(r);
	j->service = r->ctx;
	j->arena = j->findings.arena = r->arena;
	j->minute_ms = (clock_now_ms() / MINUTE_MS - 1) * MINUTE_MS;
	tx_begin_read(r->reader);
	int result = clusters_walk(r->reader, cluster_note, j);
	tx_end_read(r->reader);
	for (size_t i = 0, to; result == 0 && i < j->count && !*job_stop(r); i = to) {
		for (to = i + 1; to < j->count && str_eq(j->clusters[to].group_id, j->clusters[i].group_id);)
			to++;
		result = project_judge(j, r->reader, i, to);
	}
	tx_rest(r->reader);
	if (result == 0)
		result = alerts_findings_write(r->store, &j->findings);
	return result < 0 ? result : next_minute(r);
}

static const struct job_kind kinds[] = {
        {.name = JUDGE_JOB, .step = judge_step, .period_ms = MINUTE_MS, .per_node = true}};
const struct job_kinds metrics_jobs = JOB_KINDS(kinds);

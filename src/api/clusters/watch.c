/* A node that ended, one that is back, another primary: events in the project's log. The engine counts durably what
 * befalls its nodes, and says only that there is something to look at. A job compares the counts with those that were
 * last told, and writes the events and the new counts in one transaction: each occurrence is told once, whenever the
 * service dies in between, and also what happened while it was away.
 *
 * What was told is a document beside the cluster, so that the cluster's own revision stays:
 *
 *   {"nodes": {"ab12cd-shard-00-00": {"ends": 1, "down": false}}, "sets": {"0": {"term": 2, "failovers": 1}}} */
#include "api/clusters/watch.h"

#include "api/clusters/cluster.h"
#include "api/clusters/nodes.h"
#include "api/clusters/sightings.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/log.h"
#include "trail/events.h"

#include <errno.h>
#include <stdlib.h>

#define TOLD_MAX 16 /* events of one kind and node at once */

/* --- asking for the job */

static int note_run(struct tx *tx, void *ctx)
{
	const struct cluster_note *n = ctx;
	struct arena *a = arena_new();
	int r = n->run(tx, a, n);
	arena_free(a);
	return r == -ENOENT ? 0 : r;
}

static void note_done(void *ctx, int result)
{
	const struct cluster_note *n = ctx;
	if (result < 0)
		log_warn("cluster %s: %s (error %d)", n->id, n->lost, result);
	free(ctx);
}

void cluster_note_write(const struct cluster_note *note, const char *cluster_id)
{
	struct cluster_note *n = must_calloc(1, sizeof *n);
	*n = *note;
	n->write = (struct write){.run = note_run, .done = note_done, .ctx = n};
	snprintf(n->id, sizeof n->id, "%s", cluster_id);
	if (!store_write(n->service->store, &n->write))
		note_done(n, -EBUSY);
}

int watch_ask(struct tx *tx, struct arena *a, const struct service *s, struct str cluster_id)
{
	if (!s->engine_ops->core->reports_changes)
		return 0;
	/* A subject of its own, so that it need not wait for a change of the cluster that is under way. On this host,
	 * because the nodes are. */
	struct job job = {.kind = STR(WATCH_JOB),
	                  .subject = arena_printf(a, "%.*s/watch", STR_ARG(cluster_id)),
	                  .args = arena_printf(a, "{\"id\":\"%.*s\"}", STR_ARG(cluster_id)),
	                  .host = str_of(store_node(s->store)),
	                  .due_ms = clock_now_ms()};
	return tx_job_ensure(tx, &job);
}

static int watch_note(struct tx *tx, struct arena *a, const struct cluster_note *n)
{
	return watch_ask(tx, a, n->service, str_of(n->id));
}

void watch_changed(void *service, const char *cluster_id)
{
	cluster_note_write(&(struct cluster_note){.service = service,
	                                          .run = watch_note,
	                                          .lost = "what befell its nodes is told later"},
	                   cluster_id);
}

/* --- telling */

/* One comparison, in the write. */
struct telling {
	struct tx *tx;
	struct arena *arena;
	const struct cluster *cluster;
};

static int event_tell(struct telling *t, const char *type, const char *severity, const char *type_name,
                      const struct event_detail *details, size_t count)
{
	return event_service_about(t->tx, t->arena, type,
	                           &(struct event_about){.group_id = t->cluster->doc.parent,
	                                                 .cluster = t->cluster->doc.name,
	                                                 .severity = severity,
	                                                 .type_name = type_name,
	                                                 .details = details,
	                                                 .detail_count = count});
}

static int node_event(struct telling *t, const char *type, const char *severity, const struct node_status *n, bool led)
{
	bool router = n->kind == NODE_ROUTER;
	const char *type_name = router ? "ROUTER" : led ? "PRIMARY" : "SECONDARY";
	/* The fields of the process as GET /processes has them. */
	struct event_detail details[4] = {{.name = "hostname", .text = str_of(n->host)},
	                                  {.name = "port", .number = n->port}};
	size_t count = 2;
	if (!router)
		details[count++] = (struct event_detail){.name = "replicaSetName", .text = node_set(n)};
	if (!router && cluster_is_sharded(t->cluster->body))
		details[count++] = (struct event_detail){.name = "shardName", .text = node_set(n)};
	return event_tell(t, type, severity, type_name, details, count);
}

static int node_tell(struct telling *t, const json_t *told, const struct node_status *n)
{
	/* What is down leads nothing any more: what it was before counts. */
	bool down = json_flag(told, "down"), led = json_flag(told, "led") || n->primary;
	json_int_t ends = (json_int_t)n->ends - json_number(told, "ends");
	int r = 0;
	if (ends <= 0 && n->down && !down)
		ends = 1; /* its directory was put back from an older copy, and its count with it */
	for (json_int_t i = 0; r == 0 && i < ends && i < TOLD_MAX; i++) {
		if (down)
			r = node_event(t, "HOST_UP", NULL, n, led);
		if (r == 0)
			r = node_event(t, "HOST_DOWN", "WARNING", n, led);
		down = true;
	}
	return r == 0 && down && !n->down ? node_event(t, "HOST_UP", NULL, n, led) : r;
}

static int election_event(struct telling *t, const struct node_status *n, json_int_t term, bool failover)
{
	const struct event_detail details[] = {
	        {.name = "set", .text = str_of(n->set)},
	        {.name = "term", .number = term},
	        {.name = "primary", .text = str_of(n->host)},
	        {.name = "cause", .text = failover ? STR("the former primary ended") : STR("a planned change")}};
	return event_tell(t, "PRIMARY_ELECTED", failover ? "WARNING" : NULL, NULL, details,
	                  sizeof details / sizeof *details);
}

/* Of terms that came and went unseen it is not known who led them, nor in which order: the failovers are told first. */
static int set_tell(struct telling *t, const json_t *told, const struct node_status *n)
{
	json_int_t terms = (json_int_t)n->term - json_number(told, "term"),
	           failovers = (json_int_t)n->failovers - json_number(told, "failovers");
	int r = 0;
	terms = terms < TOLD_MAX ? terms : TOLD_MAX;
	for (json_int_t i = 0; r == 0 && i < terms; i++)
		r = election_event(t, n, (json_int_t)n->term - terms + i + 1, i < failovers);
	return r;
}

static json_t *told_make(const struct cluster_status *status)
{
	json_t *nodes = json_object(), *sets = json_object();
	for (size_t i = 0; i < status->node_count; i++) {
		const struct node_status *n = &status->nodes[i];
		json_put(nodes, n->name,
		         json_pack("{s:I,s:b,s:b}", "ends", (json_int_t)n->ends, "down", n->down, "led", n->primary));
		json_put(sets, n->set,
		         json_pack("{s:I,s:I}", "term", (json_int_t)n->term, "failovers", (json_int_t)n->failovers));
	}
	return json_pack("{s:o,s:o}", "nodes", nodes, "sets", sets);
}

static int differences_tell(struct telling *t, const json_t *told, const struct cluster_status *status)
{
	const json_t *nodes = json_object_get(told, "nodes"), *sets = json_object_get(told, "sets");
	int r = 0;
	/* Who went down comes before who took over. */
	for (size_t i = 0; r == 0 && i < status->node_count; i++) {
		const json_t *before = json_object_get(nodes, status->nodes[i].name);
		if (before)
			r = node_tell(t, before, &status->nodes[i]);
	}
	for (size_t i = 0; r == 0 && i < status->node_count; i++) {
		const struct node_status *n = &status->nodes[i];
		const json_t *before = json_object_get(sets, n->set);
		/* A set whose new primary is not up yet is told when it is: the term stays as it was told until
		 * then. */
		if (before && n->primary)
			r = set_tell(t, before, n);
	}
	return r;
}

/* Terms of sets that nobody leads at the moment stay untold. */
static void unled_keep(json_t *now, const json_t *told, const struct cluster_status *status)
{
	const char *set;
	json_t *before, *sets = json_object_get(now, "sets");
	json_object_foreach(json_object_get(told, "sets"), set, before)
	{
		bool led = false;
		for (size_t i = 0; i < status->node_count; i++)
			led |= status->nodes[i].primary && strcmp(status->nodes[i].set, set) == 0;
		if (!led && json_object_get(sets, set))
			json_object_set(sets, set, before);
	}
}

static int told_save(struct telling *t, struct doc *d, const json_t *now, bool there)
{
	struct str id = t->cluster->doc.id;
	d->body = json_text(t->arena, now);
	return there ? tx_update(t->tx, d) : doc_insert(t->tx, WATCH_KIND, id, id, STR_NONE, d->body);
}

static bool is_absent(const struct cluster_status *status)
{
	bool absent = false;
	for (size_t i = 0; i < status->node_count; i++)
		absent |= status->nodes[i].absent;
	return absent;
}

static int watch_save(struct tx *tx, struct job_run *r)
{
	const struct cluster_status *status = r->save_ctx;
	struct cluster cluster;
	struct doc d;
	struct telling t = {.tx = tx, .arena = r->arena, .cluster = &cluster};
	int result = cluster_get(tx, r->arena, json_field(doc_json(r->arena, r->job.args), "id"), &cluster);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	result = tx_get(tx, r->arena, WATCH_KIND, cluster.doc.id, &d);
	if (result < 0 && result != -ENOENT)
		return result;
	bool there = result == 0;
	json_t *told = there ? doc_json(r->arena, d.body) : NULL;
	json_t *now = json_keep(r->arena, told_make(status));
	unled_keep(now, told, status);
	result = differences_tell(&t, told, status);
	if (result == 0 && !json_equal(told, now))
		result = told_save(&t, &d, now, there);
	struct cluster_sighting seen = {.status = status, .at_ms = clock_now_ms()};
	seen.node_count = cluster_applied_nodes(r->arena, &cluster, &seen.nodes);
	if (result == 0)
		result = cluster_observed(tx, r->arena, r->ctx, &cluster, &seen);
	/* A node without data is made again from the others, or the cluster says that none has any. */
	if (result == 0 && is_absent(status) && cluster_is(&cluster, "IDLE"))
		result = cluster_reconcile(tx, cluster.doc.id);
	return result;
}

int watch_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct cluster_status *status = arena_new_of(r->arena, struct cluster_status);
	struct str id = json_field(doc_json(r->arena, r->job.args), "id");
	int result = s->engine_ops->core->observe(s->engine_state, arena_z(r->arena, id), r->arena, status);
	if (result < 0 || !status->exists)
		return result < 0 ? result : JOB_DONE;
	r->save = watch_save;
	r->save_ctx = status;
	return JOB_DONE;
}

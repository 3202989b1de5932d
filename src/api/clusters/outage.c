/* Outage simulation: a cluster's nodes in some regions go down, and come back when it is ended or its time is over. The
 * document says what is asked for; the cluster's job makes it so and moves the state on. */
#include "api/clusters/outage.h"

#include "api/clusters/cluster.h"
#include "api/clusters/missing.h"
#include "api/clusters/nodes.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "trail/events.h"

#include <errno.h>

#define OUTAGE_KIND "outage_simulation"
#define OUTAGE_MS (48 * 3600000LL)

static struct str outage_subject(struct arena *a, struct str cluster_id)
{
	return arena_printf(a, "outage/%.*s", STR_ARG(cluster_id));
}

int outage_forget(struct tx *tx, struct arena *a, struct str cluster_id)
{
	return tx_jobs_cancel(tx, OUTAGE_END_JOB, outage_subject(a, cluster_id));
}

void outage_link(struct call *c, const struct doc *cluster)
{
	struct doc d;
	if (tx_get(c->tx, c->arena, OUTAGE_KIND, cluster->id, &d) == 0)
		entity_link_op(c, "outageSimulation", catalog_op("getOutageSimulation"), "clusterName", cluster->name);
}

static bool is_ending(const json_t *outage)
{
	struct str state = json_field(outage, "state");
	return str_is(state, "RECOVERY_REQUESTED") || str_is(state, "RECOVERING") || str_is(state, "COMPLETE");
}

int outage_regions(struct tx *tx, struct arena *a, struct str cluster_id, json_t **ret_regions)
{
	struct doc d;
	json_t *regions = doc_json(a, STR("[]"));
	int result = tx_get(tx, a, OUTAGE_KIND, cluster_id, &d);
	if (result < 0 && result != -ENOENT)
		return result;
	const json_t *outage = result == 0 ? doc_json(a, d.body) : NULL;
	const json_t *filters = json_object_get(outage, "outageFilters");
	for (size_t i = 0; outage && !is_ending(outage) && i < json_array_size(filters); i++) {
		const json_t *f = json_array_get(filters, i);
		struct str both = arena_printf(a, "%.*s/%.*s", STR_ARG(json_field(f, "cloudProvider")),
		                               STR_ARG(json_field(f, "regionName")));
		json_add_str(regions, both);
	}
	*ret_regions = regions;
	return 0;
}

static int state_set(struct tx *tx, struct arena *a, struct doc *d, json_t *outage, const char *state)
{
	json_put_z(outage, "state", state);
	d->body = json_text(a, outage);
	return tx_update(tx, d);
}

int outage_converged(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	struct doc d;
	int result = tx_get(tx, a, OUTAGE_KIND, cluster->doc.id, &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_t *outage = doc_json(a, d.body);
	struct str state = json_field(outage, "state");
	if (str_is(state, "START_REQUESTED") || str_is(state, "STARTING"))
		return state_set(tx, a, &d, outage, "SIMULATING");
	if (!str_is(state, "RECOVERY_REQUESTED") && !str_is(state, "RECOVERING"))
		return 0;
	result = state_set(tx, a, &d, outage, "COMPLETE");
	return result < 0 ? result
	                  : cluster_event(tx, a, "CLUSTER_REGIONAL_OUTAGE_SIMULATION_COMPLETED", NULL, cluster, NULL,
	                                  STR_NONE);
}

static bool is_in(const json_t *node, const json_t *filter)
{
	return str_eq(json_field(node, "provider"), json_field(filter, "cloudProvider")) &&
	       str_eq(json_field(node, "region"), json_field(filter, "regionName"));
}

static bool is_named(const json_t *filters, const json_t *node)
{
	bool named = false;
	for (size_t i = 0; i < json_array_size(filters) && !named; i++)
		named = is_in(node, json_array_get(filters, i));
	return named;
}

/* Whether a shard has an electable node that stays up. */
static bool shard_is_up(const json_t *nodes, const json_t *filters, json_int_t shard)
{
	for (size_t k = 0; k < json_array_size(nodes); k++) {
		const json_t *node = json_array_get(nodes, k);
		if (str_is(json_field(node, "kind"), "electable") && json_number(node, "shard") == shard &&
		    !is_named(filters, node))
			return true;
	}
	return false;
}

/* Every region must be one of the cluster's, and some electable node must stay up in each shard. */
static int filters_check(struct call *c, const struct cluster *cluster)
{
	json_t *filters = json_object_get(c->body, "outageFilters"), *nodes = json_object_get(cluster->plan, "nodes");
	struct faults faults = {.count = 0};
	if (!json_array_size(filters))
		faults_add(&faults, c->arena, STR("outageFilters"), "is required");
	for (size_t i = 0; i < json_array_size(filters); i++) {
		const json_t *f = json_array_get(filters, i);
		bool found = false;
		for (size_t k = 0; k < json_array_size(nodes) && !found; k++)
			found = is_in(json_array_get(nodes, k), f);
		if (!found)
			faults_add(&faults, c->arena, arena_printf(c->arena, "outageFilters[%zu].regionName", i),
			           "the cluster has no node in %.*s %.*s", STR_ARG(json_field(f, "cloudProvider")),
			           STR_ARG(json_field(f, "regionName")));
	}
	json_int_t shards = (json_int_t)cluster_shard_count(cluster->body);
	for (json_int_t shard = 0; !faults.count && shard < shards; shard++)
		if (!shard_is_up(nodes, filters, shard))
			faults_add(&faults, c->arena, STR("outageFilters"),
			           shards > 1 ? "must leave at least one region with electable nodes up in every shard"
			                      : "must leave at least one region with electable nodes up");
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int outage_load(struct call *c, struct cluster *ret_cluster, struct doc *ret_doc)
{
	int result = cluster_load(c, ret_cluster);
	return result < 0 ? result : tx_get(c->tx, c->arena, OUTAGE_KIND, ret_cluster->doc.id, ret_doc);
}

/* A filter that says nothing of its type is one of a region: there is no other. */
static json_t *filters_of(const json_t *body)
{
	json_t *filters = json_deep_copy(json_object_get(body, "outageFilters"));
	for (size_t i = 0; i < json_array_size(filters); i++)
		json_put_z(json_array_get(filters, i), "type", "REGION");
	return filters;
}

static int refuse_start(struct call *c, const struct cluster *cluster, int found, const struct doc *d)
{
	const char *why = NULL;
	if (!cluster_is(cluster, "IDLE"))
		why = "is being changed; try again when it is IDLE";
	else if (json_flag(cluster->body, "paused"))
		why = "is paused; resume it first";
	else if (found == 0 && !str_is(json_field(doc_json(c->arena, d->body), "state"), "COMPLETE"))
		why = "has an outage simulation under way; end it first";
	if (!why)
		return 0;
	return call_fail_about(c, 400, "CANNOT_START_OUTAGE_SIMULATION", cluster->doc.name, "The cluster \"%.*s\" %s.",
	                       STR_ARG(cluster->doc.name), why);
}

static int outage_put(struct call *c, const struct cluster *cluster, bool replaces, struct str *ret_body)
{
	int64_t now = clock_now_ms();
	struct str id = id_make(c->arena);
	json_t *body = json_keep(c->arena, json_object());
	json_put_str(body, "clusterName", cluster->doc.name);
	json_put_time(body, "expirationDate", now + OUTAGE_MS);
	json_put_str(body, "groupId", cluster->doc.parent);
	json_put_str(body, "id", id);
	json_put(body, "outageFilters", filters_of(c->body));
	json_put_time(body, "startRequestDate", now);
	json_put_z(body, "state", "START_REQUESTED");
	struct doc d = {.kind = STR(OUTAGE_KIND),
	                .id = cluster->doc.id,
	                .parent = cluster->doc.id,
	                .created_ms = now,
	                .body = json_text(c->arena, body)};
	struct job end = {.kind = STR(OUTAGE_END_JOB),
	                  .subject = outage_subject(c->arena, cluster->doc.id),
	                  .args = arena_printf(c->arena, "{\"cluster\":\"%.*s\",\"id\":\"%.*s\"}",
	                                       STR_ARG(cluster->doc.id), STR_ARG(id)),
	                  .due_ms = now + OUTAGE_MS};
	*ret_body = d.body;
	int result = replaces ? tx_update(c->tx, &d) : tx_insert(c->tx, &d);
	return result < 0 ? result : tx_job_add(c->tx, &end);
}

int clusters_start_outage(struct call *c)
{
	struct cluster cluster;
	struct doc d;
	struct str body = STR_NONE;
	int result = cluster_load(c, &cluster);
	if (result < 0)
		return result;
	int found = tx_get(c->tx, c->arena, OUTAGE_KIND, cluster.doc.id, &d);
	if (found < 0 && found != -ENOENT)
		return found;
	result = refuse_start(c, &cluster, found, &d);
	if (result == 0)
		result = filters_check(c, &cluster);
	if (result == 0)
		result = outage_put(c, &cluster, found == 0, &body);
	if (result == 0)
		result = cluster_change(c->tx, c->arena, &cluster, "UPDATING");
	if (result < 0)
		return result;
	event_field(c, "clusterName", cluster.doc.name);
	buf_str(&c->out, body);
	return 0;
}

static int end(struct tx *tx, struct arena *a, struct cluster *cluster, struct doc *d)
{
	int result = state_set(tx, a, d, doc_json(a, d->body), "RECOVERY_REQUESTED");
	if (result == 0)
		result = outage_forget(tx, a, cluster->doc.id);
	return result < 0 ? result
	                  : cluster_change(tx, a, cluster, cluster_is(cluster, "DELETING") ? "DELETING" : "UPDATING");
}

int clusters_end_outage(struct call *c)
{
	struct cluster cluster;
	struct doc d;
	int result = outage_load(c, &cluster, &d);
	if (result < 0)
		return result;
	if (is_ending(doc_json(c->arena, d.body)))
		return call_fail_about(c, 400, "OUTAGE_SIMULATION_NOT_ACTIVE", cluster.doc.name,
		                       "The outage simulation of \"%.*s\" is over or ending already.",
		                       STR_ARG(cluster.doc.name));
	result = end(c->tx, c->arena, &cluster, &d);
	if (result < 0)
		return result;
	event_field(c, "clusterName", cluster.doc.name);
	buf_str(&c->out, d.body);
	return 0;
}

/* The simulation's time is over, unless it was ended, or is another one by now. */
int outage_end_save(struct tx *tx, struct job_run *r)
{
	const json_t *args = doc_json(r->arena, r->job.args);
	struct cluster cluster;
	struct doc d;
	int result = cluster_get(tx, r->arena, json_field(args, "cluster"), &cluster);
	if (result == 0)
		result = tx_get(tx, r->arena, OUTAGE_KIND, cluster.doc.id, &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	const json_t *outage = doc_json(r->arena, d.body);
	if (is_ending(outage) || !str_eq(json_field(outage, "id"), json_field(args, "id")))
		return 0;
	return end(tx, r->arena, &cluster, &d);
}

/* What can be done to a cluster beside changing its description: other primaries, access for the vendor's employees,
 * the pin of the feature version, and the way from the shared tiers to larger ones. */
#include "api/clusters/actions.h"

#include "api/clusters/cluster.h"
#include "api/clusters/flex.h"
#include "api/clusters/forms.h"
#include "api/clusters/jobs.h"
#include "api/clusters/lifetime.h"
#include "api/clusters/nodes.h"
#include "api/clusters/refuse.h"
#include "api/clusters/spec.h"
#include "api/clusters/store.h"
#include "api/clusters/update.h"
#include "api/clusters/view.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>

#define DAY_MS 86400000LL
#define PIN_MS (28 * DAY_MS)
#define GRANT_MS (90 * DAY_MS)

/* The path's cluster, unless it is being deleted. */
static int change_begin(struct call *c, struct cluster *ret_cluster)
{
	int result = cluster_load(c, ret_cluster);
	return result < 0 ? result : cluster_refuse_deleting(c, ret_cluster);
}

/* For what the engine has nothing to do with. */
static int change_save(struct call *c, struct cluster *cluster)
{
	event_field(c, "clusterName", cluster->doc.name);
	return cluster_save(c->tx, c->arena, cluster);
}

int clusters_restart_primaries(struct call *c)
{
	struct cluster cluster;
	int result = change_begin(c, &cluster);
	if (result == 0)
		result = cluster_refuse_paused(c, &cluster);
	if (result < 0)
		return result;
	struct job job = {.kind = STR(RESTART_JOB), .subject = cluster.doc.id, .due_ms = clock_now_ms()};
	event_field(c, "clusterName", cluster.doc.name);
	if (cluster_is(&cluster, "IDLE")) {
		json_put_z(cluster.body, "stateName", "UPDATING");
		result = cluster_save(c->tx, c->arena, &cluster);
	}
	return result < 0 ? result : tx_job_ensure(c->tx, &job);
}

/* The state is IDLE again, unless there is more to do: another change of primaries, or of anything else. */
static int restart_save(struct tx *tx, struct job_run *r)
{
	struct cluster cluster;
	struct job job;
	int result = cluster_get(tx, r->arena, r->job.subject, &cluster);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	result = tx_job_find(tx, r->arena, RESTART_JOB, cluster.doc.id, &job);
	bool waits = result == 0 && !job.failed;
	if (result < 0 && result != -ENOENT)
		return result;
	if (waits || !cluster_is(&cluster, "UPDATING") || cluster_is_worked_on(&cluster) ||
	    !json_equal(json_object_get(cluster.plan, "generation"), json_object_get(cluster.plan, "applied")))
		return 0;
	json_put_z(cluster.body, "stateName", "IDLE");
	return cluster_save(tx, r->arena, &cluster);
}

/* Whatever came of it, the cluster is looked at, and then says what state it is in. */
int restart_failed(struct tx *tx, struct job_run *r)
{
	return cluster_reconcile(tx, r->job.subject);
}

/* Who leads each shard is noted before any of them hands over: the job, repeated after a crash, moves no primary
 * twice. */
static int primaries_note(struct job_run *r, const char *id, size_t shards)
{
	const struct service *s = r->ctx;
	struct cluster_status status;
	int result = s->engine_ops->core->observe(s->engine_state, id, r->arena, &status);
	json_t *names = json_array();
	for (size_t i = 0; result == 0 && i < shards; i++) {
		const struct node_status *leader = NULL;
		for (size_t k = 0; k < status.node_count; k++)
			if (status.nodes[k].primary && status.nodes[k].shard == i &&
			    status.nodes[k].kind != NODE_ROUTER)
				leader = &status.nodes[k];
		if (leader)
			json_array_append_new(names, json_string(leader->name));
		else
			result = -EAGAIN;
	}
	json_t *args = json_pack("{s:o}", "primaries", names);
	r->job.args = json_text(r->arena, args);
	json_decref(args);
	if (result == -EAGAIN)
		r->why = "a shard has no primary at the moment";
	return result < 0 ? result : JOB_STEP;
}

int restart_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct cluster cluster;
	int result = cluster_of_job(r, &cluster);
	if (result < 0)
		return result == -ENOENT ? JOB_DONE : result;
	if (result > 0)
		return JOB_DONE;
	const char *id = arena_z(r->arena, cluster.doc.id);
	if (r->job.step == 0)
		return primaries_note(r, id, cluster_shard_count(cluster.body));
	const json_t *names = json_object_get(doc_json(r->arena, r->job.args), "primaries");
	for (size_t i = 0, shards = json_array_size(names); result == 0 && i < shards; i++) {
		job_progress(r, (unsigned)(i * 100 / shards), "changing primaries");
		result = s->engine_ops->core->switchover(s->engine_state, id, (unsigned)i,
		                                         json_string_value(json_array_get(names, i)), &r->why);
	}
	r->save = restart_save;
	return result < 0 ? result : JOB_DONE;
}

/* A time in the body that must come, and not too late. */
static int future_check(struct call *c, const char *field, int64_t most_ms, int64_t *ret_ms)
{
	struct str text = json_field(c->body, field);
	int64_t now = clock_now_ms(), ms;
	char latest[CLOCK_TEXT];
	clock_format(now + most_ms, latest);
	if (!clock_parse(text, &ms) || ms <= now || ms > now + most_ms)
		return call_fail_field(c, 400, "VALIDATION_ERROR", field, "must be a time to come, not after %s.",
		                       latest);
	*ret_ms = ms;
	return 0;
}

int clusters_grant_access(struct call *c)
{
	struct cluster cluster;
	int64_t until = 0;
	int result = change_begin(c, &cluster);
	if (result == 0)
		result = future_check(c, "expirationTime", GRANT_MS, &until);
	if (result < 0)
		return result;
	json_t *grant = json_object();
	json_put_time(grant, "expirationTime", until);
	json_object_set(grant, "grantType", json_object_get(c->body, "grantType"));
	json_put(cluster.body, "vendorEmployeeAccessGrant", grant);
	return change_save(c, &cluster);
}

int clusters_revoke_access(struct call *c)
{
	struct cluster cluster;
	int result = cluster_load(c, &cluster);
	if (result < 0)
		return result;
	if (!cluster_grant(cluster.body)) {
		event_set_type(c, NULL); /* nothing to revoke */
		return 0;
	}
	json_object_del(cluster.body, "vendorEmployeeAccessGrant");
	return change_save(c, &cluster);
}

int clusters_pin(struct call *c)
{
	struct cluster cluster;
	int64_t until = clock_now_ms() + PIN_MS;
	int result = change_begin(c, &cluster);
	if (result == 0 && json_object_get(c->body, "expirationDate"))
		result = future_check(c, "expirationDate", PIN_MS, &until);
	if (result < 0)
		return result;
	if (cluster_is_pinned(cluster.body))
		event_set_type(c, "CLUSTER_FCV_EXPIRATION_DATE_UPDATED");
	else
		json_object_set(cluster.body, "featureCompatibilityVersion",
		                json_object_get(cluster.body, "dbMajorVersion"));
	json_put_time(cluster.body, "featureCompatibilityVersionExpirationDate", until);
	return change_save(c, &cluster);
}

int clusters_unpin(struct call *c)
{
	struct cluster cluster;
	int result = change_begin(c, &cluster);
	if (result < 0)
		return result;
	if (!cluster_is_pinned(cluster.body))
		return call_fail_about(c, 400, "FEATURE_COMPATIBILITY_VERSION_NOT_PINNED", cluster.doc.name,
		                       "The feature compatibility version of \"%.*s\" is not pinned.",
		                       STR_ARG(cluster.doc.name));
	json_object_del(cluster.body, "featureCompatibilityVersionExpirationDate");
	json_object_set(cluster.body, "featureCompatibilityVersion", json_object_get(cluster.body, "dbMajorVersion"));
	return change_save(c, &cluster);
}

int clusters_upgrade_tenant(struct call *c)
{
	struct cluster cluster;
	struct faults faults = {.count = 0};
	int result = cluster_load_named(c, json_field(c->body, "name"), &cluster);
	if (result == 0)
		result = cluster_refuse_deleting(c, &cluster);
	if (result < 0)
		return result;
	if (!cluster_is_tenant(cluster.body))
		faults_add(&faults, c->arena, STR("name"), "%.*s is no shared-tier cluster: update it instead",
		           STR_ARG(cluster.doc.name));
	if (!json_object_get(c->body, "providerSettings"))
		faults_add(&faults, c->arena, STR("providerSettings"), "is required");
	if (faults.count)
		return call_fail_faults(c, &faults);
	json_t *patch = json_keep(c->arena, cluster_from(c->arena, FORM_LEGACY, c->body, cluster.body));
	bool flex = str_is(json_field(json_object_get(c->body, "providerSettings"), "providerName"), "FLEX");
	result = flex ? flex_become(c, &cluster, patch) : cluster_update_to(c, &cluster, patch);
	if (result == 0)
		result = lifetime_set(c, &cluster, false);
	return result < 0 ? result : cluster_write(c, &cluster.doc);
}

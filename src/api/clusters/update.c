/* Clusters: create, list, get, update, delete, status. A call writes what is wanted and asks for a job in the same
 * transaction; the answer shows the state from then on. */
#include "api/clusters/update.h"

#include "api/clusters/cluster.h"
#include "api/clusters/forms.h"
#include "api/clusters/lifetime.h"
#include "api/clusters/nodes.h"
#include "api/clusters/place.h"
#include "api/clusters/refuse.h"
#include "api/clusters/spec.h"
#include "api/clusters/store.h"
#include "api/clusters/view.h"
#include "api/kit/verbs.h"
#include "api/policies/policies.h"
#include "trail/events.h"

#include <errno.h>

#define VERSIONS_MAX 16

int cluster_validate(struct call *c, json_t *body, const json_t *old, struct faults *faults)
{
	unsigned versions[VERSIONS_MAX];
	const struct service *s = c->service;
	struct cluster_rules rules = {.arena = c->arena, .versions = versions, .names = s->db_versions, .old = old};
	rules.version_count = s->engine_ops->core->versions(s->engine_state, versions, VERSIONS_MAX);
	cluster_identify(body, old);
	cluster_check(&rules, body, faults);
	if (!faults->count)
		cluster_sort(body, old);
	int result = 0;
	for (size_t i = 0; result == 0 && i < cluster_part_count; i++)
		if (cluster_parts[i]->rules)
			result = cluster_parts[i]->rules(c, body, faults);
	return result;
}

/* With what the schemas have no default for. */
static void cluster_complete(json_t *body)
{
	schema_add_defaults(resource_cluster.schema, body);
	schema_normalize_dates(resource_cluster.schema, body);
	json_object_del(body, "acceptDataRisksAndForceReplicaSetReconfig");
	json_t *usual = json_pack("{s:{}, s:{s:b, s:s}, s:[], s:b, s:b, s:b, s:[]}", "advancedConfiguration",
	                          "biConnector", "enabled", 0, "readPreference", "SECONDARY", "labels", "paused", 0,
	                          "pitEnabled", 0, "redactClientLogData", 0, "tags");
	if (cluster_is_sharded(body))
		json_put_z(usual, "configServerType", "DEDICATED");
	if (str_is(json_field(body, "clusterType"), "GEOSHARDED"))
		json_put(usual, "globalClusterSelfManagedSharding", json_false());
	json_object_update_missing_new(body, usual);
	usual = json_pack("{s:[], s:[], s:s, s:s}", "customOpensslCipherConfigTls12", "customOpensslCipherConfigTls13",
	                  "minimumEnabledTlsProtocol", "TLS1_2", "tlsCipherConfigMode", "DEFAULT");
	json_object_update_missing_new(json_object_get(body, "advancedConfiguration"), usual);
}

int cluster_create(struct call *c, const char *kind, json_t *body, bool independent, struct cluster *ret_cluster)
{
	struct cluster cluster;
	struct str why;
	int result = limit_enforce(c, "svc.project.deployment.clusters", 1);
	if (result < 0)
		return result;
	cluster_complete(body);
	result = cluster_insert(c->tx, c->arena, kind, c->group.id, body, independent, &cluster, &why);
	if (result == -EDQUOT)
		return call_fail(c, 409, "NO_HOST_HAS_ROOM", "%.*s", STR_ARG(why));
	if (result == -EEXIST) {
		struct str name = json_field(body, "name");
		return call_fail_about(c, 409, "DUPLICATE_CLUSTER_NAME", name,
		                       "name: the project has a cluster \"%.*s\" already. Choose another.",
		                       STR_ARG(name));
	}
	if (result == 0)
		result = policy_check_cluster(c, cluster.body, NULL);
	if (result < 0)
		return result;
	event_cluster(c, cluster.doc.name);
	event_field(c, "clusterName", cluster.doc.name);
	*ret_cluster = cluster;
	return 0;
}

/* Whether the engine has something to do. */
static bool is_material(const json_t *before, const json_t *after)
{
	static const char *const fields[] = {
	        "replicationSpecs", "clusterType", "dbMajorVersion",           "paused",     "advancedConfiguration",
	        "backupEnabled",    "pitEnabled",  "encryptionAtRestProvider", "biConnector"};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (!json_equal(json_object_get(before, fields[i]), json_object_get(after, fields[i])))
			return true;
	return false;
}

/* A change of type that never came to pass can be taken back: what counts is the type that the databases have. */
static const json_t *applied_form(struct arena *a, const struct cluster *cluster)
{
	json_t *type = json_object_get(cluster->plan, "type");
	if (!type || json_equal(type, json_object_get(cluster->body, "clusterType")))
		return cluster->body;
	json_t *form = json_copy(cluster->body);
	json_object_set(form, "clusterType", type);
	return json_keep(a, form);
}

/* Nodes for searching are in no body, but of the cluster's nodes all the same. */
static void room_check(struct call *c, const struct cluster *cluster, const json_t *after, struct faults *faults)
{
	const json_t *search = json_object_get(cluster->plan, "search");
	if (search && !faults->count && cluster_node_count(after, search, ENGINE_NODES_MAX) > ENGINE_NODES_MAX)
		faults_add(faults, c->arena, STR("replicationSpecs"),
		           "must have at most %d nodes in all, with the search nodes", ENGINE_NODES_MAX);
}

int cluster_update_to(struct call *c, struct cluster *cluster, const json_t *patch)
{
	json_t *after = json_deep_copy(cluster->body);
	struct faults faults = {.count = 0};
	json_keep(c->arena, after);
	json_merge(after, patch);
	if (!json_flag(after, "backupEnabled"))
		json_object_del(after, CLUSTER_BACKUPS_ASKED);
	int result = cluster_validate(c, after, applied_form(c->arena, cluster), &faults);
	room_check(c, cluster, after, &faults);
	lifetime_check(c, &faults);
	if (result < 0)
		return result;
	if (faults.count)
		return call_fail_faults(c, &faults);
	cluster_complete(after);
	if (json_object_get(patch, "replicationSpecs")) /* shards scale on their own once a version can say so */
		json_put(cluster->plan, "independent", json_boolean(cluster_form(c->version->request) == FORM_CURRENT));
	/* What was read can be sent back: that changes nothing. */
	json_t *was = json_clone(c->arena, cluster->body), *is = json_clone(c->arena, after);
	cluster_show(was);
	cluster_show(is);
	bool material = is_material(was, is), changed = !json_equal(was, is);
	/* A paused cluster can be resumed, described and protected, not changed. */
	result = material && json_flag(after, "paused") ? cluster_refuse_paused(c, cluster) : 0;
	if (result == 0)
		result = policy_check_cluster(c, after, cluster->body);
	if (result < 0)
		return result;
	bool tags = !json_equal(json_object_get(cluster->body, "tags"), json_object_get(after, "tags"));
	cluster->body = after;
	event_cluster(c, cluster->doc.name);
	event_field(c, "clusterName", cluster->doc.name);
	if (!changed)
		event_set_type(c, NULL);
	if (tags && !material) {
		event_set_type(c, "CLUSTER_TAGS_MODIFIED");
		event_field(c, "resourceId", cluster->doc.id);
		event_field(c, "resourceType", STR("CLUSTER"));
	}
	if (material)
		result = cluster_place_check(c, cluster);
	if (result < 0)
		return result;
	if (material)
		return cluster_change(c->tx, c->arena, cluster,
		                      cluster_is(cluster, "CREATING") ? "CREATING" : "UPDATING");
	return changed ? cluster_save(c->tx, c->arena, cluster) : 0;
}

int cluster_check_change(struct call *c, const struct cluster *cluster)
{
	int result = if_match(c, cluster->doc.rev);
	return result < 0 ? result : cluster_refuse_deleting(c, cluster);
}

static int create(struct call *c, struct cluster *ret_cluster)
{
	enum cluster_form form = cluster_form(c->version->request);
	json_t *body = json_keep(c->arena, cluster_from(c->arena, form, c->body, NULL));
	struct faults faults = {.count = 0};
	int result = cluster_validate(c, body, NULL, &faults);
	lifetime_check(c, &faults);
	if (result == 0 && faults.count)
		result = call_fail_faults(c, &faults);
	return result < 0 ? result : cluster_create(c, CLUSTER_KIND, body, form == FORM_CURRENT, ret_cluster);
}

static json_t *patch_of(struct call *c, const json_t *cluster)
{
	return cluster_from(c->arena, cluster_form(c->version->request), c->body, cluster);
}

int cluster_put_by(struct call *c, struct doc *d, const struct doc *old,
                   int (*make)(struct call *c, struct cluster *ret_cluster),
                   json_t *(*patch)(struct call *c, const json_t *cluster))
{
	struct cluster cluster;
	int result = old ? cluster_get(c->tx, c->arena, old->id, &cluster) : make(c, &cluster);
	if (result == 0 && old)
		result = cluster_refuse_deleting(c, &cluster);
	if (result == 0 && old)
		result = cluster_update_to(c, &cluster, json_keep(c->arena, patch(c, cluster.body)));
	if (result == 0)
		result = lifetime_set(c, &cluster, !old);
	if (result < 0)
		return result;
	*d = cluster.doc;
	return 1;
}

/* From the request, not from the verb's document: older versions have other forms. */
int cluster_put(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	return cluster_put_by(c, d, old, create, patch_of);
}

int cluster_delete(struct call *c, struct cluster *cluster)
{
	int result = cluster_check_change(c, cluster);
	if (result < 0)
		return result;
	if (json_flag(cluster->body, "terminationProtectionEnabled"))
		return call_fail_about(
		        c, 409, "CANNOT_TERMINATE_CLUSTER_WHEN_TERMINATION_PROTECTION_ENABLED", cluster->doc.name,
		        "The cluster \"%.*s\" is protected. Set terminationProtectionEnabled to false first.",
		        STR_ARG(cluster->doc.name));
	event_cluster(c, cluster->doc.name);
	event_field(c, "clusterName", cluster->doc.name);
	bool retain = call_query_bool(c, "retainBackups", json_flag(cluster->body, "retainBackups"));
	json_put(cluster->plan, "retainBackups", json_boolean(retain));
	return cluster_change(c->tx, c->arena, cluster, "DELETING");
}

int clusters_status(struct call *c)
{
	struct cluster cluster;
	int result = cluster_load(c, &cluster);
	if (result < 0)
		return result;
	struct job job;
	bool pending = tx_job_of(c->tx, c->arena, cluster.doc.id, &job) == 0 && !job.failed;
	cluster_progress_header(c, &cluster);
	entity_write(c, &c->out,
	             cluster_is(&cluster, "IDLE") && !pending ? STR("{\"changeStatus\":\"APPLIED\"}")
	                                                      : STR("{\"changeStatus\":\"PENDING\"}"),
	             c->op, "clusterName", cluster.doc.name, true);
	return 0;
}

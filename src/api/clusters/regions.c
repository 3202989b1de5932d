/* Where clusters can be placed, how they scale, and whether a description would be taken. Regions and sizes come from
 * the schemas: there is no other list of them. */
#include "api/clusters/cluster.h"
#include "api/clusters/nodes.h"
#include "api/clusters/spec.h"
#include "api/clusters/store.h"
#include "api/clusters/update.h"
#include "api/kit/verbs.h"
#include "api/projects/projects.h"
#include "call/service.h"

#include <errno.h>

static void value_write(struct call *c, json_t *value)
{
	json_raw(&c->out, json_text(c->arena, json_keep(c->arena, value)));
}

/* The comma-separated list has the word, or there is none. */
static bool is_asked(struct str list, struct str word)
{
	return !list.n || str_list_has(list, word);
}

static json_t *regions_json(const struct cluster_provider *p)
{
	const struct schema *all = schema_of_field(p->settings, "regionName");
	json_t *list = json_array();
	for (unsigned i = 0; all && i < all->enum_count; i++) {
		struct str name = schema_enum(all, i);
		json_array_append_new(
		        list, json_pack("{s:b, s:s%}", "default", str_is(name, p->first), "name", name.p, name.n));
	}
	return list;
}

static json_t *provider_json(struct call *c, const struct cluster_provider *p)
{
	const struct schema *all = schema_of_field(p->settings, "instanceSizeName");
	json_t *sizes = json_array(), *regions = json_keep(c->arena, regions_json(p));
	for (unsigned i = 0; all && i < all->enum_count; i++) {
		struct str name = schema_enum(all, i);
		if (is_asked(call_query(c, "tier"), name))
			json_array_append_new(
			        sizes, json_pack("{s:O, s:s%}", "availableRegions", regions, "name", name.p, name.n));
	}
	return json_pack("{s:o, s:s}", "instanceSizes", sizes, "provider", p->name);
}

int clusters_list_regions(struct call *c)
{
	int64_t total = 0, from = list_offset(c), to = from + c->page_size;
	list_begin(c);
	for (size_t i = 0; i < CLUSTER_PROVIDERS; i++) {
		if (!is_asked(call_query(c, "providers"), str_of(cluster_providers[i].name)))
			continue;
		if (total >= from && total < to)
			value_write(c, provider_json(c, &cluster_providers[i]));
		total++;
	}
	list_end(c, total, to < total);
	return 0;
}

int clusters_scaling_mode(struct call *c)
{
	struct cluster cluster;
	int result = cluster_load(c, &cluster);
	if (result < 0)
		return result;
	bool independent = json_flag(cluster.plan, "independent");
	value_write(c, json_pack("{s:s}", "autoScalingMode",
	                         independent ? "INDEPENDENT_SHARD_SCALING" : "CLUSTER_WIDE_SCALING"));
	return 0;
}

int clusters_validate(struct call *c)
{
	const json_t *given = json_object_get(c->body, "clusterDescription");
	bool editing = json_flag(c->body, "editing");
	struct cluster cluster = {.body = NULL};
	struct faults faults = {.count = 0};
	struct str name = json_field(c->body, "clusterName");
	int result = editing ? cluster_load_named(c, name, &cluster) : 0;
	if (result == -ENOENT)
		faults_add(&faults, c->arena, STR("clusterName"), "the project has no cluster \"%.*s\"", STR_ARG(name));
	else if (result < 0)
		return result;
	json_t *whole = json_keep(c->arena, cluster.body ? json_deep_copy(cluster.body) : json_object());
	json_object_update(whole, (json_t *)(uintptr_t)given);
	if (!editing && !json_object_get(whole, "name") && json_object_get(c->body, "clusterName"))
		json_object_set(whole, "name", json_object_get(c->body, "clusterName"));
	if (json_object_get(c->body, "tags"))
		json_object_set(whole, "tags", json_object_get(c->body, "tags"));
	result = cluster_validate(c, whole, cluster.body, &faults);
	if (result < 0)
		return result;
	if (!editing && cluster_name_check(c->tx, c->arena, c->group.id, json_field(whole, "name")) == -EEXIST)
		faults_add(&faults, c->arena, STR("name"), "the project has such a cluster already");
	json_t *errors = json_array();
	for (size_t i = 0; i < faults.count && i < FAULTS_MAX; i++) {
		struct str issue = arena_printf(c->arena, "%.*s: %.*s", STR_ARG(faults.list[i].path),
		                                STR_ARG(faults.list[i].text));
		issue = dialect_sentence(c->dialect, issue, c->request->target, c->request->body, c->arena);
		json_array_append_new(errors, json_pack("{s:s, s:s%}", "errorCode", "VALIDATION_ERROR",
		                                        "validationIssue", issue.p, issue.n));
	}
	value_write(c, json_pack("{s:o, s:b}", "errors", errors, "valid", faults.count == 0));
	return 0;
}

/* Clusters of all projects that the caller sees, project by project. */

struct details {
	struct arena *arena;
	json_t *clusters;
};

static int detail_visit(struct tx *tx, void *ctx, const struct doc *d)
{
	struct details *to = ctx;
	struct cluster cluster = cluster_of(to->arena, d);
	struct str version = json_field(cluster.body, "dbVersion");
	const char *availability = json_flag(cluster.body, "paused") ? "unavailable"
	                           : cluster_is(&cluster, "IDLE")    ? "available"
	                                                             : "warning";
	json_t *versions = json_array();
	if (version.n)
		json_add_str(versions, version);
	json_array_append_new(
	        to->clusters,
	        json_pack("{s:i, s:b, s:s, s:b, s:s%, s:i, s:s%, s:I, s:b, s:s, s:o}", "alertCount", 0, "authEnabled",
	                  1, "availability", availability, "backupEnabled", json_flag(cluster.body, "backupEnabled"),
	                  "clusterId", d->id.p, d->id.n, "dataSizeBytes", 0, "name", d->name.p, d->name.n, "nodeCount",
	                  (json_int_t)json_array_size(json_object_get(cluster.plan, "nodes")), "sslEnabled", 1, "type",
	                  cluster_is_sharded(cluster.body) ? "SHARDED_CLUSTER" : "REPLICA_SET", "versions", versions));
	return 0;
}

static int group_write(struct call *c, const void *ctx, const struct doc *project)
{
	struct details to = {.arena = c->arena, .clusters = json_keep(c->arena, json_array())};
	struct doc org;
	int result = tx_get(c->tx, c->arena, "org", project->parent, &org);
	if (result == 0)
		result = clusters_walk_group(c->tx, c->arena, project->id, detail_visit, &to);
	if (result < 0)
		return result;
	struct str org_name = json_field(doc_json(c->arena, org.body), "name");
	value_write(c, json_pack("{s:O, s:s%, s:s%, s:s%, s:s%, s:s, s:[]}", "clusters", to.clusters, "groupId",
	                         project->id.p, project->id.n, "groupName", project->name.p, project->name.n, "orgId",
	                         org.id.p, org.id.n, "orgName", org_name.p, org_name.n, "planType", "Self-hosted",
	                         "tags"));
	return 0;
}

int clusters_list_details(struct call *c)
{
	struct segment *list;
	size_t count;
	int result = projects_visible(c, &list, &count);
	return result < 0 ? result : list_segments(c, list, count, group_write, NULL, NULL);
}

/* Where clusters can be placed, how they scale, and whether a description would be taken. Regions and sizes come from
 * the schemas: there is no other list of them. */
#include "api/clusters/forms.h"
#include "api/clusters/update.h"
#include "api/kit/verbs.h"
#include "api/projects/projects.h"
#include "call/service.h"

#include <errno.h>

static const struct {
	const char *name, *settings, *first; /* first: the region that is offered by default */
} providers[] = {{"AWS", "AWSCloudProviderSettings", "US_EAST_1"},
                 {"AZURE", "AzureCloudProviderSettings", "US_EAST_2"},
                 {"GCP", "CloudGCPProviderSettings", "CENTRAL_US"}};
#define PROVIDERS (sizeof providers / sizeof *providers)

static const struct schema *enum_of(size_t provider, const char *field)
{
	const struct schema *s = schema_find(str_of(providers[provider].settings));
	const struct field *f = s ? schema_field(s, str_of(field)) : NULL;
	return f ? f->schema : NULL;
}

/* The comma-separated list has the word, or there is none. */
static bool is_asked(struct str list, struct str word)
{
	struct str one;
	if (!list.n)
		return true;
	while (list.n) {
		str_cut(list, ',', &one, &list);
		if (str_eq(str_trim(one), word))
			return true;
	}
	return false;
}

static struct str enum_text(const struct schema *s, unsigned i)
{
	struct str json = str_of(s->enums[i]);
	return (struct str){json.p + 1, json.n - 2};
}

static void size_write(struct buf *b, size_t provider, struct str size, const struct schema *regions)
{
	json_open(b, '{');
	json_key(b, "availableRegions");
	json_open(b, '[');
	for (unsigned i = 0; i < regions->enum_count; i++) {
		json_open(b, '{');
		json_key(b, "default");
		json_bool(b, str_is(enum_text(regions, i), providers[provider].first));
		json_key(b, "name");
		json_str(b, enum_text(regions, i));
		json_close(b, '}');
	}
	json_close(b, ']');
	json_key(b, "name");
	json_str(b, size);
	json_close(b, '}');
}

static void provider_write(struct call *c, struct buf *b, size_t provider)
{
	const struct schema *sizes = enum_of(provider, "instanceSizeName"), *regions = enum_of(provider, "regionName");
	json_open(b, '{');
	json_key(b, "instanceSizes");
	json_open(b, '[');
	for (unsigned i = 0; sizes && regions && i < sizes->enum_count; i++)
		if (is_asked(call_query(c, "tier"), enum_text(sizes, i)))
			size_write(b, provider, enum_text(sizes, i), regions);
	json_close(b, ']');
	json_key(b, "provider");
	json_z(b, providers[provider].name);
	json_close(b, '}');
}

int clusters_list_regions(struct call *c)
{
	int64_t total = 0, from = list_offset(c), to = from + c->page_size;
	list_begin(c);
	for (size_t i = 0; i < PROVIDERS; i++) {
		if (!is_asked(call_query(c, "providers"), str_of(providers[i].name)))
			continue;
		if (total >= from && total < to)
			provider_write(c, &c->out, i);
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
	bool independent = json_is_true(json_object_get(cluster.plan, "independent"));
	json_open(&c->out, '{');
	json_key(&c->out, "autoScalingMode");
	json_z(&c->out, independent ? "INDEPENDENT_SHARD_SCALING" : "CLUSTER_WIDE_SCALING");
	json_close(&c->out, '}');
	return 0;
}

/* The cluster that is edited, or a fault. */
static int edited_load(struct call *c, struct faults *faults, struct cluster *ret_cluster)
{
	struct str name = json_field(c->body, "clusterName");
	int result = cluster_load_named(c, name, ret_cluster);
	if (result == -ENOENT) {
		faults_add(faults, c->arena, STR("clusterName"), "the project has no cluster \"%.*s\"", STR_ARG(name));
		return 0;
	}
	return result;
}

int clusters_validate(struct call *c)
{
	const json_t *given = json_object_get(c->body, "clusterDescription");
	bool editing = json_is_true(json_object_get(c->body, "editing"));
	struct cluster cluster = {.body = NULL};
	struct faults faults = {.count = 0};
	int result = editing ? edited_load(c, &faults, &cluster) : 0;
	if (result < 0)
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
	json_open(&c->out, '{');
	json_key(&c->out, "errors");
	json_open(&c->out, '[');
	for (size_t i = 0; i < faults.count && i < FAULTS_MAX; i++) {
		json_open(&c->out, '{');
		json_key(&c->out, "errorCode");
		json_z(&c->out, "VALIDATION_ERROR");
		json_key(&c->out, "validationIssue");
		json_str(&c->out, arena_printf(c->arena, "%.*s: %.*s", STR_ARG(faults.list[i].path),
		                               STR_ARG(faults.list[i].text)));
		json_close(&c->out, '}');
	}
	json_close(&c->out, ']');
	json_key(&c->out, "valid");
	json_bool(&c->out, faults.count == 0);
	json_close(&c->out, '}');
	return 0;
}

/* Clusters of all projects that the caller sees, project by project. */

static void detail_write(struct call *c, struct buf *b, const struct doc *d)
{
	const json_t *body = doc_json(c->arena, d->body), *plan = doc_json(c->arena, d->secret);
	bool paused = json_is_true(json_object_get(body, "paused")),
	     idle = str_is(json_field(body, "stateName"), "IDLE");
	struct str version = json_field(body, "dbVersion");
	json_open(b, '{');
	json_key(b, "alertCount");
	json_int(b, 0);
	json_key(b, "authEnabled");
	json_bool(b, true);
	json_key(b, "availability");
	json_z(b, paused ? "unavailable" : idle ? "available" : "warning");
	json_key(b, "backupEnabled");
	json_bool(b, json_is_true(json_object_get(body, "backupEnabled")));
	json_key(b, "clusterId");
	json_str(b, d->id);
	json_key(b, "dataSizeBytes");
	json_int(b, 0);
	json_key(b, "name");
	json_str(b, d->name);
	json_key(b, "nodeCount");
	json_int(b, (int64_t)json_array_size(json_object_get(plan, "nodes")));
	json_key(b, "sslEnabled");
	json_bool(b, true);
	json_key(b, "type");
	json_z(b, str_is(json_field(body, "clusterType"), "REPLICASET") ? "REPLICA_SET" : "SHARDED_CLUSTER");
	json_key(b, "versions");
	json_open(b, '[');
	if (version.n)
		json_str(b, version);
	json_close(b, ']');
	json_close(b, '}');
}

static int detail_visit(struct tx *tx, void *ctx, const struct doc *cluster)
{
	struct call *c = ctx;
	detail_write(c, &c->out, cluster);
	return 0;
}

static int group_write(struct call *c, const void *ctx, const struct doc *project)
{
	struct buf *b = &c->out;
	struct doc org;
	int result = tx_get(c->tx, c->arena, "org", project->parent, &org);
	if (result < 0)
		return result;
	json_open(b, '{');
	json_key(b, "clusters");
	json_open(b, '[');
	result = clusters_walk_group(c->tx, c->arena, project->id, detail_visit, c);
	if (result < 0)
		return result;
	json_close(b, ']');
	json_key(b, "groupId");
	json_str(b, project->id);
	json_key(b, "groupName");
	json_str(b, project->name);
	json_key(b, "orgId");
	json_str(b, org.id);
	json_key(b, "orgName");
	json_str(b, json_field(doc_json(c->arena, org.body), "name"));
	json_key(b, "planType");
	json_z(b, "Self-hosted");
	json_key(b, "tags");
	json_open(b, '[');
	json_close(b, ']');
	json_close(b, '}');
	return 0;
}

int clusters_list_details(struct call *c)
{
	struct segment *list;
	size_t count;
	int result = projects_visible(c, &list, &count);
	return result < 0 ? result : list_segments(c, list, count, group_write, NULL, NULL);
}

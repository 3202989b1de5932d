/* Search nodes: standbys of a cluster that are for searching, so many in a region and of a size of their own. They are
 * nodes of the cluster like any other: made, moved, paused and taken away with it by the engine, and they have all of
 * its search indexes, because they replay what the primary does. What is wanted of them is in the cluster's plan. */
#include "api/search/nodes.h"

#include "api/kit/verbs.h"
#include "base/id.h"

#include <errno.h>

/* A deployment asks for at most so many in a region: the schema bounds each spec. */
struct reading {
	struct call *c;
	const struct cluster *cluster;
	struct faults faults;
	json_t *specs; /* one for each region */
	size_t added;  /* nodes */
};

static const json_t *spec_of(const json_t *specs, const json_t *config)
{
	for (size_t i = 0; i < json_array_size(specs); i++) {
		const json_t *s = json_array_get(specs, i);
		if (json_equal(json_object_get(s, "cloudProvider"), json_object_get(config, "providerName")) &&
		    json_equal(json_object_get(s, "regionName"), json_object_get(config, "regionName")))
			return s;
	}
	return NULL;
}

static bool fits(const json_t *spec, const json_t *config)
{
	struct str provider = json_field(spec, "cloudProvider"), region = json_field(spec, "regionName");
	return (!provider.n || str_eq(provider, json_field(config, "providerName"))) &&
	       (!region.n || str_eq(region, json_field(config, "regionName")));
}

static void region_add(struct reading *r, const json_t *spec, const json_t *config, json_int_t count)
{
	json_t *made = json_object();
	json_put_str(made, "cloudProvider", json_field(config, "providerName"));
	json_put_str(made, "regionName", json_field(config, "regionName"));
	json_put_str(made, "instanceSize", json_field(spec, "instanceSize"));
	json_put(made, "nodeCount", json_integer(count));
	json_array_append_new(r->specs, made);
}

/* Every region of the cluster that the spec names, or all; each shard in it gets the nodes. */
static void spec_read(struct reading *r, size_t i)
{
	const json_t *spec = json_array_get(json_object_get(r->c->body, "specs"), i), *config;
	struct region_walk walk = {.spec = 0};
	size_t before = json_array_size(r->specs);
	bool found = false, twice = false;
	json_int_t count = json_number(spec, "nodeCount");
	count = count ? count : json_number(r->c->body, "defaultNodeCount");
	while ((config = region_next(r->cluster->body, &walk))) {
		const json_t *known = spec_of(r->specs, config);
		if (!fits(spec, config))
			continue;
		found = true;
		for (size_t k = 0; k < before && !twice; k++)
			twice = known && known == json_array_get(r->specs, k);
		if (!known)
			region_add(r, spec, config, count);
		r->added += (size_t)count;
	}
	if (!count)
		faults_add(&r->faults, r->c->arena, arena_printf(r->c->arena, "specs[%zu].nodeCount", i),
		           "is required, unless there is a defaultNodeCount");
	if (!found)
		faults_add(&r->faults, r->c->arena, arena_printf(r->c->arena, "specs[%zu].regionName", i),
		           "must be a region of the cluster");
	if (twice)
		faults_add(&r->faults, r->c->arena, arena_printf(r->c->arena, "specs[%zu].regionName", i),
		           "is a region that an earlier spec has");
}

/* Nodes of the cluster that are not for searching. */
static size_t others_count(const struct cluster *cluster)
{
	const json_t *nodes = json_object_get(cluster->plan, "nodes");
	size_t count = 0;
	for (size_t i = 0; i < json_array_size(nodes); i++)
		count += !str_is(json_field(json_array_get(nodes, i), "kind"), "search");
	return count;
}

static bool is_shared(const struct cluster *cluster)
{
	struct region_walk walk = {.spec = 0};
	return str_is(cluster->doc.kind, FLEX_KIND) ||
	       str_is(json_field(region_next(cluster->body, &walk), "providerName"), "TENANT");
}

static int specs_read(struct call *c, const struct cluster *cluster, json_t **ret_specs)
{
	struct reading r = {.c = c, .cluster = cluster, .specs = json_keep(c->arena, json_array())};
	const json_t *list = json_object_get(c->body, "specs");
	size_t room = ENGINE_NODES_MAX - others_count(cluster);
	if (is_shared(cluster))
		return call_fail_about(c, 400, "CLUSTER_IS_SHARED", cluster->doc.name,
		                       "The cluster \"%.*s\" is shared, and cannot have search nodes.",
		                       STR_ARG(cluster->doc.name));
	if (faults_too_many(&r.faults, c->arena, STR("specs"), list, ENGINE_NODES_MAX))
		return call_fail_faults(c, &r.faults);
	for (size_t i = 0; i < json_array_size(list); i++)
		spec_read(&r, i);
	if (!r.faults.count && r.added > room)
		faults_add(&r.faults, c->arena, STR("specs"),
		           "ask for %zu nodes in all, and the cluster can have %zu more: it has at most %d", r.added,
		           room, ENGINE_NODES_MAX);
	*ret_specs = r.specs;
	return r.faults.count ? call_fail_faults(c, &r.faults) : 0;
}

/* --- answers */

static const char *state_of(const struct cluster *cluster)
{
	if (json_flag(cluster->body, "paused"))
		return "PAUSED";
	return cluster_is(cluster, "IDLE") ? "IDLE" : "UPDATING";
}

/* The older forms have specs of a size and a number alone. */
static json_t *specs_plain(const json_t *specs)
{
	json_t *list = json_array();
	for (size_t i = 0; i < json_array_size(specs); i++) {
		static const char *const names[] = {"instanceSize", "nodeCount"};
		json_t *one = json_object();
		json_copy_fields(one, json_array_get(specs, i), names, 2);
		/* What is the same in all regions is one entry, as it was asked for: it can be sent back. */
		if (!i || !json_equal(one, json_array_get(list, json_array_size(list) - 1)))
			json_array_append_new(list, one);
		else
			json_decref(one);
	}
	return list;
}

static int deployment_write(struct call *c, const struct cluster *cluster)
{
	const json_t *search = json_object_get(cluster->plan, "search"), *specs = json_object_get(search, "specs");
	struct str provider = json_field(cluster->body, "encryptionAtRestProvider");
	json_t *shown = json_new(c->arena);
	json_put(shown, "effectiveSpecs", json_deep_copy(specs));
	json_put_str(shown, "encryptionAtRestProvider", provider.n ? provider : STR("NONE"));
	json_put_str(shown, "groupId", c->group.id);
	json_put_str(shown, "id", json_field(search, "id"));
	json_put(shown, "specs", specs_plain(specs));
	json_put_z(shown, "stateName", state_of(cluster));
	json_raw(&c->out, json_text(c->arena, shown));
	return 0;
}

static int missing(struct call *c, const struct cluster *cluster)
{
	return call_fail_about(c, 404, "SEARCH_DEPLOYMENT_NOT_FOUND", cluster->doc.name,
	                       "The cluster \"%.*s\" has no search nodes.", STR_ARG(cluster->doc.name));
}

/* --- calls */

static int load_for_change(struct call *c, struct cluster *ret_cluster)
{
	int r = cluster_load(c, ret_cluster);
	if (r == 0)
		r = cluster_refuse_deleting(c, ret_cluster);
	return r < 0 ? r : cluster_refuse_paused(c, ret_cluster);
}

static int change(struct call *c, struct cluster *cluster)
{
	int r = cluster_place_check(c, cluster);
	return r < 0 ? r : cluster_change(c->tx, c->arena, cluster, NULL);
}

/* The plan is parsed for clusters that have search nodes, and no others: every answer with a cluster asks. */
void search_nodes_link(struct call *c, const struct doc *d)
{
	static const char mark[] = "\"search\":{";
	if (!memmem(d->secret.p, d->secret.n, mark, sizeof mark - 1))
		return;
	struct cluster cluster = cluster_of(c->arena, d);
	if (json_object_get(cluster.plan, "search"))
		entity_link_op(c, "searchDeployment", catalog_op("getClusterSearchDeployment"), "clusterName", d->name);
}

int search_nodes_get(struct call *c)
{
	struct cluster cluster;
	int r = cluster_load(c, &cluster);
	if (r < 0)
		return r;
	return json_object_get(cluster.plan, "search") ? deployment_write(c, &cluster) : missing(c, &cluster);
}

static int specs_put(struct call *c, struct cluster *cluster, struct str id)
{
	json_t *specs, *search = json_object();
	int r = specs_read(c, cluster, &specs);
	if (r < 0) {
		json_decref(search);
		return r;
	}
	json_put_str(search, "id", id);
	json_put(search, "specs", json_deep_copy(specs));
	json_put(cluster->plan, "search", search);
	r = change(c, cluster);
	return r < 0 ? r : deployment_write(c, cluster);
}

int search_nodes_create(struct call *c)
{
	struct cluster cluster;
	int r = load_for_change(c, &cluster);
	if (r < 0)
		return r;
	if (json_object_get(cluster.plan, "search"))
		return call_fail_about(c, 409, "SEARCH_DEPLOYMENT_ALREADY_EXISTS", cluster.doc.name,
		                       "The cluster \"%.*s\" has search nodes already. Change them.",
		                       STR_ARG(cluster.doc.name));
	return specs_put(c, &cluster, id_make(c->arena));
}

int search_nodes_update(struct call *c)
{
	struct cluster cluster;
	int r = load_for_change(c, &cluster);
	if (r < 0)
		return r;
	const json_t *search = json_object_get(cluster.plan, "search");
	if (!search)
		return missing(c, &cluster);
	return specs_put(c, &cluster, arena_dup(c->arena, json_field(search, "id")));
}

int search_nodes_delete(struct call *c)
{
	struct cluster cluster;
	int r = load_for_change(c, &cluster);
	if (r < 0)
		return r;
	if (!json_object_get(cluster.plan, "search"))
		return missing(c, &cluster);
	json_object_del(cluster.plan, "search");
	return change(c, &cluster);
}

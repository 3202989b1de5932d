/* From the specs of a cluster to its nodes. A node keeps its name as long as its shard, kind and region are still asked
 * for, so that scaling touches only what comes and goes. */
#include "api/clusters/nodes.h"

#include "api/clusters/cluster.h"
#include "api/clusters/spec.h"
#include "api/kit/verbs.h"
#include "base/clock.h"

#include <stdio.h>

static const char *const kind_names[] = {[NODE_ELECTABLE] = "electable",
                                         [NODE_READ_ONLY] = "readOnly",
                                         [NODE_ANALYTICS] = "analytics",
                                         [NODE_ROUTER] = "router"};
#define SEARCH_NODE "search" /* to the engine it is NODE_READ_ONLY */
#define ROUTERS 1

size_t cluster_shard_count(const json_t *cluster)
{
	return json_array_size(json_object_get(cluster, "replicationSpecs"));
}

json_t *region_next(const json_t *cluster, struct region_walk *walk)
{
	const json_t *specs = json_object_get(cluster, "replicationSpecs");
	for (; walk->spec < json_array_size(specs); walk->spec++, walk->next = 0) {
		const json_t *configs = json_object_get(json_array_get(specs, walk->spec), "regionConfigs");
		if (walk->next < json_array_size(configs))
			return json_array_get(configs, walk->next++);
	}
	return NULL;
}

const json_t *region_at(const json_t *cluster, size_t shard, size_t region)
{
	const json_t *spec = json_array_get(json_object_get(cluster, "replicationSpecs"), shard);
	return json_array_get(json_object_get(spec, "regionConfigs"), region);
}

json_int_t region_nodes(const json_t *region, const char *field)
{
	return json_number(json_object_get(region, field), "nodeCount");
}

struct str node_set(const struct node_status *n)
{
	const char *dash = strrchr(n->name, '-');
	return (struct str){n->name, dash ? (size_t)(dash - n->name) : strlen(n->name)};
}

bool cluster_is_sharded(const json_t *cluster)
{
	return !str_is(json_field(cluster, "clusterType"), "REPLICASET");
}

static json_int_t nodes_of(const json_t *config, int kind)
{
	return region_is_shared(config) ? kind == NODE_ELECTABLE : region_nodes(config, hardware_fields[kind]);
}

/* How many nodes for searching each shard has in the region, by one of the plan's specs. */
static json_int_t search_nodes_of(const json_t *spec, const json_t *config)
{
	bool here = json_equal(json_object_get(spec, "cloudProvider"), json_object_get(config, "providerName")) &&
	            json_equal(json_object_get(spec, "regionName"), json_object_get(config, "regionName"));
	return here ? json_number(spec, "nodeCount") : 0;
}

size_t cluster_node_count(const json_t *cluster, const json_t *search, size_t most)
{
	const json_t *specs = json_object_get(search, "specs");
	struct region_walk walk = {.spec = 0};
	const json_t *config;
	size_t count = cluster_is_sharded(cluster) ? ROUTERS : 0;
	while (count <= most && (config = region_next(cluster, &walk))) {
		for (int k = 0; k < HARDWARE && count <= most; k++) {
			json_int_t more = nodes_of(config, k);
			count += more > 0 ? (size_t)more : 0;
		}
		for (size_t i = 0; i < json_array_size(specs) && count <= most; i++)
			count += (size_t)search_nodes_of(json_array_get(specs, i), config);
	}
	return count <= most ? count : most + 1;
}

struct naming {
	json_t *nodes; /* made so far */
	json_t *left;  /* names of old nodes, each until it is taken: [{"name", "kind", ...}, ...] */
	const char *label;
};

static bool is_same_place(const json_t *a, const json_t *b)
{
	static const char *const fields[] = {"kind", "shard", "provider", "region"};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (!json_equal(json_object_get(a, fields[i]), json_object_get(b, fields[i])))
			return false;
	return true;
}

static bool name_is_used(const json_t *list, const char *name)
{
	return json_find(list, "name", str_of(name)) != NULL;
}

/* Old nodes are looked at first, so that a new one never takes the name of one that stays. */
static void name_old(struct naming *n, json_t *node)
{
	for (size_t i = 0; i < json_array_size(n->left); i++) {
		json_t *old = json_array_get(n->left, i);
		if (!is_same_place(old, node))
			continue;
		json_object_set(node, "name", json_object_get(old, "name"));
		if (json_object_get(old, "created"))
			json_object_set(node, "created", json_object_get(old, "created"));
		json_array_remove(n->left, i);
		return;
	}
}

static void name_new(struct naming *n, json_t *node)
{
	json_int_t shard = json_number(node, "shard");
	bool router = str_is(json_field(node, "kind"), "router");
	char name[64];
	if (json_object_get(node, "name"))
		return;
	/* Not the names of nodes that go, either: theirs may still be there while the new ones are made. */
	for (unsigned i = 0; i <= 2 * ENGINE_NODES_MAX; i++) {
		if (router)
			snprintf(name, sizeof name, "%s-router-%02u", n->label, i);
		else
			snprintf(name, sizeof name, "%s-shard-%02d-%02u", n->label, (int)shard, i);
		if (!name_is_used(n->nodes, name) && !name_is_used(n->left, name))
			break;
	}
	json_put_z(node, "name", name);
	json_put(node, "created", json_integer(clock_now_ms()));
}

static void node_add(struct naming *n, const char *kind, size_t shard, const json_t *config, const json_t *spec)
{
	struct str provider = json_field(config, "providerName"), region = json_field(config, "regionName"),
	           size = json_field(spec, "instanceSize");
	const json_t *priority = json_object_get(config, "priority");
	if (region_is_shared(config))
		provider = json_field(config, "backingProviderName");
	json_t *node = json_pack("{s:s, s:I, s:s%, s:s%, s:s%, s:I, s:I}", "kind", kind, "shard", (json_int_t)shard,
	                         "provider", provider.n ? provider.p : "", provider.n, "region",
	                         region.n ? region.p : "", region.n, "size", size.n ? size.p : "", size.n, "disk",
	                         (json_int_t)json_number_value(json_object_get(spec, "diskSizeGB")), "priority",
	                         kind == kind_names[NODE_ELECTABLE] ? json_integer_value(priority) : (json_int_t)0);
	name_old(n, node);
	json_array_append_new(n->nodes, node);
}

/* Nodes for searching: standbys that no clients are led to unless they ask for one, with the disk of the others. */
static void search_add(struct naming *n, const json_t *cluster, const json_t *search)
{
	struct region_walk walk = {.spec = 0};
	const json_t *config, *specs = json_object_get(search, "specs");
	while ((config = region_next(cluster, &walk)))
		for (size_t i = 0; i < json_array_size(specs); i++) {
			const json_t *spec = json_array_get(specs, i),
			             *shard = json_array_get(json_object_get(cluster, "replicationSpecs"), walk.spec);
			json_t *like = json_pack("{s:O*, s:O*}", "instanceSize", json_object_get(spec, "instanceSize"),
			                         "diskSizeGB", json_object_get(shard_hardware(shard), "diskSizeGB"));
			for (json_int_t count = search_nodes_of(spec, config); count > 0; count--)
				node_add(n, SEARCH_NODE, walk.spec, config, like);
			json_decref(like);
		}
}

json_t *cluster_nodes(const json_t *cluster, const json_t *search, const json_t *old_nodes, const char *label)
{
	struct region_walk walk = {.spec = 0};
	const json_t *config, *first = NULL;
	struct naming n = {.nodes = json_array(),
	                   .left = old_nodes ? json_copy((json_t *)(uintptr_t)old_nodes) : json_array(),
	                   .label = label};
	while ((config = region_next(cluster, &walk))) {
		first = first ? first : config;
		for (int k = 0; k < HARDWARE; k++)
			for (json_int_t count = nodes_of(config, k); count > 0; count--)
				node_add(&n, kind_names[k], walk.spec, config,
				         json_object_get(config, hardware_fields[k]));
	}
	if (cluster_is_sharded(cluster) && first)
		for (int i = 0; i < ROUTERS; i++)
			node_add(&n, kind_names[NODE_ROUTER], 0, first, json_object_get(first, "electableSpecs"));
	search_add(&n, cluster, search);
	for (size_t i = 0; i < json_array_size(n.nodes); i++)
		name_new(&n, json_array_get(n.nodes, i));
	json_decref(n.left);
	return n.nodes;
}

static bool is_out(const json_t *outage, struct str provider, struct str region)
{
	for (size_t i = 0; i < json_array_size(outage); i++) {
		struct str p, r;
		if (str_cut(json_str_of(json_array_get(outage, i)), '/', &p, &r) && str_eq(p, provider) &&
		    str_eq(r, region))
			return true;
	}
	return false;
}

size_t cluster_engine_nodes(const json_t *nodes, const json_t *outage, struct engine_node *ret_nodes, size_t max)
{
	size_t count = 0;
	for (size_t i = 0; i < json_array_size(nodes) && count < max; i++) {
		const json_t *from = json_array_get(nodes, i);
		struct engine_node *to = &ret_nodes[count++];
		*to = (struct engine_node){
		        .shard = (unsigned)json_number(from, "shard"),
		        .disk_gb = (unsigned)json_number(from, "disk"),
		        .priority = (unsigned)json_number(from, "priority"),
		        .outage = is_out(outage, json_field(from, "provider"), json_field(from, "region")),
		};
		if (str_is(json_field(from, "kind"), SEARCH_NODE))
			to->kind = NODE_READ_ONLY;
		for (int k = NODE_ELECTABLE; k <= NODE_ROUTER; k++)
			if (str_is(json_field(from, "kind"), kind_names[k]))
				to->kind = (enum node_kind)k;
		/* Clients of every region come through the router: it is in none that goes down. */
		to->outage = to->outage && to->kind != NODE_ROUTER;
		str_copy(json_field(from, "name"), to->name, sizeof to->name);
		str_copy(json_field(from, "provider"), to->provider, sizeof to->provider);
		str_copy(json_field(from, "region"), to->region, sizeof to->region);
		str_copy(json_field(from, "size"), to->instance_size, sizeof to->instance_size);
	}
	return count;
}

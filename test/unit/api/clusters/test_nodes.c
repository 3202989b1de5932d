/* From specs to nodes: how many, what each is, and that names stay while their place is asked for. */
#include "check.h"
#include "quoted.h"

#include "api/clusters/nodes.h"
#include "api/clusters/spec.h"

#define REGION(name, priority, electable, read_only, analytics)                                          \
	"{'providerName': 'AWS', 'regionName': '" name "', 'priority': " #priority                       \
	", 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': " #electable ", 'diskSizeGB': 20.0}, " \
	"'readOnlySpecs': {'instanceSize': 'M10', 'nodeCount': " #read_only ", 'diskSizeGB': 20.0}, "    \
	"'analyticsSpecs': {'instanceSize': 'M40', 'nodeCount': " #analytics ", 'diskSizeGB': 20.0}}"
#define SPEC(configs) "{'regionConfigs': [" configs "]}"
#define SET(configs) "{'clusterType': 'REPLICASET', 'replicationSpecs': [" SPEC(configs) "]}"
#define SHARDED(specs) "{'clusterType': 'SHARDED', 'replicationSpecs': [" specs "]}"

static json_t *plan(struct arena *a, const char *cluster, const json_t *old)
{
	return json_keep(a, cluster_nodes(quoted_json(a, cluster), NULL, old, "ab"));
}

static const json_t *node_at(const json_t *nodes, size_t i)
{
	return json_array_get(nodes, i);
}

static bool is_named(const json_t *nodes, size_t i, const char *name)
{
	struct str is = json_field(node_at(nodes, i), "name");
	if (!str_is(is, name))
		fprintf(stderr, "node %zu is %.*s\n", i, STR_ARG(is));
	return str_is(is, name);
}

static bool has_name(const json_t *nodes, const char *name)
{
	for (size_t i = 0; i < json_array_size(nodes); i++)
		if (str_is(json_field(node_at(nodes, i), "name"), name))
			return true;
	return false;
}

static void test_set(struct arena *a)
{
	json_t *nodes = plan(a, SET(REGION("US_EAST_1", 7, 2, 0, 1) ", " REGION("US_WEST_2", 6, 1, 1, 0)), NULL);
	static const struct {
		const char *name, *kind, *region, *size;
		int priority;
	} wanted[] = {{"ab-shard-00-00", "electable", "US_EAST_1", "M10", 7},
	              {"ab-shard-00-01", "electable", "US_EAST_1", "M10", 7},
	              {"ab-shard-00-02", "analytics", "US_EAST_1", "M40", 0},
	              {"ab-shard-00-03", "electable", "US_WEST_2", "M10", 6},
	              {"ab-shard-00-04", "readOnly", "US_WEST_2", "M10", 0}};
	CHECK(json_array_size(nodes) == 5);
	for (size_t i = 0; i < 5; i++) {
		const json_t *n = node_at(nodes, i);
		CHECK(is_named(nodes, i, wanted[i].name));
		CHECK(str_is(json_field(n, "kind"), wanted[i].kind) && str_is(json_field(n, "provider"), "AWS"));
		CHECK(str_is(json_field(n, "region"), wanted[i].region) &&
		      str_is(json_field(n, "size"), wanted[i].size));
		CHECK(json_integer_value(json_object_get(n, "priority")) == wanted[i].priority);
		CHECK(json_integer_value(json_object_get(n, "disk")) == 20);
		CHECK(json_integer_value(json_object_get(n, "shard")) == 0 && json_object_get(n, "created"));
	}
}

static void test_counts(struct arena *a)
{
	const json_t *set = quoted_json(a, SET(REGION("US_EAST_1", 7, 3, 2, 1)));
	const json_t *two = quoted_json(
	        a, SHARDED(SPEC(REGION("US_EAST_1", 7, 3, 0, 0)) ", " SPEC(REGION("US_EAST_1", 7, 5, 0, 0))));
	CHECK(cluster_node_count(set, NULL, 100) == 6 && cluster_node_count(set, NULL, 6) == 6);
	CHECK(cluster_node_count(set, NULL, 5) == 6 && cluster_node_count(set, NULL, 2) == 3); /* at most one more */
	CHECK(cluster_node_count(two, NULL, 100) == 9 && cluster_shard_count(two) == 2);       /* and the router */
	CHECK(cluster_shard_count(set) == 1 && cluster_shard_count(quoted_json(a, "{}")) == 0);
	const json_t *absurd =
	        quoted_json(a, SET(REGION("US_EAST_1", 7, 9223372036854775807, 9223372036854775807, -3)));
	CHECK(cluster_node_count(absurd, NULL, 128) == 129);
}

static void test_sharded(struct arena *a)
{
	const char *two = SHARDED(SPEC(REGION("US_EAST_1", 7, 1, 0, 0)) ", " SPEC(REGION("US_WEST_2", 7, 1, 0, 0)));
	json_t *nodes = plan(a, two, NULL);
	CHECK(json_array_size(nodes) == 3 && is_named(nodes, 0, "ab-shard-00-00") &&
	      is_named(nodes, 1, "ab-shard-01-00"));
	CHECK(is_named(nodes, 2, "ab-router-00"));
	CHECK(json_integer_value(json_object_get(node_at(nodes, 1), "shard")) == 1);
	/* The router lies in the first region, and has no vote. */
	CHECK(str_is(json_field(node_at(nodes, 2), "region"), "US_EAST_1"));
	CHECK(json_integer_value(json_object_get(node_at(nodes, 2), "priority")) == 0);
}

/* The shared tiers have one node, at the provider behind them. */
static void test_tenant(struct arena *a)
{
	json_t *nodes =
	        plan(a,
	             SET("{'providerName': 'TENANT', 'backingProviderName': 'GCP', 'regionName': 'X', 'priority': 7, "
	                 "'electableSpecs': {'instanceSize': 'M0', 'nodeCount': 9}}"),
	             NULL);
	CHECK(json_array_size(nodes) == 1 && str_is(json_field(node_at(nodes, 0), "provider"), "GCP"));
}

static void test_names_stay(struct arena *a)
{
	json_t *three = plan(a, SET(REGION("US_EAST_1", 7, 3, 0, 0)), NULL);
	CHECK(json_equal(plan(a, SET(REGION("US_EAST_1", 7, 3, 0, 0)), three), three));
	json_t *five = plan(a, SET(REGION("US_EAST_1", 7, 5, 0, 0)), three);
	for (size_t i = 0; i < 3; i++)
		CHECK(json_equal(node_at(five, i), node_at(three, i)));
	CHECK(is_named(five, 3, "ab-shard-00-03") && is_named(five, 4, "ab-shard-00-04"));
	/* First come, first kept. */
	json_t *less = plan(a, SET(REGION("US_EAST_1", 7, 3, 0, 0)), five);
	CHECK(json_equal(less, three));
	/* Another size or priority is the same node. */
	json_t *bigger = json_clone(a, quoted_json(a, SET(REGION("US_EAST_1", 7, 3, 0, 0))));
	json_t *config = json_array_get(
	        json_object_get(json_array_get(json_object_get(bigger, "replicationSpecs"), 0), "regionConfigs"), 0);
	json_put_z(json_object_get(config, "electableSpecs"), "instanceSize", "M30");
	json_t *grown = json_keep(a, cluster_nodes(bigger, NULL, three, "ab"));
	CHECK(is_named(grown, 2, "ab-shard-00-02") && str_is(json_field(node_at(grown, 2), "size"), "M30"));
}

static void test_names_of_moves(struct arena *a)
{
	json_t *three = plan(a, SET(REGION("US_EAST_1", 7, 3, 0, 0)), NULL);
	/* Nodes that go still have their names while those that come are made. */
	json_t *moved = plan(a, SET(REGION("US_WEST_2", 7, 3, 0, 0)), three);
	CHECK(json_array_size(moved) == 3);
	for (size_t i = 0; i < 3; i++)
		CHECK(!has_name(three, json_string_value(json_object_get(node_at(moved, i), "name"))));
	/* A region before the old one takes no names from it. */
	json_t *both = plan(a, SET(REGION("US_WEST_2", 7, 2, 0, 0) ", " REGION("US_EAST_1", 6, 3, 0, 0)), three);
	for (size_t i = 0; i < 3; i++)
		CHECK(str_eq(json_field(node_at(both, i + 2), "name"), json_field(node_at(three, i), "name")));
	CHECK(is_named(both, 0, "ab-shard-00-03") && is_named(both, 1, "ab-shard-00-04"));
	CHECK(json_integer_value(json_object_get(node_at(both, 2), "priority")) == 6);
	/* Nor does another kind in the same region. */
	json_t *kinds = plan(a, SET(REGION("US_EAST_1", 7, 1, 2, 0)), three);
	CHECK(is_named(kinds, 0, "ab-shard-00-00") && is_named(kinds, 1, "ab-shard-00-03") &&
	      is_named(kinds, 2, "ab-shard-00-04"));
	/* A name that is free again is used again. */
	json_t *again = plan(a, SET(REGION("US_EAST_1", 7, 3, 0, 0)), kinds);
	CHECK(is_named(again, 0, "ab-shard-00-00") && is_named(again, 1, "ab-shard-00-01") &&
	      is_named(again, 2, "ab-shard-00-02"));
}

static void test_engine_nodes(struct arena *a)
{
	json_t *nodes =
	        plan(a, SHARDED(SPEC(REGION("US_EAST_1", 7, 2, 0, 1) ", " REGION("US_WEST_2", 6, 1, 0, 0))), NULL);
	const json_t *outage = quoted_json(a, "['AWS/US_EAST_1', 'GCP/US_WEST_2', 'nonsense']");
	struct engine_node out[8];
	CHECK(cluster_engine_nodes(nodes, outage, out, 8) == 5 && cluster_engine_nodes(nodes, NULL, out + 5, 3) == 3);
	CHECK(out[0].kind == NODE_ELECTABLE && out[2].kind == NODE_ANALYTICS && out[4].kind == NODE_ROUTER);
	CHECK(strcmp(out[0].name, "ab-shard-00-00") == 0 && strcmp(out[0].region, "US_EAST_1") == 0);
	CHECK(strcmp(out[0].provider, "AWS") == 0 && strcmp(out[2].instance_size, "M40") == 0);
	CHECK(out[0].priority == 7 && out[3].priority == 6 && out[2].priority == 0 && out[0].disk_gb == 20);
	CHECK(out[0].outage && out[2].outage && !out[3].outage);
	CHECK(!out[4].outage); /* clients of every region come through the router */
	CHECK(!out[5].outage);
}

int main(void)
{
	struct arena *a = arena_new();
	json_setup();
	test_set(a);
	test_counts(a);
	test_sharded(a);
	test_tenant(a);
	test_names_stay(a);
	test_names_of_moves(a);
	test_engine_nodes(a);
	arena_free(a);
	return CHECK_DONE();
}

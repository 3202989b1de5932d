/* Clusters in the forms of older versions: there, back, and what an update leaves unsaid. */
#include "check.h"
#include "quoted.h"

#include "api/clusters/forms.h"

#define HARDWARE(nodes) "{'instanceSize': 'M30', 'nodeCount': " #nodes ", 'diskSizeGB': 40.0}"
#define REGION(name, priority, nodes)                                              \
	"{'providerName': 'AWS', 'regionName': '" name "', 'priority': " #priority \
	", 'electableSpecs': " HARDWARE(nodes) "}"
#define SPEC(zone, configs) "{'zoneName': '" zone "', 'regionConfigs': [" configs "]}"
#define CLUSTER(type, specs) \
	"{'name': 'c', 'clusterType': '" type "', 'backupEnabled': true, 'replicationSpecs': [" specs "]}"

static json_t *field_of(const json_t *cluster, size_t spec, const char *name)
{
	return json_object_get(json_array_get(json_object_get(cluster, "replicationSpecs"), spec), name);
}

static json_t *config_of(const json_t *cluster, size_t spec, size_t config)
{
	return json_array_get(field_of(cluster, spec, "regionConfigs"), config);
}

static json_t *from(struct arena *a, enum cluster_form form, const char *body, const json_t *old)
{
	return json_keep(a, cluster_from(a, form, quoted_json(a, body), old));
}

static void test_names(void)
{
	CHECK(cluster_form(&(struct schema){.name = "LegacySvcCluster"}) == FORM_LEGACY);
	CHECK(cluster_form(&(struct schema){.name = "AdvancedClusterDescription"}) == FORM_ADVANCED);
	CHECK(cluster_form(&(struct schema){.name = "ClusterDescription20240805"}) == FORM_CURRENT);
	CHECK(cluster_form(&(struct schema){.name = NULL}) == FORM_CURRENT && cluster_form(NULL) == FORM_CURRENT);
}

static void test_current_is_a_copy(struct arena *a)
{
	const char *text = CLUSTER("REPLICASET", SPEC("z", REGION("US_EAST_1", 7, 3)));
	json_t *body = quoted_json(a, text), *to = json_keep(a, cluster_from(a, FORM_CURRENT, body, NULL));
	CHECK(to != body && is_json(a, to, text));
	json_put_z(to, "name", "changed");
	CHECK(is_json(a, body, text));
}

/* Alike shards of a zone are one spec with a number, and the disk is the cluster's. */
static void test_to_advanced(struct arena *a)
{
	const json_t *c = quoted_json(
	        a, CLUSTER("GEOSHARDED",
	                   SPEC("a", REGION("US_EAST_1", 7, 3)) ", " SPEC("a", REGION("US_EAST_1", 7, 3)) ", " SPEC(
	                           "b", REGION("US_EAST_1", 7, 3)) ", " SPEC("b", REGION("US_EAST_1", 7, 5))));
	json_t *to = json_keep(a, cluster_to_advanced(c));
	CHECK(json_array_size(json_object_get(to, "replicationSpecs")) == 3);
	CHECK(is_json(a, field_of(to, 0, "numShards"), "2") && is_json(a, field_of(to, 1, "numShards"), "1"));
	CHECK(is_json(a, field_of(to, 2, "numShards"), "1"));
	CHECK(is_json(a, json_object_get(to, "diskSizeGB"), "40.0"));
	CHECK(is_json(a, json_object_get(config_of(to, 0, 0), "electableSpecs"),
	              "{'instanceSize': 'M30', 'nodeCount': 3}"));
	CHECK(str_is(json_field(to, "name"), "c") && str_is(json_field(to, "clusterType"), "GEOSHARDED"));
	/* And back. */
	json_t *back = json_keep(a, cluster_from(a, FORM_ADVANCED, to, NULL));
	CHECK(json_equal(json_object_get(back, "replicationSpecs"), json_object_get(c, "replicationSpecs")));
	CHECK(!json_object_get(back, "diskSizeGB"));
}

static void test_advanced_update(struct arena *a)
{
	const json_t *old = quoted_json(a, CLUSTER("REPLICASET", SPEC("z", REGION("US_EAST_1", 7, 3))));
	json_t *to = from(a, FORM_ADVANCED, "{'diskSizeGB': 99}", old); /* a new disk is one for all nodes */
	CHECK(is_json(a, json_object_get(config_of(to, 0, 0), "electableSpecs"),
	              "{'instanceSize': 'M30', 'nodeCount': 3, 'diskSizeGB': 99}"));
	to = from(a, FORM_ADVANCED, "{'replicationSpecs': [{'regionConfigs': [{'electableSpecs': {'nodeCount': 5}}]}]}",
	          old);
	CHECK(is_json(a, json_object_get(config_of(to, 0, 0), "electableSpecs"),
	              "{'nodeCount': 5, 'diskSizeGB': 40.0}"));
	to = from(a, FORM_ADVANCED, "{'backupEnabled': false}", old);
	CHECK(is_json(a, to, "{'backupEnabled': false}")); /* nothing is said about its shape */
	/* More shards than there may be: cut short, and one too many, so that the rules say so. */
	to = from(a, FORM_ADVANCED, "{'replicationSpecs': [{'numShards': 1000000, 'regionConfigs': []}]}", NULL);
	CHECK(json_array_size(json_object_get(to, "replicationSpecs")) == 51);
}

static void test_to_legacy(struct arena *a)
{
	json_t *c = quoted_json(
	        a, CLUSTER("REPLICASET", SPEC("z", REGION("US_WEST_2", 6, 2) ", " REGION("US_EAST_1", 7, 3))));
	json_put(c, "connectionStrings",
	         json_deep_copy(quoted_json(a, "{'standard': 'postgresql://h:1/?a=b', 'standardSrv': 's'}")));
	json_put_z(c, "createDate", "2025-01-01T00:00:00Z");
	json_t *to = json_keep(a, cluster_to_legacy(a, c));
	CHECK(is_json(a, json_object_get(to, "replicationSpec"),
	              "{'US_WEST_2': {'analyticsNodes': 0, 'priority': 6, 'readOnlyNodes': 0}, "
	              "'US_EAST_1': {'analyticsNodes': 0, 'priority': 7, 'readOnlyNodes': 0, 'electableNodes': 3}}"));
	/* The region of the highest priority stands for the whole. */
	CHECK(is_json(a, json_object_get(to, "providerSettings"),
	              "{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'instanceSizeName': 'M30', "
	              "'encryptEBSVolume': true}"));
	CHECK(is_json(a, json_object_get(to, "replicationFactor"), "5") &&
	      is_json(a, json_object_get(to, "numShards"), "1"));
	CHECK(is_json(a, json_object_get(to, "diskSizeGB"), "40.0"));
	/* "backupEnabled" meant another kind of backup then. */
	CHECK(json_is_false(json_object_get(to, "backupEnabled")) &&
	      json_is_true(json_object_get(to, "providerBackupEnabled")));
	CHECK(str_is(json_field(to, "dbURI"), "postgresql://h:1/") &&
	      str_is(json_field(to, "dbURIWithOptions"), "postgresql://h:1/?a=b"));
	CHECK(str_is(json_field(to, "srvAddress"), "s") &&
	      str_is(json_field(to, "dbURIUpdated"), "2025-01-01T00:00:00Z"));
}

static void test_from_legacy(struct arena *a)
{
	json_t *to = from(a, FORM_LEGACY,
	                  "{'name': 'c', 'providerBackupEnabled': true, 'diskSizeGB': 50, 'providerSettings': "
	                  "{'providerName': 'AWS', 'regionName': 'US_EAST_1', 'instanceSizeName': 'M20'}}",
	                  NULL);
	CHECK(str_is(json_field(to, "name"), "c") && json_is_true(json_object_get(to, "backupEnabled")));
	const json_t *config = config_of(to, 0, 0);
	CHECK(str_is(json_field(config, "regionName"), "US_EAST_1") &&
	      is_json(a, json_object_get(config, "priority"), "7"));
	CHECK(is_json(a, json_object_get(config, "electableSpecs"),
	              "{'instanceSize': 'M20', 'nodeCount': 3, 'diskSizeGB': 50}"));
	/* A table of regions has no order: priorities make it. */
	to = from(a, FORM_LEGACY,
	          "{'numShards': 2, 'providerSettings': {'providerName': 'AWS', 'instanceSizeName': 'M20'}, "
	          "'replicationSpec': {'B': {'priority': 6, 'electableNodes': 2, 'readOnlyNodes': 1}, "
	          "'A': {'priority': 7, 'electableNodes': 3}, 'C': {'priority': 0, 'analyticsNodes': 4}}}",
	          NULL);
	CHECK(json_array_size(json_object_get(to, "replicationSpecs")) == 2);
	for (size_t i = 0; i < 2; i++) {
		CHECK(str_is(json_field(config_of(to, i, 0), "regionName"), "A"));
		CHECK(str_is(json_field(config_of(to, i, 1), "regionName"), "B"));
		CHECK(str_is(json_field(config_of(to, i, 2), "regionName"), "C"));
	}
	CHECK(is_json(a, json_object_get(config_of(to, 0, 1), "readOnlySpecs"),
	              "{'instanceSize': 'M20', 'nodeCount': 1}"));
	CHECK(is_json(a, json_object_get(config_of(to, 0, 2), "analyticsSpecs"),
	              "{'instanceSize': 'M20', 'nodeCount': 4}"));
	CHECK(!json_object_get(config_of(to, 0, 0), "readOnlySpecs"));
}

static void test_legacy_tenant(struct arena *a)
{
	json_t *to = from(a, FORM_LEGACY,
	                  "{'providerSettings': {'providerName': 'TENANT', 'backingProviderName': 'AWS', "
	                  "'regionName': 'US_EAST_1', 'instanceSizeName': 'M2'}}",
	                  NULL);
	CHECK(is_json(a, json_object_get(to, "replicationSpecs"),
	              "[{'regionConfigs': [{'providerName': 'TENANT', 'backingProviderName': 'AWS', 'regionName': "
	              "'US_EAST_1', "
	              "'electableSpecs': {'instanceSize': 'M2'}}]}]"));
	json_t *back = json_keep(a, cluster_to_legacy(a, to));
	CHECK(is_json(a, json_object_get(back, "providerSettings"),
	              "{'providerName': 'TENANT', 'backingProviderName': 'AWS', 'regionName': 'US_EAST_1', "
	              "'instanceSizeName': 'M2'}"));
}

static void test_legacy_update(struct arena *a)
{
	const json_t *old = quoted_json(
	        a, CLUSTER("REPLICASET", SPEC("z", REGION("US_EAST_1", 7, 3) ", " REGION("US_WEST_2", 6, 2))));
	json_t *to = from(a, FORM_LEGACY, "{'name': 'c'}", old);
	CHECK(!json_object_get(to, "replicationSpecs"));
	/* Another size: of all that is there. */
	to = from(a, FORM_LEGACY, "{'providerSettings': {'providerName': 'AWS', 'instanceSizeName': 'M50'}}", old);
	CHECK(json_array_size(field_of(to, 0, "regionConfigs")) == 2);
	for (size_t i = 0; i < 2; i++)
		CHECK(str_is(json_field(json_object_get(config_of(to, 0, i), "electableSpecs"), "instanceSize"),
		             "M50"));
	CHECK(str_is(json_field(json_array_get(json_object_get(to, "replicationSpecs"), 0), "zoneName"), "z"));
	/* Another region or factor: the old table is void. */
	to = from(a, FORM_LEGACY, "{'providerSettings': {'providerName': 'AWS', 'regionName': 'EU_WEST_1'}}", old);
	CHECK(json_array_size(field_of(to, 0, "regionConfigs")) == 1 &&
	      str_is(json_field(config_of(to, 0, 0), "regionName"), "EU_WEST_1"));
	CHECK(str_is(json_field(json_object_get(config_of(to, 0, 0), "electableSpecs"), "instanceSize"), "M30"));
	to = from(a, FORM_LEGACY, "{'replicationFactor': 7}", old);
	CHECK(json_array_size(field_of(to, 0, "regionConfigs")) == 1);
	CHECK(is_json(a, json_object_get(json_object_get(config_of(to, 0, 0), "electableSpecs"), "nodeCount"), "7"));
	/* Another provider: nothing of the old one's settings. */
	to = from(a, FORM_LEGACY, "{'providerSettings': {'providerName': 'GCP', 'regionName': 'X'}}", old);
	CHECK(str_is(json_field(config_of(to, 0, 0), "providerName"), "GCP"));
	CHECK(!json_object_get(json_object_get(config_of(to, 0, 0), "electableSpecs"), "instanceSize"));
	to = from(a, FORM_LEGACY, "{'numShards': 3}", old);
	CHECK(json_array_size(json_object_get(to, "replicationSpecs")) == 3);
}

/* What the form has no word for stays: a second provider, two nodes in a region, a size of the analytics nodes' own. */
static void test_legacy_leaves_alone(struct arena *a)
{
	static const char text[] =
	        CLUSTER("REPLICASET",
	                SPEC("z", REGION("US_EAST_1", 7,
	                                 3) ", {'providerName': 'GCP', 'regionName': 'CENTRAL_US', 'priority': "
	                                    "6, 'electableSpecs': " HARDWARE(
	                                            2) ", 'analyticsSpecs': "
	                                               "{'instanceSize': 'M50', 'nodeCount': 1, 'diskSizeGB': 40.0}}"));
	const json_t *old = quoted_json(a, text), *shown = json_keep(a, cluster_to_legacy(a, old));
	json_t *to = from(a, FORM_LEGACY, "{'diskSizeGB': 60}", old);
	CHECK(str_is(json_field(config_of(to, 0, 1), "providerName"), "GCP"));
	CHECK(is_json(a, json_object_get(config_of(to, 0, 1), "electableSpecs"),
	              "{'instanceSize': 'M30', 'nodeCount': 2, 'diskSizeGB': 60}"));
	CHECK(is_json(a, json_object_get(config_of(to, 0, 1), "analyticsSpecs"),
	              "{'instanceSize': 'M50', 'nodeCount': 1, 'diskSizeGB': 60}"));
	/* What is sent back as it was shown changes nothing. */
	to = json_keep(a, cluster_from(a, FORM_LEGACY, shown, old));
	CHECK(json_equal(json_object_get(to, "replicationSpecs"), json_object_get(old, "replicationSpecs")));
	CHECK(json_is_true(json_object_get(to, "backupEnabled")));
	/* Of what it says twice, what is new counts. */
	json_t *all = json_keep(a, json_deep_copy(shown));
	json_put(json_object_get(all, "providerSettings"), "regionName", json_string("EU_WEST_1"));
	to = json_keep(a, cluster_from(a, FORM_LEGACY, all, old));
	CHECK(json_array_size(field_of(to, 0, "regionConfigs")) == 1 &&
	      str_is(json_field(config_of(to, 0, 0), "regionName"), "EU_WEST_1"));
	all = json_keep(a, json_deep_copy(shown));
	json_put(all, "numShards", json_integer(2));
	to = json_keep(a, cluster_from(a, FORM_LEGACY, all, old));
	CHECK(json_array_size(json_object_get(to, "replicationSpecs")) == 2);
	CHECK(str_is(json_field(config_of(to, 1, 1), "providerName"), "GCP"));
	/* Nor does a table with one region more change the others. */
	to = from(a, FORM_LEGACY,
	          "{'replicationSpec': {'US_EAST_1': {'priority': 7, 'electableNodes': 3}, 'CENTRAL_US': {'priority': "
	          "6, 'analyticsNodes': 1}, 'US_WEST_2': {'priority': 0, 'readOnlyNodes': 1}}}",
	          old);
	CHECK(json_array_size(field_of(to, 0, "regionConfigs")) == 3);
	CHECK(is_json(a, json_object_get(json_object_get(config_of(to, 0, 1), "electableSpecs"), "nodeCount"), "2"));
	CHECK(str_is(json_field(config_of(to, 0, 2), "providerName"), "AWS"));
	/* The kind of backups that is shown as off is not what is on. */
	to = from(a, FORM_LEGACY, "{'backupEnabled': false}", old);
	CHECK(is_json(a, to, "{'backupEnabled': true}"));
	to = from(a, FORM_LEGACY, "{'backupEnabled': true, 'providerBackupEnabled': false}", old);
	CHECK(is_json(
	        a, to,
	        "{'backupEnabled': true, 'backupsAsked': {'backupEnabled': true, 'providerBackupEnabled': false}}"));
	to = from(a, FORM_LEGACY, "{'providerBackupEnabled': false}", old);
	CHECK(json_is_false(json_object_get(to, "backupEnabled")));
	to = from(a, FORM_LEGACY, "{'autoScaling': {'diskGBEnabled': true}}", old);
	CHECK(is_json(a, json_object_get(json_object_get(config_of(to, 0, 0), "autoScaling"), "diskGB"),
	              "{'enabled': true}"));
}

int main(void)
{
	struct arena *a = arena_new();
	json_setup();
	test_names();
	test_current_is_a_copy(a);
	test_to_advanced(a);
	test_advanced_update(a);
	test_to_legacy(a);
	test_from_legacy(a);
	test_legacy_tenant(a);
	test_legacy_update(a);
	test_legacy_leaves_alone(a);
	arena_free(a);
	return CHECK_DONE();
}

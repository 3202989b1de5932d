/* The rules of cluster specs: what is filled in, and each fault by its path and words. */
#include "check.h"
#include "quoted.h"

#include "api/clusters/clusters.h"
#include "api/clusters/spec.h"

static const unsigned versions[] = {17, 16, 15};

#define CONFIG(region, priority, nodes)                                              \
	"{'providerName': 'AWS', 'regionName': '" region "', 'priority': " #priority \
	", 'electableSpecs': {'instanceSize': "                                      \
	"'M10', 'nodeCount': " #nodes "}}"
#define ONE(config) "'replicationSpecs': [{'regionConfigs': [" config "]}]"
#define WITH(hardware) ONE("{'providerName': 'AWS', 'regionName': 'US_EAST_1', " hardware "}")
#define TENANT(more) \
	ONE("{'providerName': 'TENANT', 'backingProviderName': 'AWS', 'regionName': 'US_EAST_1', " more "}")
#define GOOD ONE(CONFIG("US_EAST_1", 7, 3))
#define COMPLETE                                                                                                  \
	"{'name': 'c', 'clusterType': 'REPLICASET', 'dbMajorVersion': '16', 'encryptionAtRestProvider': 'NONE', " \
	"'replicationSpecs': [{'zoneName': 'Zone 1', 'regionConfigs': [{'providerName': 'AWS', 'regionName': "    \
	"'US_EAST_1', 'priority': 7, 'electableSpecs': {'instanceSize': 'M30', 'nodeCount': 3, 'diskSizeGB': "    \
	"55.0}}]}]}"

static struct faults judge(struct arena *a, json_t *cluster, const json_t *old)
{
	struct faults faults = {.count = 0};
	struct cluster_rules rules = {.arena = a, .versions = versions, .version_count = 3, .old = old};
	cluster_check(&rules, cluster, &faults);
	return faults;
}

static json_t *at(const json_t *cluster, size_t spec, size_t config)
{
	const json_t *one = json_array_get(json_object_get(cluster, "replicationSpecs"), spec);
	return json_array_get(json_object_get(one, "regionConfigs"), config);
}

/* Exactly one fault, of this path and with these words in it; path NULL: none. */
static bool only(const struct faults *f, const char *path, const char *words)
{
	bool fits = path ? f->count == 1 && str_is(f->list[0].path, path) &&
	                            memmem(f->list[0].text.p, f->list[0].text.n, words, strlen(words))
	                 : f->count == 0;
	for (size_t i = 0; !fits && i < f->count && i < FAULTS_MAX; i++)
		fprintf(stderr, "%.*s: %.*s\n", STR_ARG(f->list[i].path), STR_ARG(f->list[i].text));
	return fits;
}

static void test_defaults(struct arena *a)
{
	json_t *c =
	        quoted_json(a, "{'name': 'c', " WITH("'electableSpecs': {'instanceSize': 'M30', 'nodeCount': 3}, "
	                                             "'readOnlySpecs': {'nodeCount': 2}, 'analyticsSpecs': {}") "}");
	struct faults f = judge(a, c, NULL);
	CHECK(only(&f, NULL, ""));
	CHECK(is_json(a, c,
	              "{'name': 'c', 'clusterType': 'REPLICASET', 'dbMajorVersion': '17', 'encryptionAtRestProvider': "
	              "'NONE', "
	              "'replicationSpecs': [{'regionConfigs': [{'providerName': 'AWS', "
	              "'regionName': 'US_EAST_1', 'priority': 7, "
	              "'electableSpecs': {'instanceSize': 'M30', 'nodeCount': 3, 'diskSizeGB': 40.0}, "
	              "'readOnlySpecs': {'instanceSize': 'M30', 'nodeCount': 2, 'diskSizeGB': 40.0}, "
	              "'analyticsSpecs': {'instanceSize': 'M30', 'nodeCount': 0, 'diskSizeGB': 40.0}}]}]}"));
	/* What is complete stays as it is. */
	json_t *again = json_clone(a, c);
	f = judge(a, again, NULL);
	CHECK(only(&f, NULL, "") && json_equal(again, c));
}

static void test_disks(struct arena *a)
{
	static const struct {
		const char *size;
		double gb;
	} cases[] = {{"M10", 10}, {"M20", 20}, {"M40", 80}, {"M80", 750}, {"M140", 1500}, {"R50", 160}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *c = quoted_json(a, "{'name': 'c', " GOOD "}"),
		       *h = json_object_get(at(c, 0, 0), "electableSpecs");
		json_put_z(h, "instanceSize", cases[i].size);
		struct faults f = judge(a, c, NULL);
		CHECK(only(&f, NULL, "") && json_number_value(json_object_get(h, "diskSizeGB")) == cases[i].gb);
	}
	/* One of the shard's that says it says it for all; one that nothing is said about stays as it was. */
	json_t *said =
	        quoted_json(a, "{'name': 'c', " WITH("'electableSpecs': {'instanceSize': 'M30', 'nodeCount': 3}, "
	                                             "'readOnlySpecs': {'nodeCount': 1, 'diskSizeGB': 77}") "}");
	struct faults f = judge(a, said, NULL);
	CHECK(only(&f, NULL, ""));
	CHECK(json_number_value(json_object_get(json_object_get(at(said, 0, 0), "electableSpecs"), "diskSizeGB")) ==
	      77);
	json_t *kept = quoted_json(a, "{'name': 'c', " GOOD "}");
	f = judge(a, kept, quoted_json(a, COMPLETE));
	CHECK(only(&f, NULL, ""));
	CHECK(json_number_value(json_object_get(json_object_get(at(kept, 0, 0), "electableSpecs"), "diskSizeGB")) ==
	      55);
}

/* A tenant's sizes are not a dedicated cluster's. */
static void test_from_tenant(struct arena *a)
{
	json_t *c = quoted_json(a, "{'name': 'c', " GOOD "}");
	struct faults f =
	        judge(a, c,
	              quoted_json(a, "{'name': 'c', 'clusterType': 'REPLICASET', " TENANT(
	                                     "'electableSpecs': {'instanceSize': 'M2', 'diskSizeGB': 2}") "}"));
	CHECK(only(&f, NULL, ""));
	CHECK(json_number_value(json_object_get(json_object_get(at(c, 0, 0), "electableSpecs"), "diskSizeGB")) == 10);
}

static const struct wrong {
	const char *cluster, *path, *words;
} wrong[] = {
        {"{" GOOD "}", "name", "is required"},
        {"{'name': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', " GOOD "}", "name",
         "at most 64 characters"},
        {"{'name': 'c'}", "replicationSpecs", "is required"},
        {"{'name': 'c', 'replicationSpecs': []}", "replicationSpecs", "at least one item"},
        {"{'name': 'c', 'replicationSpecs': [{}]}", "replicationSpecs[0].regionConfigs", "is required"},
        {"{'name': 'c', 'replicationSpecs': [{'regionConfigs': []}]}", "replicationSpecs[0].regionConfigs",
         "at least one item"},
        {"{'name': 'c', 'clusterType': 'REPLICASET', 'replicationSpecs': [{'regionConfigs': [" CONFIG(
                 "US_EAST_1", 7, 3) "]}, {'regionConfigs': [" CONFIG("US_EAST_1", 7, 3) "]}]}",
         "replicationSpecs", "a REPLICASET has one"},
        {"{'name': 'c', 'replicationSpecs': [{'regionConfigs': [" CONFIG(
                 "US_EAST_1", 7, 3) "]}, {'regionConfigs': [" CONFIG("US_EAST_1", 7, 3) "]}]}",
         "clusterType", "is required"},
        {"{'name': 'c', " ONE(CONFIG("NOWHERE", 7, 3)) "}", "replicationSpecs[0].regionConfigs[0].regionName",
         "AWS has no region NOWHERE"},
        {"{'name': 'c', " ONE("{'providerName': 'AWS', 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}") "}",
         "replicationSpecs[0].regionConfigs[0].regionName", "is required"},
        {"{'name': 'c', " ONE(
                 "{'regionName': 'US_EAST_1', 'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}}") "}",
         "replicationSpecs[0].regionConfigs[0].providerName", "is required"},
        {"{'name': 'c', " ONE(CONFIG("US_EAST_1", 7, 2) ", " CONFIG("US_EAST_1", 6, 1)) "}",
         "replicationSpecs[0].regionConfigs[1].regionName", "must not repeat"},
        {"{'name': 'c', " WITH("'electableSpecs': {'instanceSize': 'M11', 'nodeCount': 3}") "}",
         "replicationSpecs[0].regionConfigs[0].electableSpecs.instanceSize", "AWS has no M11"},
        {"{'name': 'c', " WITH("'electableSpecs': {'nodeCount': 3}") "}",
         "replicationSpecs[0].regionConfigs[0].electableSpecs.instanceSize", "is required"},
        {"{'name': 'c', " WITH("'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}, 'readOnlySpecs': "
                               "{'instanceSize': 'M20', 'nodeCount': 1}") "}",
         "replicationSpecs[0].regionConfigs[0].readOnlySpecs.instanceSize", "must be M10"},
        {"{'name': 'c', " WITH("'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3, 'diskSizeGB': 9}") "}",
         "replicationSpecs[0].regionConfigs[0].electableSpecs.diskSizeGB", "from 10 to 4096"},
        {"{'name': 'c', " WITH("'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3, 'diskSizeGB': 20}, "
                               "'analyticsSpecs': {'nodeCount': 1, 'diskSizeGB': 30}") "}",
         "replicationSpecs[0].regionConfigs[0].analyticsSpecs.diskSizeGB", "the same for all nodes"},
        {"{'name': 'c', " ONE(CONFIG("US_EAST_1", 7, 4)) "}", "replicationSpecs[0].regionConfigs", "1, 3, 5 or 7"},
        {"{'name': 'c', " WITH("'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}, 'readOnlySpecs': "
                               "{'nodeCount': 48}") "}",
         "replicationSpecs[0].regionConfigs", "at most 50 nodes"},
        {"{'name': 'c', " ONE(CONFIG("US_EAST_1", 6, 3)) "}", "replicationSpecs[0].regionConfigs[0].priority",
         "from 7 down to 7"},
        {"{'name': 'c', " ONE(CONFIG("US_EAST_1", 7, 2) ", " CONFIG("US_WEST_2", 7, 1)) "}",
         "replicationSpecs[0].regionConfigs[1].priority", "another region"},
        {"{'name': 'c', " ONE(CONFIG("US_EAST_1", 7, 3) ", " CONFIG("US_WEST_2", 6, 0)) "}",
         "replicationSpecs[0].regionConfigs[1].priority", "must be 0"},
        {"{'name': 'c', 'dbMajorVersion': '9', " GOOD "}", "dbMajorVersion", "one of 17, 16, 15"},
        {"{'name': 'c', 'dbMajorVersion': '16.1', " GOOD "}", "dbMajorVersion", "one of 17, 16, 15"},
        {"{'name': 'c', 'pitEnabled': true, " GOOD "}", "pitEnabled", "needs backupEnabled"},
        {"{'name': 'c', 'paused': true, " GOOD "}", "paused", "false for a new cluster"},
        {"{'name': 'c', 'globalClusterSelfManagedSharding': true, 'clusterType': 'REPLICASET', " GOOD "}",
         "globalClusterSelfManagedSharding", "GEOSHARDED"},
        {"{'name': 'c', 'tags': [{'key': 'a'}, {'key': 'b'}, {'key': 'a'}], " GOOD "}", "tags[2].key",
         "must not repeat"},
        {"{'name': 'c', 'backupEnabled': true, " TENANT("'electableSpecs': {'instanceSize': 'M0'}") "}",
         "backupEnabled", "no backups"},
        {"{'name': 'c', 'encryptionAtRestProvider': 'AWS', " TENANT("'electableSpecs': {'instanceSize': 'M0'}") "}",
         "encryptionAtRestProvider", "must be NONE"},
        {"{'name': 'c', " TENANT("'electableSpecs': {'instanceSize': 'M10'}") "}",
         "replicationSpecs[0].regionConfigs[0].electableSpecs.instanceSize", "M0, M2 and M5"},
        {"{'name': 'c', " WITH("'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}, 'autoScaling': {'compute': "
                               "{'scaleDownEnabled': true, 'minInstanceSize': 'M10', 'maxInstanceSize': 'M20'}}") "}",
         "replicationSpecs[0].regionConfigs[0].autoScaling.compute.scaleDownEnabled", "needs compute.enabled"},
        {"{'name': 'c', " WITH("'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}, 'autoScaling': {'compute': "
                               "{'enabled': true}}") "}",
         "replicationSpecs[0].regionConfigs[0].autoScaling.compute.maxInstanceSize", "is required"},
        {"{'name': 'c', " WITH("'electableSpecs': {'instanceSize': 'M10', 'nodeCount': 3}, 'autoScaling': {'compute': "
                               "{'enabled': true, 'minInstanceSize': 'M40', 'maxInstanceSize': 'M20'}}") "}",
         "replicationSpecs[0].regionConfigs[0].autoScaling.compute.minInstanceSize", "must not be larger"},
};

static void test_wrong(struct arena *a)
{
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct faults f = judge(a, quoted_json(a, wrong[i].cluster), NULL);
		if (!only(&f, wrong[i].path, wrong[i].words)) {
			fprintf(stderr, "case %zu, %s: %s\n", i, wrong[i].path, wrong[i].words);
			CHECK(false);
		}
	}
	/* All of them at once, not the first alone. */
	struct faults two =
	        judge(a, quoted_json(a, "{'name': 'c', " WITH("'electableSpecs': {'instanceSize': 'M10'}") "}"), NULL);
	CHECK(two.count == 2 &&
	      str_is(two.list[0].path, "replicationSpecs[0].regionConfigs[0].electableSpecs.nodeCount"));
	struct faults f = judge(a, quoted_json(a, "{'paused': true, 'dbMajorVersion': '1'}"), NULL);
	CHECK(f.count == 4);
}

static void test_changes(struct arena *a)
{
	const json_t *old = quoted_json(a, COMPLETE);
	json_t *c = json_clone(a, old);
	struct faults f;
	json_put_z(c, "name", "other");
	f = judge(a, c, old);
	CHECK(only(&f, "name", "cannot be changed"));
	c = json_clone(a, old);
	json_put_z(c, "dbMajorVersion", "15");
	f = judge(a, c, old);
	CHECK(only(&f, "dbMajorVersion", "cannot go back from 16 to 15"));
	c = json_clone(a, old);
	json_put_z(c, "dbMajorVersion", "17.0");
	json_put(c, "paused", json_true());
	f = judge(a, c, old);
	CHECK(only(&f, NULL, "") && str_is(json_field(c, "dbMajorVersion"), "17"));
	json_t *sharded = json_clone(a, old);
	json_put_z(sharded, "clusterType", "SHARDED");
	f = judge(a, sharded, old);
	CHECK(only(&f, NULL, ""));
	c = json_clone(a, old);
	f = judge(a, c, sharded);
	CHECK(only(&f, "clusterType", "cannot become a REPLICASET"));
}

static void test_many(struct arena *a)
{
	json_t *c = quoted_json(a, "{'name': 'c', 'clusterType': 'SHARDED', 'replicationSpecs': []}");
	json_t *specs = json_object_get(c, "replicationSpecs");
	for (int i = 0; i < 51; i++)
		json_array_append_new(
		        specs, json_deep_copy(quoted_json(a, "{'regionConfigs': [" CONFIG("US_EAST_1", 7, 1) "]}")));
	struct faults f = judge(a, c, NULL);
	CHECK(only(&f, "replicationSpecs", "at most 50 items"));
	json_array_remove(specs, 50);
	f = judge(a, c, NULL);
	CHECK(f.count == (51 > ENGINE_NODES_MAX)); /* 50 shards and the router */
}

static void test_versions(struct arena *a)
{
	static const struct {
		const char *text;
		unsigned number;
	} cases[] = {{"16", 16},  {"16.0", 16}, {"16.1", 0}, {"", 0},     {"x", 0}, {"-1", 0},
	             {"1001", 0}, {"16.", 0},   {"7.0", 15}, {"8.0", 17}, {"8", 8}, {"8.00", 0}};
	static const struct option_texts names = {.v = {"8.0=17", "7.0=15"}, .n = 2};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *c = json_keep(a, json_object());
		json_put_z(c, "dbMajorVersion", cases[i].text);
		CHECK(cluster_version(&names, c) == cases[i].number);
	}
	CHECK(cluster_version(&names, NULL) == 0 && cluster_version(NULL, NULL) == 0);
}

static void test_tenants(struct arena *a)
{
	CHECK(cluster_is_tenant(quoted_json(a, "{" TENANT("'electableSpecs': {}") "}")));
	CHECK(cluster_is_tenant(quoted_json(a, "{" ONE("{'providerName': 'FLEX'}") "}")));
	CHECK(!cluster_is_tenant(quoted_json(a, "{" GOOD "}")) && !cluster_is_tenant(quoted_json(a, "{}")) &&
	      !cluster_is_tenant(NULL));
}

static struct str id_at(const json_t *cluster, size_t spec, const char *field)
{
	return json_field(json_array_get(json_object_get(cluster, "replicationSpecs"), spec), field);
}

static void test_ids(struct arena *a)
{
	json_t *c = quoted_json(a, "{'replicationSpecs': [{'zoneName': 'a'}, {'zoneName': 'b'}, {'zoneName': 'a'}]}");
	cluster_identify(c, NULL);
	for (size_t i = 0; i < 3; i++)
		CHECK(id_at(c, i, "id").n == 24 && id_at(c, i, "zoneId").n == 24);
	CHECK(!str_eq(id_at(c, 0, "id"), id_at(c, 2, "id")) && str_eq(id_at(c, 0, "zoneId"), id_at(c, 2, "zoneId")));
	CHECK(!str_eq(id_at(c, 0, "zoneId"), id_at(c, 1, "zoneId")));
	/* Zones by their names; the shard of a new zone is the one that stood in its place, if no other is. */
	json_t *changed = quoted_json(a, "{'replicationSpecs': [{'zoneName': 'b'}, {'zoneName': 'new'}]}");
	cluster_identify(changed, c);
	CHECK(str_eq(id_at(changed, 0, "id"), id_at(c, 1, "id")) &&
	      str_eq(id_at(changed, 0, "zoneId"), id_at(c, 1, "zoneId")));
	CHECK(id_at(changed, 1, "id").n == 24 && !str_eq(id_at(changed, 1, "id"), id_at(c, 1, "id")));
	CHECK(id_at(changed, 1, "zoneId").n == 24 && !str_eq(id_at(changed, 1, "zoneId"), id_at(c, 1, "zoneId")));
	json_t *renamed =
	        quoted_json(a, "{'replicationSpecs': [{'zoneName': 'a'}, {'zoneName': 'new'}, {'zoneName': 'a'}]}");
	cluster_identify(renamed, c);
	for (size_t i = 0; i < 3; i++)
		CHECK(str_eq(id_at(renamed, i, "id"), id_at(c, i, "id")));
}

/* In another order they are the same shards. */
static void test_order(struct arena *a)
{
	json_t *c = quoted_json(a, "{'replicationSpecs': [{'zoneName': 'a'}, {'zoneName': 'b'}, {'zoneName': 'a'}]}");
	cluster_identify(c, NULL);
	json_t *turned =
	        quoted_json(a, "{'replicationSpecs': [{'zoneName': 'n'}, {'zoneName': 'b'}, {'zoneName': 'a', 'x': 1}, "
	                       "{'zoneName': 'a', 'x': 2}]}");
	cluster_identify(turned, c);
	cluster_sort(turned, c);
	const json_t *specs = json_object_get(turned, "replicationSpecs");
	CHECK(json_array_size(specs) == 4 && str_is(id_at(turned, 3, "zoneName"), "n"));
	CHECK(json_number(json_array_get(specs, 0), "x") == 1 && json_number(json_array_get(specs, 2), "x") == 2);
	for (size_t i = 0; i < 3; i++)
		CHECK(str_eq(id_at(turned, i, "id"), id_at(c, i, "id")) &&
		      str_eq(id_at(turned, i, "zoneId"), id_at(c, i, "zoneId")));
	/* An id tells more than the zone; given twice, it is the first one's, and one of nobody's is none. */
	const char *last =
	        json_string_value(json_object_get(json_array_get(json_object_get(c, "replicationSpecs"), 2), "id"));
	json_t *named = json_keep(a, json_pack("{s:[{s:s, s:s, s:i}, {s:s, s:s}, {s:s, s:s}]}", "replicationSpecs",
	                                       "zoneName", "b", "id", last, "x", 3, "zoneName", "q", "id", last,
	                                       "zoneName", "a", "id", "000000000000000000000000"));
	cluster_identify(named, c);
	cluster_sort(named, c);
	specs = json_object_get(named, "replicationSpecs");
	CHECK(json_number(json_array_get(specs, 2), "x") == 3 && str_is(id_at(named, 2, "id"), last));
	CHECK(str_is(id_at(named, 0, "zoneName"), "a") && str_is(id_at(named, 1, "zoneName"), "q"));
}

int main(void)
{
	struct arena *a = arena_new();
	json_setup();
	if (schema_setup() < 0)
		return 1;
	test_defaults(a);
	test_disks(a);
	test_from_tenant(a);
	test_wrong(a);
	test_changes(a);
	test_many(a);
	test_versions(a);
	test_tenants(a);
	test_ids(a);
	test_order(a);
	schema_teardown();
	arena_free(a);
	return CHECK_DONE();
}

/* Connection strings: the host shapes of every kind. */
#include "check.h"

#include "api/clusters/connection_strings.h"

static const struct connection_options options = {.scheme = "postgresql", .domain = "steward.local"};

static void test_standard(struct arena *a)
{
	const struct connection_node here[] = {{"ab12cd-shard-00-00", "127.77.0.1", 27017},
	                                       {"ab12cd-shard-00-01", "127.77.0.2", 27017}};
	struct connection_cluster c = {.label = "ab12cd", .project_hash = "x1y2z3", .nodes = here, .node_count = 2};
	CHECK(str_is(connection_hosts(a, &options, &c, ""),
	             "postgresql://"
	             "ab12cd-shard-00-00.x1y2z3.steward.local:27017,ab12cd-shard-00-01.x1y2z3.steward.local:27017"
	             "/postgres?hostaddr=127.77.0.1,127.77.0.2&sslmode=require&target_session_attrs=read-write"));
	CHECK(str_is(connection_srv(a, &options, &c, ""), "postgresql+srv://ab12cd.x1y2z3.steward.local"));
	CHECK(str_is(connection_srv(a, &options, &c, CONNECTION_PRIVATE),
	             "postgresql+srv://ab12cd-pri.x1y2z3.steward.local"));
	CHECK(str_is(connection_hosts(a, &options, &c, CONNECTION_PRIVATE),
	             "postgresql://ab12cd-shard-00-00-pri.x1y2z3.steward.local:27017,"
	             "ab12cd-shard-00-01-pri.x1y2z3.steward.local:27017"
	             "/postgres?hostaddr=127.77.0.1,127.77.0.2&sslmode=require&target_session_attrs=read-write"));
	/* One node without an address: all by name, or the two lists would not match. */
	const struct connection_node mixed[] = {{"ab12cd-shard-00-00", "127.77.0.1", 27017},
	                                        {"ab12cd-shard-00-01", "", 27017}};
	c.nodes = mixed;
	struct str s = connection_hosts(a, &options, &c, "");
	CHECK(!memmem(s.p, s.n, "hostaddr", 8));
}

static void test_endpoints(struct arena *a)
{
	const struct connection_cluster c = {.label = "ab12cd", .project_hash = "x1y2z3"};
	struct connection_endpoint e = {.number = 0, .location = "us-east-1", .cluster_name = "orders"};
	CHECK(str_starts(connection_endpoint(a, &options, &c, &e),
	                 STR("postgresql://pl-0-us-east-1.x1y2z3.steward.local:1024/")));
	CHECK(str_is(connection_endpoint_srv(a, &options, &c, &e, false),
	             "postgresql+srv://pl-0-us-east-1.x1y2z3.steward.local"));
	CHECK(str_is(connection_endpoint_srv(a, &options, &c, &e, true),
	             "postgresql+srv://pl-0-lb-us-east-1.x1y2z3.steward.local"));
	e.regional = true;
	CHECK(str_starts(connection_endpoint(a, &options, &c, &e),
	                 STR("postgresql://pl-0-us-east-1.x1y2z3.steward.local:1024/")));
	CHECK(str_is(connection_endpoint_srv(a, &options, &c, &e, false),
	             "postgresql+srv://orders-pl-0-us-east-1.x1y2z3.steward.local"));
}

static bool is(const json_t *object, const char *field, const char *value)
{
	const char *text = json_string_value(json_object_get(object, field));
	return text && strcmp(text, value) == 0;
}

static void test_document(struct arena *a)
{
	const struct connection_node one[] = {{"ab12cd-shard-00-00", "", 27017}};
	const struct connection_cluster c = {
	        .label = "ab12cd", .project_hash = "x1y2z3", .nodes = one, .node_count = 1};
	const struct connection_endpoint ends[] = {{.number = 0,
	                                            .location = "us-east-1",
	                                            .cluster_name = "orders",
	                                            .optimized = true,
	                                            .id = "vpce-1",
	                                            .provider = "AWS",
	                                            .region = "US_EAST_1"},
	                                           {.number = 1,
	                                            .location = "westeurope",
	                                            .cluster_name = "orders",
	                                            .id = "az-1",
	                                            .provider = "AZURE",
	                                            .region = "EUROPE_WEST"}};
	struct connection_network n = {.peered = false};
	json_t *plain = connection_strings_json(a, &options, &c, &n);
	CHECK(json_object_size(plain) == 2 && json_object_get(plain, "standardSrv"));
	n.peered = true;
	json_t *peered = connection_strings_json(a, &options, &c, &n);
	CHECK(json_object_size(peered) == 4 && json_object_get(peered, "privateSrv"));
	n = (struct connection_network){.sharded = true, .endpoints = ends, .endpoint_count = 2};
	json_t *linked = connection_strings_json(a, &options, &c, &n),
	       *list = json_object_get(linked, "privateEndpoint"), *first = json_array_get(list, 0),
	       *second = json_array_get(list, 1);
	CHECK(json_object_size(linked) == 5 && json_array_size(list) == 2);
	CHECK(is(first, "srvConnectionString", "postgresql+srv://pl-0-us-east-1.x1y2z3.steward.local"));
	CHECK(is(first, "srvShardOptimizedConnectionString",
	         "postgresql+srv://pl-0-lb-us-east-1.x1y2z3.steward.local"));
	CHECK(is(first, "type", "ROUTER") && !json_object_get(second, "srvShardOptimizedConnectionString"));
	CHECK(is(json_array_get(json_object_get(second, "endpoints"), 0), "endpointId", "az-1"));
	CHECK(json_object_size(json_object_get(linked, "awsPrivateLink")) == 1);
	CHECK(is(json_object_get(linked, "awsPrivateLinkSrv"), "vpce-1",
	         "postgresql+srv://pl-0-us-east-1.x1y2z3.steward.local"));
	json_decref(plain);
	json_decref(peered);
	json_decref(linked);
}

static void test_hash(void)
{
	char one[PROJECT_HASH], again[PROJECT_HASH], other[PROJECT_HASH];
	project_hash(STR("5f0000000000000000000001"), one);
	project_hash(STR("5f0000000000000000000001"), again);
	project_hash(STR("5f0000000000000000000002"), other);
	CHECK(strlen(one) == 6 && strcmp(one, again) == 0 && strcmp(one, other) != 0);
	CHECK(one[0] >= 'a' && one[0] <= 'z');
}

int main(void)
{
	struct arena *a = arena_new();
	test_standard(a);
	test_endpoints(a);
	test_document(a);
	test_hash();
	arena_free(a);
	return CHECK_DONE();
}

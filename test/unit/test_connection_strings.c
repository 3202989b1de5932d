/* Connection strings: the host shapes of every kind. */
#include "check.h"

#include "api/connection_strings.h"

static const struct connection_options options = {.scheme = "postgresql", .domain = "steward.local"};

static void test_standard(struct arena *a)
{
	const struct connection_node here[] = {{"ab12cd-shard-00-00", "127.77.0.1", 27017},
	                                       {"ab12cd-shard-00-01", "127.77.0.2", 27017}};
	struct connection_cluster c = {.label = "ab12cd", .project_hash = "x1y2z3", .nodes = here, .node_count = 2};
	CHECK(str_is(connection_standard(a, &options, &c),
	             "postgresql://"
	             "ab12cd-shard-00-00.x1y2z3.steward.local:27017,ab12cd-shard-00-01.x1y2z3.steward.local:27017"
	             "/postgres?hostaddr=127.77.0.1,127.77.0.2&sslmode=require&target_session_attrs=read-write"));
	CHECK(str_is(connection_standard_srv(a, &options, &c), "postgresql+srv://ab12cd.x1y2z3.steward.local"));
	CHECK(str_is(connection_private_srv(a, &options, &c), "postgresql+srv://ab12cd-pri.x1y2z3.steward.local"));
	CHECK(str_starts(connection_private(a, &options, &c),
	                 STR("postgresql://ab12cd-shard-00-00-pri.x1y2z3.steward.local:27017,")));
	/* One node without an address: all by name, or the two lists would not match. */
	const struct connection_node mixed[] = {{"ab12cd-shard-00-00", "127.77.0.1", 27017},
	                                        {"ab12cd-shard-00-01", "", 27017}};
	c.nodes = mixed;
	struct str s = connection_standard(a, &options, &c);
	CHECK(!memmem(s.p, s.n, "hostaddr", 8));
}

static void test_endpoints(struct arena *a)
{
	const struct connection_cluster c = {.label = "ab12cd", .project_hash = "x1y2z3"};
	struct connection_endpoint e = {.number = 0, .location = "us-east-1", .cluster_name = "orders"};
	CHECK(str_starts(connection_endpoint(a, &options, &c, &e),
	                 STR("postgresql://pl-0-us-east-1.x1y2z3.steward.local:1024/")));
	CHECK(str_is(connection_endpoint_srv(a, &options, &c, &e),
	             "postgresql+srv://pl-0-us-east-1.x1y2z3.steward.local"));
	e.optimized = true;
	CHECK(str_is(connection_endpoint_srv(a, &options, &c, &e),
	             "postgresql+srv://pl-0-lb-us-east-1.x1y2z3.steward.local"));
	e.optimized = false;
	e.regional = true;
	CHECK(str_is(connection_endpoint_srv(a, &options, &c, &e),
	             "postgresql+srv://orders-pl-0-us-east-1.x1y2z3.steward.local"));
}

static void test_document(struct arena *a)
{
	const struct connection_node one[] = {{"ab12cd-shard-00-00", "", 27017}};
	const struct connection_cluster c = {
	        .label = "ab12cd", .project_hash = "x1y2z3", .nodes = one, .node_count = 1};
	json_t *plain = connection_strings_json(a, &options, &c, false),
	       *peered = connection_strings_json(a, &options, &c, true);
	CHECK(json_object_size(plain) == 2 && json_object_get(plain, "standardSrv"));
	CHECK(json_object_size(peered) == 4 && json_object_get(peered, "privateSrv"));
	json_decref(plain);
	json_decref(peered);
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

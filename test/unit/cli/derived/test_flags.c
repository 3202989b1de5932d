/* Flags to bodies, on the schemas of the API: what people type, and what they are told. Random bodies:
 * flags_property.py. */
#include "base/json.h"
#include "cli/derived/command.h"
#include "cli/derived/flags.h"

#include "check.h"

static struct arena *arena;

static struct flags flags_for(const char *operation)
{
	return (struct flags){.arena = arena, .schema = command_body(catalog_op(operation))};
}

static bool body_is(const struct flags *f, const char *json)
{
	json_t *wanted = json_loads(json, JSON_DECODE_ANY, NULL);
	bool same = json_equal(f->body, wanted);
	if (!same)
		fprintf(stderr, "%s is not %s\n", f->body ? json_text(arena, f->body).p : "nothing", json);
	json_decref(wanted);
	return same;
}

static void test_names(void)
{
	static const char *const names[][2] = {
	        {"name", "name"},
	        {"diskSizeGB", "disk-size-gb"},
	        {"userToDNMapping", "user-to-dn-mapping"},
	        {"x509Type", "x509-type"},
	        {"awsIAMType", "aws-iam-type"},
	        {"default_language", "default-language"},
	        {"_id", "id"},
	        {"2dsphereIndexVersion", "2dsphere-index-version"},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		CHECK(strcmp(flag_name(arena, str_of(names[i][0])), names[i][1]) == 0);
	CHECK(strcmp(flag_of_path(arena, STR("replicationSpecs[0].regionConfigs[12].priority")),
	             "replication-specs.0.region-configs.12.priority") == 0);
	CHECK(strcmp(flag_of_path(arena, STR("[1].cidrBlock")), "1.cidr-block") == 0);
	CHECK(*flag_of_path(arena, STR_NONE) == '\0');
}

static void test_cut(void)
{
	struct str name, value;
	CHECK(flag_cut(STR("a=b=c"), &name, &value) && str_is(name, "a") && str_is(value, "b=c"));
	CHECK(flag_cut(STR("a\\=b=c"), &name, &value) && str_is(name, "a\\=b") && str_is(value, "c"));
	CHECK(!flag_cut(STR("a"), &name, &value) && str_is(name, "a"));
	CHECK(!flag_cut(STR("a\\"), &name, &value) && str_is(name, "a\\"));
	CHECK(flag_cut(STR("a="), &name, &value) && value.n == 0);
}

static void test_values(void)
{
	struct flags f = flags_for("createGroup");
	CHECK(!flags_set(&f, STR("name"), STR("true")) &&
	      !flags_set(&f, STR("withDefaultAlertsSettings"), STR("true")));
	CHECK(!flags_set(&f, STR("tags.key"), STR("5")) && !flags_set(&f, STR("tags.0.value"), STR("{}")));
	CHECK(!flags_set(&f, STR("tags.1.key"), STR("k")));
	CHECK(body_is(&f, "{\"name\":\"true\",\"withDefaultAlertsSettings\":true,"
	                  "\"tags\":[{\"key\":\"5\",\"value\":\"{}\"},{\"key\":\"k\"}]}"));
	CHECK(flags_set(&f, STR("with-default-alerts-settings"), STR("yes")));
	CHECK(flags_set(&f, STR("name"), STR("\xff")));
	CHECK(!flags_assign(&f, STR("tags:=[]")) && !flags_assign(&f, STR("name=x=y")));
	CHECK(body_is(&f, "{\"name\":\"x=y\",\"withDefaultAlertsSettings\":true,\"tags\":[]}"));
	CHECK(flags_assign(&f, STR("name")) && flags_assign(&f, STR("name:={")) && flags_assign(&f, STR("nothing=1")));
}

static void test_lists(void)
{
	struct flags f = flags_for("createOrgApiKey");
	CHECK(!flags_set(&f, STR("roles"), STR("A")) && !flags_set(&f, STR("roles"), STR("B")));
	CHECK(body_is(&f, "{\"roles\":[\"A\",\"B\"]}"));
	CHECK(!flags_set(&f, STR("roles"), STR("[\"C\"]")) && body_is(&f, "{\"roles\":[\"C\"]}"));
	CHECK(!flags_set(&f, STR("roles.0"), STR("D")) && body_is(&f, "{\"roles\":[\"D\"]}"));
	struct flags entries = flags_for("createAccessListEntry");
	CHECK(!flags_set(&entries, STR("cidr-block"), STR("10.0.0.0/8")));
	CHECK(!flags_set(&entries, STR("1.comment"), STR("c")));
	CHECK(body_is(&entries, "[{\"cidrBlock\":\"10.0.0.0/8\"},{\"comment\":\"c\"}]"));
	CHECK(flags_set(&entries, STR("5000.comment"), STR("c")));
}

static void test_branches(void)
{
	struct flags f = flags_for("createCluster");
	CHECK(!flags_set(&f, STR("replication-specs.0.region-configs.0.priority"), STR("7")));
	CHECK(!flags_set(&f, STR("replication-specs.0.region-configs.0.provider-name"), STR("AWS")));
	CHECK(!flags_set(&f, STR("replication-specs.region-configs.electable-specs.disk-iops"), STR("3000")));
	CHECK(body_is(&f, "{\"replicationSpecs\":[{\"regionConfigs\":[{\"priority\":7,\"providerName\":\"AWS\","
	                  "\"electableSpecs\":{\"diskIOPS\":3000}}]}]}"));
	CHECK(flags_set(&f, STR("replication-specs.0.region-configs.0.priority"), STR("seven")));
	CHECK(flags_set(&f, STR("replication-specs.0.region-configs.0.priority"), STR("7.5")));
	CHECK(flags_set(&f, STR("replication-specs"), STR("7")));
}

static void test_maps(void)
{
	struct flags f = flags_for("createRollingIndex");
	CHECK(!flags_set(&f, STR("keys.0.plain\\.name"), STR("1")) &&
	      !flags_set(&f, STR("options.weights.a\\=b"), STR("5")));
	CHECK(body_is(&f, "{\"keys\":[{\"plain.name\":\"1\"}],\"options\":{\"weights\":{\"a=b\":5}}}"));
}

static void test_faults(void)
{
	struct flags f = flags_for("createGroup");
	const char *fault = flags_set(&f, STR("nam"), STR("x"));
	CHECK(fault && strstr(fault, "did you mean --name?"));
	fault = flags_set(&f, STR("tags.0.kee"), STR("x"));
	CHECK(fault && strstr(fault, "did you mean --tags.0.key?"));
	fault = flags_set(&f, STR("id"), STR("x"));
	CHECK(fault && strstr(fault, "by the service"));
	fault = flags_set(&f, STR("name.first"), STR("x"));
	CHECK(fault && strstr(fault, "one value"));
	fault = flags_set(&f, STR("zzzzzzzzzz"), STR("x"));
	CHECK(fault && !strstr(fault, "did you mean"));
	CHECK(!f.body);
}

static void test_kinds(void)
{
	const struct schema *s = command_body(catalog_op("createDatabaseUser"));
	bool secret;
	CHECK(flags_find(s, STR("username"), &secret) == FLAG_VALUE && !secret);
	CHECK(flags_find(s, STR("password"), &secret) == FLAG_VALUE && secret);
	CHECK(flags_find(s, STR("roles.0.role-name"), &secret) == FLAG_VALUE && !secret);
	CHECK(flags_find(s, STR("passwrd"), &secret) == FLAG_UNKNOWN);
	s = command_body(catalog_op("updateCluster"));
	CHECK(flags_find(s, STR("paused"), &secret) == FLAG_SWITCH && !secret);
	json_t *body = json_pack("{s:s, s:s}", "username", "u", "password", "p");
	flags_hide_secrets(command_body(catalog_op("createDatabaseUser")), body);
	CHECK(str_is(json_field(body, "password"), "***") && str_is(json_field(body, "username"), "u"));
	json_decref(body);
}

/* Every operation's flags are listed once, those that are required first, and each is known when it is typed. */
static void test_lists_of_all(void)
{
	for (unsigned i = 0; i < catalog_op_count; i++) {
		const struct schema *s = command_body(&catalog_ops[i]);
		struct flag *flags;
		bool secret, optional = false;
		size_t count = s ? flags_list(arena, s, command_use(&catalog_ops[i]), &flags) : 0;
		for (size_t k = 0; k < count; k++) {
			CHECK(flags_find(s, str_of(flags[k].name), &secret) != FLAG_UNKNOWN);
			CHECK(secret == flags[k].secret && !(optional && flags[k].required));
			optional = optional || !flags[k].required;
			for (size_t j = 0; j < k; j++)
				if (strcmp(flags[j].name, flags[k].name) == 0)
					CHECK(!"listed once");
		}
		arena_reset(arena);
	}
}

int main(void)
{
	json_setup();
	arena = arena_new();
	CHECK(schema_setup() == 0);
	test_names();
	test_cut();
	test_values();
	test_lists();
	test_branches();
	test_maps();
	test_faults();
	test_kinds();
	arena_reset(arena);
	test_lists_of_all();
	arena_free(arena);
	schema_teardown();
	return CHECK_DONE();
}

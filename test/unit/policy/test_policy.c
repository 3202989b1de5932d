/* Policies: what parses, where faults are reported, what the validator finds, how expressions evaluate, and the limits.
 * Most cases of the evaluator are in policy_property.py. */
#include "check.h"

#include "base/buf.h"
#include "policy/policy.h"
#include "policy/schema.h"

#include <errno.h>

static struct arena *arena;

#define HEAD "forbid(principal, action, resource) "

static int parse(const char *text, struct policy_statement **ret_statements, struct policy_fault *ret_fault)
{
	return policy_parse(arena, str_of(text), ret_statements, ret_fault);
}

static bool parses(const char *text)
{
	struct policy_statement *s;
	struct policy_fault f = {0};
	int result = parse(text, &s, &f);
	if (result < 0)
		fprintf(stderr, "%s\n  %u:%u: %.*s\n", text, f.line, f.column, STR_ARG(f.text));
	return result == 0;
}

/* Whether there is a fault at that place whose text contains `part`. */
static bool faults_at(const char *text, unsigned line, unsigned column, const char *part)
{
	struct policy_statement *s;
	struct policy_fault f = {0};
	if (parse(text, &s, &f) == 0) {
		fprintf(stderr, "parses: %s\n", text);
		return false;
	}
	bool right = f.line == line && f.column == column && strstr(arena_z(arena, f.text), part);
	if (!right)
		fprintf(stderr, "%s\n  %u:%u: %.*s\n", text, f.line, f.column, STR_ARG(f.text));
	return right;
}

static void test_grammar(void)
{
	CHECK(parses("permit(principal, action, resource);"));
	CHECK(parses("@id(\"x\") @note forbid (principal == U::\"a\", action in [A::\"x\", A::\"y\"], resource is R in "
	             "P::\"z\")\n"
	             "when { true } unless { false } when { 1 < 2 };"));
	CHECK(parses(HEAD "; " HEAD ";"));
	CHECK(parses("// a comment\n" HEAD "// more\n;// end"));
	CHECK(parses(HEAD "when { if true then 1 == 2 else [1, 2].contains(3) };"));
	CHECK(parses(HEAD "when { {a: 1, \"b c\": [true]}.a == -9223372036854775808 };"));
	CHECK(parses(HEAD "when { context has a.b.c && context[\"a\"].b like \"x*\\*\" };"));
	CHECK(parses(HEAD "when { !!!!true && -(-1) == 1 && resource is A::B in C::\"d\" };"));
	CHECK(parses(HEAD "when { \"\\u{1F600}\\x41\\n\\0\\'\\\"\" != \"é\" };"));
	/* Keywords are allowed as names of attributes. */
	CHECK(parses(HEAD "when { context.if == context.in && {then: 1} has then };"));
}

static void test_faults(void)
{
	CHECK(faults_at("", 1, 1, "expected 'permit' or 'forbid', found the end of the text"));
	CHECK(faults_at("  allow(principal, action, resource);", 1, 3, "expected 'permit' or 'forbid', found 'allow'"));
	CHECK(faults_at("forbid(principal, resource, action);", 1, 19, "expected 'action'"));
	CHECK(faults_at("forbid(principal, action, resource)", 1, 36, "'when', 'unless' or ';'"));
	CHECK(faults_at(HEAD "\nwhen {\n  context.a ==\n};", 4, 1, "expected a value, found '}'"));
	CHECK(faults_at(HEAD "when { context.a = 1 };", 1, 54, "'=' has no meaning"));
	CHECK(faults_at(HEAD "when { \"é\" == é };", 1, 51, "outside of strings"));
	CHECK(faults_at(HEAD "when { \"abc };", 1, 44, "does not end"));
	CHECK(faults_at(HEAD "when { \"\\q\" == \"\" };", 1, 44, "escape"));
	CHECK(faults_at(HEAD "when { \"\\u{d800}\" == \"\" };", 1, 44, "escape"));
	CHECK(faults_at(HEAD "when { \"\\xff\" == \"\" };", 1, 44, "escape"));
	CHECK(faults_at(HEAD "when { 9223372036854775808 == 1 };", 1, 44, "64 bits"));
	CHECK(faults_at(HEAD "when { -9223372036854775809 == 1 };", 1, 44, "64 bits"));
	CHECK(faults_at(HEAD "when { 1 + 2 == 3 };", 1, 46, "arithmetic is not supported"));
	CHECK(faults_at(HEAD "when { 1 < 2 < 3 };", 1, 50, "an operator or '}'"));
	CHECK(faults_at(HEAD "when { foo == 1 };", 1, 44, "is no variable"));
	CHECK(faults_at(HEAD "when { decimal(\"1.0\") == 1 };", 1, 44, "the only function is ip"));
	CHECK(faults_at(HEAD "when { context.a.startsWith(\"x\") };", 1, 54, "there is no method 'startsWith'"));
	CHECK(faults_at(HEAD "when { [1, 2 };", 1, 50, "',' or ']'"));
	CHECK(faults_at(HEAD "when { {a: 1, a: 2} == 1 };", 1, 51, "stands twice"));
	CHECK(faults_at(HEAD "when { true && if true then true else false };", 1, 52, "parentheses"));
	CHECK(faults_at("forbid(principal == ?principal, action, resource);", 1, 21, "templates"));
	CHECK(faults_at("forbid(principal in [A::\"x\"], action, resource);", 1, 21, "an entity"));
	CHECK(faults_at("forbid(principal, action is A, resource);", 1, 26, "','"));
}

static void test_bounds(void)
{
	struct buf b = {0};
	struct policy_statement *s;
	struct policy_fault f;
	/* Deep nesting of each kind. */
	static const char *const opens[] = {"(", "!", "-", "[", "{a:", "if true then ", "ip(", "[].contains("};
	for (size_t k = 0; k < sizeof opens / sizeof *opens; k++) {
		b.n = 0;
		buf_z(&b, HEAD "when { ");
		for (unsigned i = 0; i < 900; i++)
			buf_z(&b, opens[k]);
		CHECK(policy_parse(arena, buf_view(&b), &s, &f) == -E2BIG);
	}
	b.n = 0;
	buf_z(&b, HEAD "when { context");
	for (unsigned i = 0; i < 300; i++)
		buf_z(&b, ".a");
	buf_z(&b, " };");
	CHECK(policy_parse(arena, buf_view(&b), &s, &f) == -E2BIG);
	/* A long chain is not deep. */
	b.n = 0;
	buf_z(&b, HEAD "when { true");
	for (unsigned i = 0; i < 1500; i++)
		buf_z(&b, "&& true");
	buf_z(&b, " };");
	CHECK(policy_parse(arena, buf_view(&b), &s, &f) == 0);
	b.n = 0;
	for (unsigned i = 0; i <= POLICY_STATEMENTS_MAX; i++)
		buf_z(&b, HEAD ";");
	CHECK(policy_parse(arena, buf_view(&b), &s, &f) == -E2BIG);
	b.n = 0;
	while (b.n <= POLICY_TEXT_MAX)
		buf_z(&b, "// filler\n");
	CHECK(policy_parse(arena, buf_view(&b), &s, &f) == -E2BIG);
	buf_free(&b);
}

/* The first fault of validation, as "line:column: text"; "" when it is valid. */
static const char *invalid(const char *text)
{
	struct policy_statement *s;
	struct policy_faults faults = {.count = 0};
	struct policy_fault f;
	if (parse(text, &s, &f) < 0)
		return "does not parse";
	policy_validate(arena, s, &faults);
	if (!faults.count)
		return "";
	return arena_printf(arena, "%u:%u: %.*s", faults.list[0].line, faults.list[0].column,
	                    STR_ARG(faults.list[0].text))
	        .p;
}

static bool invalid_with(const char *text, const char *part)
{
	const char *found = invalid(text);
	if (strstr(found, part))
		return true;
	fprintf(stderr, "%s\n  %s\n", text, *found ? found : "is valid");
	return false;
}

#define ON_CLUSTER "forbid(principal, action == ResourcePolicy::Action::\"cluster.modify\", resource) when { "
#define ON_ACCESS \
	"forbid(principal, action == ResourcePolicy::Action::\"project.ipAccessList.modify\", resource) when { "

static void test_valid(void)
{
	static const char *const valid[] = {
	        HEAD ";",
	        ON_CLUSTER "context.cluster.cloudProviders.contains(ResourcePolicy::CloudProvider::\"aws\") };",
	        ON_CLUSTER
	        "context.cluster.regions.containsAny([cloud::region::\"aws:us-east-1\", cloud::region::\"gcp:eu\"]) };",
	        ON_CLUSTER "context.cluster has minGeneralClusterSize && context.cluster.minGeneralClusterSize < 30 };",
	        ON_CLUSTER "context has cluster.maxDiskSizeGB && context.cluster.maxDiskSizeGB > 100 };",
	        ON_CLUSTER
	        "if context.cluster has dbMajorVersion then context.cluster.dbMajorVersion like \"1*\" else false };",
	        ON_CLUSTER "context.cluster has dbMajorVersion } when { context.cluster.dbMajorVersion == \"16\" };",
	        ON_CLUSTER
	        "(context.cluster has dbMajorVersion && true || context.cluster has dbMajorVersion && false) && "
	        "context.cluster.dbMajorVersion == \"16\" };",
	        ON_ACCESS "context.project.ipAccessList.contains(ip(\"0.0.0.0/0\")) };",
	        ON_ACCESS "context.entry has address && !context.entry.address.isInRange(ip(\"10.0.0.0/8\")) };",
	        HEAD "when { context has cluster && !context.cluster.backupEnabled };",
	        HEAD "when { resource in ResourcePolicy::Project::\"32b6e34b3d91647abb20e7b8\" };",
	        HEAD "unless { principal == ResourcePolicy::ServiceAccount::\"svc_sa_id_1\" };",
	        "forbid(principal is ResourcePolicy::User, action, resource is ResourcePolicy::Cluster in "
	        "ResourcePolicy::Organization::\"32b6e34b3d91647abb20e7b8\");",
	        HEAD "when { resource.name like \"prod-*\" };",
	};
	for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
		const char *found = invalid(valid[i]);
		if (*found)
			fprintf(stderr, "%s\n  %s\n", valid[i], found);
		CHECK(!*found);
	}
}

static void test_invalid(void)
{
	CHECK(invalid_with("forbid(principal, action == ResourcePolicy::Action::\"cluster.modfy\", resource);",
	                   "1:29: "));
	CHECK(invalid_with(
	        "forbid(principal, action == ResourcePolicy::Action::\"cluster.modfy\", resource) when { context.x };",
	        "expected cluster.modify, project.ipAccessList.modify"));
	CHECK(invalid_with("forbid(principal, action == Foo::\"x\", resource);", "there is no entity type 'Foo'"));
	CHECK(invalid_with(ON_CLUSTER "context.cluster.region == 1 };", "there is no attribute 'region'"));
	CHECK(invalid_with(ON_CLUSTER "context.cluster has regons };", "there is no attribute 'regons'"));
	CHECK(invalid_with(ON_CLUSTER "context.project.ipAccessList.isEmpty() };", "there is no attribute 'project'"));
	CHECK(invalid_with(ON_CLUSTER "context.cluster.minGeneralClusterSize < 30 };",
	                   "may be absent: ask 'has minGeneralClusterSize"));
	CHECK(invalid_with(ON_CLUSTER
	                   "context.cluster has minGeneralClusterSize || context.cluster.minGeneralClusterSize < 3 };",
	                   "may be absent"));
	CHECK(invalid_with(ON_CLUSTER
	                   "!(context.cluster has dbMajorVersion) && context.cluster.dbMajorVersion == \"1\" };",
	                   "may be absent"));
	CHECK(invalid_with(ON_CLUSTER "true } unless { context.cluster has dbMajorVersion } when { "
	                              "context.cluster.dbMajorVersion == \"1\" };",
	                   "may be absent"));
	CHECK(invalid_with(HEAD "when { context.cluster.backupEnabled };", "'cluster' may be absent"));
	CHECK(invalid_with(ON_CLUSTER "context.cluster.regions.contains(\"aws:us-east-1\") };", "never in this set"));
	CHECK(invalid_with(ON_CLUSTER "context.cluster.regions.contains(ResourcePolicy::CloudProvider::\"aws\") };",
	                   "never in this set"));
	CHECK(invalid_with(ON_CLUSTER "context.cluster.regions.contains(cloud::region::\"US_EAST_1\") };",
	                   "as in aws:us-east-1"));
	CHECK(invalid_with(ON_CLUSTER "context.cluster.cloudProviders.containsAny([cloud::cloudProvider::\"ibm\"]) };",
	                   "aws, azure or gcp"));
	CHECK(invalid_with(ON_CLUSTER "context.cluster.cloudProviders == cloud::cloudProvider::\"aws\" };",
	                   "never equal"));
	CHECK(invalid_with(ON_CLUSTER "context.cluster.nodeCount };", "must be a boolean, not a number"));
	CHECK(invalid_with(ON_CLUSTER "context.cluster.nodeCount < \"3\" };", "must be a number, not a string"));
	CHECK(invalid_with(ON_CLUSTER "context.cluster.name.isIpv4() };", "must be an address, not a string"));
	CHECK(invalid_with(ON_CLUSTER "[1, \"a\"].contains(1) };", "like the set's other items"));
	CHECK(invalid_with(ON_ACCESS "context.project.ipAccessList.contains(ip(\"10.0.0.1/8\")) };",
	                   "expected \"10.0.0.0/8\""));
	CHECK(invalid_with(ON_ACCESS "context.project.ipAccessList.contains(ip(\"10.0.0.256\")) };",
	                   "must be an address or a network"));
	CHECK(invalid_with(ON_ACCESS "resource is ResourcePolicy::Cluster };", "never holds"));
	CHECK(invalid_with(ON_ACCESS "resource in ResourcePolicy::Cluster::\"32b6e34b3d91647abb20e7b8\" };",
	                   "never holds"));
	CHECK(invalid_with(HEAD "when { resource in ResourcePolicy::Project::\"x\" };", "24 hexadecimal digits"));
	CHECK(invalid_with(HEAD "when { principal == ResourcePolicy::Project::\"32b6e34b3d91647abb20e7b8\" };",
	                   "never equal"));
	CHECK(invalid_with(HEAD "when { if true then 1 else false };", "like the value behind 'then'"));
	CHECK(invalid_with(HEAD "when { {}[\"a\"] != 1 };", "no such attribute"));
	CHECK(invalid_with(HEAD "when { {a: {b: 1}}.a.b };", "must be a boolean, not a number"));
	CHECK(invalid_with(HEAD "when { (if true then {a: 1} else {}).a == 1 };", "which record"));
	CHECK(invalid_with(HEAD "when { (if context has cluster then context.cluster else context).regions == [] };",
	                   "which record"));
	CHECK(invalid_with(HEAD "when { resource in (if true then [] else [1]) };", "an entity or a set of entities"));
	CHECK(invalid_with(HEAD "when { resource in if true then [resource] else [1] };", "does not parse"));
	CHECK(invalid_with(HEAD "when { resource in (if true then [resource] else [1]) };",
	                   "like the value behind 'then'"));
}

static enum policy_outcome evaluate(const char *text, struct policy_fault *ret_fault)
{
	struct policy_statement *s;
	struct policy_fault f;
	struct policy_request r = {
	        .principal = {STR("U"), STR("a")}, .action = {STR("A"), STR("b")}, .resource = {STR("R"), STR("c")}};
	unsigned steps = POLICY_STEPS_MAX;
	json_t *context = json_loads("{\"n\": 3, \"s\": \"aws:us-east-1\", \"ips\": [{\"__extn\": {\"fn\": \"ip\", "
	                             "\"arg\": \"10.0.0.0/8\"}}],"
	                             " \"es\": [{\"__entity\": {\"type\": \"T\", \"id\": \"x\"}}]}",
	                             0, NULL);
	CHECK(policy_value_from_json(arena, context, &r.context) == 0);
	CHECK(parse(text, &s, &f) == 0);
	enum policy_outcome outcome = policy_evaluate(arena, s, &r, &steps, ret_fault);
	json_decref(context);
	return outcome;
}

static void test_evaluate(void)
{
	struct policy_fault f = {0};
	struct buf b = {0};
	CHECK(evaluate(HEAD ";", &f) == POLICY_APPLIES);
	CHECK(evaluate("forbid(principal == U::\"b\", action, resource);", &f) == POLICY_SKIPPED);
	CHECK(evaluate("forbid(principal, action in [A::\"a\", A::\"b\"], resource is R);", &f) == POLICY_APPLIES);
	CHECK(evaluate(HEAD "when { context.n == 3 } unless { context has x };", &f) == POLICY_APPLIES);
	CHECK(evaluate(HEAD "when { context.s like \"aws:*-1\" };", &f) == POLICY_APPLIES);
	CHECK(evaluate(HEAD "when { context.ips.contains(ip(\"10.0.0.0/8\")) && context.es.contains(T::\"x\") };",
	               &f) == POLICY_APPLIES);
	CHECK(evaluate(HEAD "when { [1, 2, 2] == [2, 1] };", &f) == POLICY_APPLIES);
	CHECK(evaluate(HEAD "when { false && context.x };", &f) == POLICY_SKIPPED);
	CHECK(evaluate(HEAD "when { true || context.x };", &f) == POLICY_APPLIES);
	CHECK(evaluate(HEAD "when {\n  context.x == 1 };", &f) == POLICY_ERROR && f.line == 2 && f.column == 11);
	CHECK(evaluate(HEAD "when { context.s < 1 };", &f) == POLICY_ERROR);
	CHECK(evaluate(HEAD "when { context.n };", &f) == POLICY_ERROR);
	CHECK(evaluate(HEAD "when { -(-9223372036854775808) == 1 };", &f) == POLICY_ERROR);
	/* Sets of sets, compared with each other: more pairs than steps. */
	buf_z(&b, HEAD "when { [");
	for (unsigned i = 0; i < 2000; i++)
		buf_printf(&b, "%s[%u]", i ? "," : "", i % 10);
	buf_z(&b, "].containsAll([[99]]) };");
	CHECK(b.n < POLICY_TEXT_MAX && evaluate(arena_z(arena, buf_view(&b)), &f) == POLICY_SKIPPED);
	b.n = 0;
	buf_z(&b, HEAD "when { ");
	for (unsigned k = 0; k < 2; k++) {
		buf_z(&b, k ? ".containsAll([" : "[");
		for (unsigned i = 0; i < 1500; i++)
			buf_printf(&b, "%s%u", i ? "," : "", 5000 + i);
		buf_z(&b, "]");
	}
	buf_z(&b, ") };");
	CHECK(b.n < POLICY_TEXT_MAX && evaluate(arena_z(arena, buf_view(&b)), &f) == POLICY_EXHAUSTED);
	buf_free(&b);
}

static void test_mentions(void)
{
	struct policy_statement *s;
	struct policy_fault f;
	CHECK(parse(HEAD "when { true && [context.entry] == [] };", &s, &f) == 0 && policy_mentions(s, "entry"));
	CHECK(parse(HEAD "when { context has entry };", &s, &f) == 0 && policy_mentions(s, "entry"));
	CHECK(parse(HEAD "when { context.project.entry == 1 };", &s, &f) == 0 && !policy_mentions(s, "entry"));
}

int main(void)
{
	arena = arena_new();
	test_grammar();
	test_faults();
	test_bounds();
	test_valid();
	test_invalid();
	test_evaluate();
	test_mentions();
	arena_free(arena);
	return CHECK_DONE();
}

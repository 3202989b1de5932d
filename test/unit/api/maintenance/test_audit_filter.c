/* What filters of the audit log make the databases record. */
#include "api/maintenance/audit_filter.h"

#include "check.h"

static struct arena *arena;

static const char *classes(const char *text, const char *user, bool successes)
{
	const char *fault;
	const json_t *filter = filter_parse(str_of(text), arena, &fault);
	CHECK(filter);
	return audit_filter_classes(filter, user, successes, arena).p;
}

static bool is(const char *text, const char *user, bool successes, const char *expected)
{
	const char *have = classes(text, user, successes);
	if (strcmp(have, expected) == 0)
		return true;
	fprintf(stderr, "%s for %s: \"%s\" instead of \"%s\"\n", text, user ? user : "others", have, expected);
	return false;
}

static void test_actions(void)
{
	CHECK(is("", NULL, true, "read, write, function, misc, ddl, role"));
	CHECK(is("{}", NULL, false, "ddl, role"));
	CHECK(is("{\"atype\": \"createCollection\"}", NULL, true, "ddl"));
	CHECK(is("{\"atype\": {\"$in\": [\"createUser\", \"dropIndex\"]}}", NULL, true, "ddl, role"));
	CHECK(is("{\"atype\": {\"$nin\": [\"authCheck\"]}}", NULL, true, "ddl, role"));
	CHECK(is("{\"atype\": {\"$not\": {\"$eq\": \"authCheck\"}}}", NULL, true, "ddl, role"));
	CHECK(is("{\"atype\": \"authenticate\"}", NULL, true, ""));
	CHECK(is("{\"atype\": \"authCheck\", \"param.command\": \"find\"}", NULL, true, "read"));
	CHECK(is("{\"atype\": \"authCheck\", \"param.command\": \"find\"}", NULL, false, ""));
	CHECK(is("{\"param.command\": {\"$in\": [\"insert\", \"find\"]}}", NULL, true, "read, write"));
	CHECK(is("{\"$or\": [{\"atype\": \"dropUser\"}, {\"atype\": \"dropIndex\"}]}", NULL, true, "ddl, role"));
	CHECK(is("{\"$and\": [{\"atype\": \"dropUser\"}, {\"atype\": \"dropIndex\"}]}", NULL, true, ""));
	CHECK(is("{\"$nor\": [{\"atype\": \"authCheck\"}, {\"atype\": {\"$exists\": false}}]}", NULL, true,
	         "ddl, role"));
	/* Other records have no command, which is not to find either. */
	CHECK(is("{\"param.command\": {\"$ne\": \"find\"}}", NULL, true, "read, write, function, misc, ddl, role"));
	CHECK(is("{\"param.command\": {\"$nin\": [\"eval\"]}}", NULL, true, "read, write, misc, ddl, role"));
	CHECK(is("{\"param.command\": {\"$exists\": false}}", NULL, true, "ddl, role"));
	CHECK(is("{\"param.command\": {\"$exists\": 0}}", NULL, true, "ddl, role"));
	CHECK(is("{\"param.command\": {\"$not\": {\"$in\": [\"eval\"]}}}", NULL, true, "read, write, misc, ddl, role"));
	CHECK(is("{\"param.command\": null}", NULL, true, "ddl, role"));
	/* What cannot be known before is recorded. */
	CHECK(is("{\"atype\": \"dropUser\", \"param.db\": \"shop\", \"result\": 0}", NULL, true, "role"));
	CHECK(is("{\"atype\": \"dropUser\", \"param.db\": {\"$ne\": \"shop\"}}", NULL, true, "role"));
}

static void test_users(void)
{
	const char *one = "{\"users.user\": \"ann\"}",
	           *element = "{\"users\": {\"$elemMatch\": {\"user\": \"ann\", \"db\": \"admin\"}}}";
	const char *either = "{\"users\": {\"$elemMatch\": {\"$or\": [{\"user\": \"ann\"}, {\"user\": \"bob\"}]}}}";
	const char *builder =
	        "{\"$or\": [{\"users\": []}, {\"$and\": [{\"users\": {\"$elemMatch\": {\"user\": \"ann\"}}}, "
	        "{\"atype\": {\"$in\": [\"createUser\"]}}]}]}";
	CHECK(is(one, "ann", false, "ddl, role") && is(one, "bob", false, "") && is(one, NULL, false, ""));
	CHECK(is(element, "ann", false, "ddl, role") && is(element, "bob", false, ""));
	CHECK(is(either, "bob", false, "ddl, role") && is(either, "eve", false, "") && is(either, NULL, false, ""));
	CHECK(is(builder, "ann", true, "role") && is(builder, NULL, true, ""));
	CHECK(is("{\"users.user\": {\"$ne\": \"ann\"}}", "ann", false, "") &&
	      is("{\"users.user\": {\"$ne\": \"ann\"}}", NULL, false, "ddl, role"));
	CHECK(is("{\"users\": {\"$elemMatch\": {\"db\": \"admin\"}}}", NULL, false, "ddl, role"));
}

static bool logins(const char *text, bool denials)
{
	const char *fault;
	const json_t *filter = filter_parse(str_of(text), arena, &fault);
	return denials ? audit_filter_has_denials(filter) : audit_filter_has_logins(filter);
}

static void test_lines(void)
{
	CHECK(logins("", false) && logins("", true));
	CHECK(logins("{\"atype\": \"authenticate\", \"param.user\": \"ann\"}", false));
	CHECK(logins("{\"atype\": \"logout\", \"users.user\": \"ann\"}", false));
	CHECK(!logins("{\"atype\": \"createUser\"}", false) && !logins("{\"atype\": \"createUser\"}", true));
	CHECK(logins("{\"$and\": [{\"atype\": \"authCheck\"}, {\"users\": {\"$elemMatch\": {\"user\": \"a\"}}}]}",
	             true));
	CHECK(logins("{\"param.command\": \"insert\", \"atype\": \"authCheck\"}", true));
}

int main(void)
{
	arena = arena_new();
	test_actions();
	test_users();
	test_lines();
	arena_free(arena);
	return CHECK_DONE();
}

/* From names of users to entries of a directory. */
#include "directory/ldap_mapping.h"

#include "base/buf.h"
#include "base/json.h"

#include "check.h"

static struct arena *arena;

static json_t *rules_of(const char *text)
{
	json_t *rules = json_loads(text, 0, NULL);
	CHECK(rules);
	return rules;
}

/* What a user becomes; "" for nobody. */
static const char *entry(const char *text, const char *user)
{
	struct faults faults = {.count = 0};
	struct str dn, query;
	json_t *rules = rules_of(text);
	ldap_mapping_check(rules, STR("m"), arena, &faults);
	CHECK(!faults.count);
	ldap_mapping_apply(rules, str_of(user), arena, &dn, &query);
	json_decref(rules);
	CHECK(!dn.p || !query.p);
	return dn.p ? dn.p : query.p ? query.p : "";
}

static bool is(const char *rules, const char *user, const char *expected)
{
	const char *have = entry(rules, user);
	if (strcmp(have, expected) == 0)
		return true;
	fprintf(stderr, "%s by %s: \"%s\" instead of \"%s\"\n", user, rules, have, expected);
	return false;
}

static void test_apply(void)
{
	const char *people = "[{\"match\": \"(.+)\", \"substitution\": \"uid={0},dc=x\"}]";
	const char *two = "[{\"match\": \"(.+)@(.+)\", \"substitution\": \"uid={0},dc={1}\"},"
	                  " {\"match\": \"[a-z]+\", \"substitution\": \"cn=fixed\"}]";
	const char *query = "[{\"match\": \"(.+)\", \"ldapQuery\": \"/ou={0}?cn?sub?(uid={0})\"}]";
	CHECK(is("[]", "uid=ann,dc=x", "uid=ann,dc=x"));
	CHECK(is(people, "ann", "uid=ann,dc=x"));
	CHECK(is(two, "ann@x", "uid=ann,dc=x") && is(two, "ann", "cn=fixed") && is(two, "ann1", ""));
	/* A name stays a name. */
	CHECK(is(people, "a,dc=y", "uid=a\\2Cdc\\3Dy,dc=x"));
	CHECK(is(people, "{0}", "uid={0},dc=x"));
	CHECK(is(query, "ann", "ou=ann??sub?(uid=ann)"));
	CHECK(is(query, "a)(b=*", "ou=a)(b\\3D*??sub?(uid=a\\29\\28b=\\2A)"));
	CHECK(is(query, "a?b", "ou=a\\3Fb??sub?(uid=a?b)"));
	CHECK(is("[{\"match\": \"(a)|(b)\", \"substitution\": \"x={0}{1}\"}]", "b", "x=b"));
	/* An empty entry would be anonymous: it is nobody. So is one that is too long. */
	CHECK(is("[{\"match\": \"a(b)?\", \"substitution\": \"{0}\"}]", "a", ""));
	CHECK(is("[{\"match\": \"a(b)?\", \"ldapQuery\": \"{0}??sub\"}]", "a", ""));
	struct buf many = {0};
	buf_z(&many, "[{\"match\": \"(.+)\", \"substitution\": \"");
	for (int i = 0; i < 300; i++)
		buf_z(&many, "{0}");
	buf_z(&many, "\"}]");
	buf_c(&many, 0);
	CHECK(is(many.p, "long-enough", ""));
	buf_free(&many);
	/* A pattern that backtracks badly matches nobody, and soon. */
	CHECK(is("[{\"match\": \"(a+)+b\", \"substitution\": \"x\"}]", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ""));
}

static void test_query(void)
{
	struct ldap_query q;
	CHECK(ldap_query_parse(STR("dc=x"), &q) && str_is(q.scope, "base") && str_is(q.filter, "(objectClass=*)"));
	CHECK(ldap_query_parse(STR("dc=x?cn?one?(a=?)"), &q) && str_is(q.attributes, "cn") &&
	      str_is(q.filter, "(a=?)"));
	CHECK(!ldap_query_parse(STR(""), &q) && !ldap_query_parse(STR("?cn"), &q) && !ldap_query_parse(STR("/"), &q));
	CHECK(!ldap_query_parse(STR("dc=x?cn?some"), &q) && !ldap_query_parse(STR("dc=x??sub?a=b"), &q));
}

static void test_check(void)
{
	static const char *const bad[] = {"[{\"match\": \"\", \"substitution\": \"x\"}]",
	                                  "[{\"match\": \"(\", \"substitution\": \"x\"}]",
	                                  "[{\"match\": \"a\"}]",
	                                  "[{\"match\": \"a\", \"substitution\": \"\"}]",
	                                  "[{\"match\": \"a\", \"substitution\": \"{0}\"}]",
	                                  "[{\"match\": \"(a)\", \"substitution\": \"{1}\"}]",
	                                  "[{\"match\": \"(a)\", \"substitution\": \"a\\nb\"}]",
	                                  "[{\"match\": \"(a)\", \"ldapQuery\": \"dc=x??sub?uid\"}]"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct faults faults = {.count = 0};
		json_t *rules = rules_of(bad[i]);
		ldap_mapping_check(rules, STR("m"), arena, &faults);
		CHECK(faults.count == 1);
		json_decref(rules);
	}
}

int main(void)
{
	arena = arena_new();
	test_apply();
	test_query();
	test_check();
	arena_free(arena);
	return CHECK_DONE();
}

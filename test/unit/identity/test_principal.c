/* Callers: roles from documents, membership in scopes, access lists, role and bucket gates. */
#include "gate_fixture.h"

#include <errno.h>

#define USER "000000000000000000000051"
#define FEDERATION "000000000000000000000061"

static role_mask role(const char *name)
{
	int i = role_find(str_of(name));
	CHECK(i >= 0);
	return i < 0 ? 0 : (role_mask)1 << i;
}

static struct principal *load(enum principal_kind kind, const char *id)
{
	struct principal *p = NULL;
	CHECK(principal_load(fx.loop.reader, kind, str_of(id), &p) == 0);
	return p;
}

static void test_load(void)
{
	struct principal *p = load(PRINCIPAL_API_KEY, KEY);
	CHECK(strcmp(p->name, "publickey") == 0 && strcmp(p->org_id, ORG) == 0 && p->grant_count == 2);
	CHECK(principal_org_roles(p, STR(ORG)) == role("ORG_MEMBER") && !principal_org_roles(p, STR(OTHER_ORG)));
	role_mask roles = principal_group_roles(p, STR(ORG), STR(GROUP));
	CHECK((roles & role("GROUP_CLUSTER_MANAGER")) && (roles & role("GROUP_READ_ONLY")) &&
	      !(roles & role("GROUP_OWNER")));
	CHECK(!principal_group_roles(p, STR(OTHER_ORG), STR(OTHER_GROUP)) && !principal_org_roles(p, STR_NONE));
	principal_unref(principal_ref(p));
	principal_unref(p);
	p = load(PRINCIPAL_SERVICE_ACCOUNT, ACCOUNT);
	CHECK(principal_org_roles(p, STR(ORG)) == (role("ORG_READ_ONLY") | role("ORG_MEMBER")));
	CHECK(principal_group_roles(p, STR(ORG), STR(GROUP)) & role("GROUP_OWNER"));
	/* Roles that an organization role gives in every project. */
	CHECK(principal_group_roles(p, STR(ORG), STR(OTHER_GROUP)) == role("GROUP_READ_ONLY"));
	principal_unref(p);
	struct principal *none = NULL;
	CHECK(principal_load(fx.loop.reader, PRINCIPAL_API_KEY, STR(ACCOUNT), &none) == -ENOENT && !none);
	CHECK(principal_load(fx.loop.reader, PRINCIPAL_USER, STR("x"), &none) == -ENOENT);
	principal_unref(NULL);
}

static void test_teams(void)
{
	static const char team[] = "000000000000000000000071";
	fixture_put("user", "000000000000000000000053", "", "", "{\"username\":\"w\"}");
	fixture_grant(GRANTEE_TEAM, team, false, GROUP, "[\"GROUP_CLUSTER_MANAGER\"]");
	struct principal *p = load(PRINCIPAL_USER, "000000000000000000000053");
	CHECK(!principal_group_roles(p, STR(ORG), STR(GROUP)));
	principal_unref(p);
	fixture_put("user_team", "000000000000000000000072", "000000000000000000000053", team, "{}");
	p = load(PRINCIPAL_USER, "000000000000000000000053");
	CHECK(principal_group_roles(p, STR(ORG), STR(GROUP)) & role("GROUP_CLUSTER_MANAGER"));
	principal_unref(p);
	/* After the user left the team, the next snapshot has none of its roles. */
	fixture_delete("user_team", "000000000000000000000072");
	p = load(PRINCIPAL_USER, "000000000000000000000053");
	CHECK(!principal_group_roles(p, STR(ORG), STR(GROUP)));
	principal_unref(p);
}

static void test_odd_roles(void)
{
	fixture_put("user", USER, "", "", "{\"id\":\"" USER "\",\"username\":\"u@example.com\"}");
	fixture_grant(GRANTEE_USER, USER, true, ORG, "[\"ORG_OWNER\"]");
	/* No role, or a role of the other kind of scope, gives nothing. */
	fixture_grant(GRANTEE_USER, USER, true, OTHER_ORG, "[\"NONSENSE\", \"GROUP_OWNER\", 7]");
	fixture_grant(GRANTEE_USER, USER, false, OTHER_GROUP, "[\"ORG_OWNER\"]");
	struct principal *p = load(PRINCIPAL_USER, USER);
	CHECK(p->org_id[0] == '\0' && p->grant_count == 1 && strcmp(p->name, "u@example.com") == 0);
	CHECK(principal_org_roles(p, STR(ORG)) & role("ORG_BILLING_READ_ONLY"));
	CHECK(principal_group_roles(p, STR(ORG), STR(GROUP)) & role("GROUP_OWNER"));
	CHECK(!principal_group_roles(p, STR(OTHER_ORG), STR(OTHER_GROUP)));
	principal_unref(p);
}

static bool permits(const struct principal *p, const char *address)
{
	struct ip ip;
	return ip_parse(str_of(address), &ip) && access_list_permits(p, &ip);
}

static void test_access_list(void)
{
	struct principal *p = load(PRINCIPAL_API_KEY, KEY);
	CHECK(permits(p, "192.0.2.1"));
	principal_unref(p);
	fixture_put("org_settings", ORG, ORG, "", "{\"apiAccessListRequired\":true}");
	p = load(PRINCIPAL_API_KEY, KEY);
	CHECK(!permits(p, "192.0.2.1") && p->access_required);
	principal_unref(p);
	fixture_put("api_access", "000000000000000000000071", KEY, "192.0.2.0/28", "{}");
	fixture_put("api_access", "000000000000000000000072", KEY, "2001:db8::/32", "{}");
	p = load(PRINCIPAL_API_KEY, KEY);
	CHECK(permits(p, "192.0.2.1") && permits(p, "2001:db8::9") && !permits(p, "192.0.2.16") && !permits(p, "::1"));
	struct call *c = fixture_call(NULL, "GET", "/", NULL);
	c->caller = p;
	CHECK(gate_access_list(c) == 0);
	CHECK(ip_parse(STR("203.0.113.5"), &c->request->peer));
	CHECK(gate_access_list(c) == -403 && strcmp(c->problem.code, "IP_ADDRESS_NOT_ON_ACCESS_LIST") == 0);
	CHECK(str_is(c->problem.parameters, "[\"203.0.113.5\"]"));
	c = fixture_call(NULL, "GET", "/", NULL);
	CHECK(gate_access_list(c) == 0); /* public */
	principal_unref(p);
	fixture_put("api_access", "000000000000000000000073", ACCOUNT, "nonsense", "{}");
	fixture_delete("org_settings", ORG);
	p = load(PRINCIPAL_SERVICE_ACCOUNT, ACCOUNT);
	CHECK(!permits(p, "192.0.2.1")); /* a list that cannot be read opens nothing */
	principal_unref(p);
}

static int member(enum tenant tenant, struct principal *caller, const char *first, const char *second,
                  struct call **ret_call)
{
	static const struct param group[] = {{.name = "groupId"}}, org[] = {{.name = "orgId"}},
	                          federation[] = {{.name = "federationSettingsId"}, {.name = "orgId"}};
	struct op *op = arena_new_of(fx.arena, struct op);
	op->id = "x";
	op->tenant = tenant;
	op->path_params = tenant == TENANT_GROUP ? group : tenant == TENANT_ORG ? org : federation;
	op->path_param_count = (unsigned char)((first ? 1 : 0) + (second ? 1 : 0));
	struct call *c = fixture_call(op, "GET", "/api/svc/v2/scope", NULL);
	c->params[0] = str_of(first);
	c->params[1] = str_of(second);
	c->caller = caller;
	if (ret_call)
		*ret_call = c;
	return gate_membership(c);
}

static void test_membership(void)
{
	struct principal *key = load(PRINCIPAL_API_KEY, KEY), *account = load(PRINCIPAL_SERVICE_ACCOUNT, ACCOUNT);
	struct call *c;
	CHECK(member(TENANT_GROUP, key, GROUP, NULL, &c) == 0);
	CHECK(str_is(c->group.id, GROUP) && str_is(c->org.id, ORG));
	CHECK((c->roles & role("ORG_MEMBER")) && (c->roles & role("GROUP_CLUSTER_MANAGER")));
	CHECK(member(TENANT_GROUP, key, OTHER_GROUP, NULL, &c) == -401);
	CHECK(strcmp(c->problem.code, "USER_UNAUTHORIZED") == 0 && c->problem.parameters.n == 0);
	CHECK(!memmem(c->problem.detail.p, c->problem.detail.n, OTHER_GROUP, 24) &&
	      fixture_header(c, "www-authenticate", 0).n);
	CHECK(member(TENANT_GROUP, key, "00000000000000000000ffff", NULL, NULL) == -404);
	CHECK(member(TENANT_GROUP, key, "not-an-id", NULL, NULL) == -404);
	CHECK(member(TENANT_GROUP, key, "", NULL, NULL) == -404);
	CHECK(member(TENANT_ORG, key, ORG, NULL, &c) == 0 && c->roles == role("ORG_MEMBER"));
	CHECK(member(TENANT_ORG, key, OTHER_ORG, NULL, NULL) == -401);
	CHECK(member(TENANT_ORG, key, GROUP, NULL, NULL) == -404);
	CHECK(member(TENANT_NONE, account, NULL, NULL, &c) == 0 && (c->roles & role("GROUP_OWNER")));
	CHECK(member(TENANT_PUBLIC, NULL, NULL, NULL, &c) == 0 && c->roles == 0);
	/* A role in one project does not make a member of its organization. */
	fixture_put("user", "000000000000000000000052", "", "", "{\"username\":\"v\"}");
	fixture_grant(GRANTEE_USER, "000000000000000000000052", false, GROUP, "[\"GROUP_OWNER\"]");
	struct principal *user = load(PRINCIPAL_USER, "000000000000000000000052");
	CHECK(member(TENANT_ORG, user, ORG, NULL, NULL) == -401);
	CHECK(member(TENANT_GROUP, user, GROUP, NULL, &c) == 0 && !(c->roles & role_org_mask));
	fixture_put("federation", FEDERATION, "", "", "{\"id\":\"" FEDERATION "\",\"orgIds\":[\"" ORG "\"]}");
	CHECK(member(TENANT_FEDERATION, key, FEDERATION, NULL, &c) == 0 && c->roles == role("ORG_MEMBER"));
	CHECK(member(TENANT_FEDERATION, user, FEDERATION, NULL, NULL) == -401);
	CHECK(member(TENANT_FEDERATION, user, ORG, NULL, NULL) == -404);
	CHECK(member(TENANT_FEDERATION, key, FEDERATION, ORG, &c) == 0 && str_is(c->org.id, ORG));
	CHECK(member(TENANT_FEDERATION, key, FEDERATION, OTHER_ORG, NULL) == -404);
	CHECK(member(TENANT_FEDERATION, key, FEDERATION, GROUP, NULL) == -404);
	CHECK(member(TENANT_FEDERATION, user, FEDERATION, ORG, NULL) == -401);
	principal_unref(key);
	principal_unref(account);
	principal_unref(user);
}

static void test_roles(void)
{
	struct op op = {.id = "x", .tenant = TENANT_GROUP, .roles = role("GROUP_OWNER") | role("ORG_OWNER")};
	struct call *c = fixture_call(&op, "GET", "/", NULL);
	c->roles = role("GROUP_OWNER") | role("GROUP_READ_ONLY");
	CHECK(gate_roles(c) == 0);
	c->roles = role("GROUP_READ_ONLY");
	CHECK(gate_roles(c) == -403 && strcmp(c->problem.code, "INSUFFICIENT_ROLE") == 0);
	CHECK(str_is(c->problem.parameters, "[\"ORG_OWNER\",\"GROUP_OWNER\"]"));
	CHECK(str_is(c->problem.detail,
	             "This needs one of the roles ORG_OWNER, GROUP_OWNER, or one that includes it."));
	op.open_to_all = true;
	c = fixture_call(&op, "GET", "/", NULL);
	CHECK(gate_roles(c) == 0);
}

static void test_bucket(void)
{
	static const struct bucket_set
	        set = {.id = "S", .scope = SCOPE_GROUP, .capacity = 2, .refill = 1, .seconds = 60},
	        by_ip = {.id = "I", .scope = SCOPE_IP, .capacity = 2, .refill = 1, .seconds = 60};
	static const struct op op = {.id = "x", .set = &set}, open = {.id = "y", .set = &by_ip};
	struct call *c;
	for (int i = 0; i < 2; i++) {
		c = fixture_call(&op, "GET", "/api/svc/v2/groups/a%22b?x=y", NULL);
		c->group.id = STR(GROUP);
		CHECK(gate_bucket(c) == 0 && c->limited && str_is(fixture_header(c, "ratelimit-limit", 0), "2"));
		CHECK(str_is(fixture_header(c, "ratelimit-remaining", 0), i ? "0" : "1"));
		CHECK(!fixture_header(c, "retry-after", 0).n);
	}
	clock_advance_ms(17200);
	c = fixture_call(&op, "GET", "/api/svc/v2/groups/a%22b?x=y", NULL);
	c->group.id = STR(GROUP);
	CHECK(gate_bucket(c) == -429 && str_is(fixture_header(c, "retry-after", 0), "43"));
	CHECK(str_is(fixture_header(c, "ratelimit-remaining", 0), "0"));
	CHECK(str_is(c->problem.detail,
	             "Rate limit exceeded for /api/svc/v2/groups/a%22b. Please retry after 43 seconds. "
	             "Request capacity: 2. Refill rate: 1 per 60 seconds."));
	CHECK(str_is(c->problem.parameters, "[\"/api/svc/v2/groups/a%22b\",43,2,1,60]"));
	c = fixture_call(&op, "GET", "/", NULL);
	c->group.id = STR(GROUP);
	c->v1 = true;
	CHECK(gate_bucket(c) == 0 && !c->limited && !c->extra_header_count);
	static const char *const peers[] = {"2001:db8::1", "2001:db8::2:3", "2001:db8::ffff"};
	for (int i = 0; i < 3; i++) {
		c = fixture_call(&open, "GET", "/", NULL);
		CHECK(ip_parse(str_of(peers[i]), &c->request->peer));
		CHECK(gate_bucket(c) == (i < 2 ? 0 : -429));
	}
	char text[IP_TEXT];
	bucket_address(&c->request->peer, text);
	CHECK(strcmp(text, "2001:db8::/64") == 0);
	clock_reset();
}

int main(void)
{
	log_setup(LOG_ERROR, false);
	fixture_setup();
	test_load();
	test_odd_roles();
	test_teams();
	test_membership();
	test_roles();
	test_bucket();
	test_access_list();
	fixture_teardown();
	return CHECK_DONE();
}

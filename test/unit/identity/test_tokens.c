/* Bearer tokens: form, signature, time, revocation, and that the cache never outlives a change. */
#include "gate_fixture.h"

#include "base/base64.h"

#include <errno.h>

static struct str issue(int64_t seconds)
{
	return token_issue(fx.arena, STR(ACCOUNT), STR(SECRET), clock_now_ms() + seconds * 1000);
}

static int caller_of(struct str text)
{
	struct principal *p = NULL;
	int r = token_caller(&fx.service, fx.loop.tokens, fx.loop.reader, text, &p);
	CHECK((r == 0) == (p != NULL));
	if (p)
		CHECK(strcmp(p->id, ACCOUNT) == 0 && p->kind == PRINCIPAL_SERVICE_ACCOUNT);
	principal_unref(p);
	return r;
}

static void test_base64(void)
{
	for (size_t n = 0; n < 40; n++) {
		unsigned char raw[40], back[40];
		char text[BASE64_TEXT(40)];
		random_bytes(raw, n);
		base64url_encode(raw, n, text);
		CHECK(strlen(text) + 1 == BASE64_TEXT(n));
		CHECK(base64_decode(str_of(text), back, sizeof back) == (ssize_t)n && memcmp(raw, back, n) == 0);
		CHECK(n == 0 || base64_decode(str_of(text), back, n - 1) < 0);
	}
	char out[8];
	CHECK(base64_decode(STR("YQ=="), out, 8) == 1 && out[0] == 'a');
	CHECK(base64_decode(STR("YWI="), out, 8) == 2 && base64_decode(STR("YWI"), out, 8) == 2);
	CHECK(base64_decode(STR("++//"), out, 8) == 3 && base64_decode(STR("--__"), out, 8) == 3);
	CHECK(base64_decode(STR("YR=="), out, 8) < 0); /* bits left over */
	CHECK(base64_decode(STR("Y"), out, 8) < 0 && base64_decode(STR("Y==="), out, 8) < 0);
	CHECK(base64_decode(STR("YQ==="), out, 8) < 0 && base64_decode(STR("Y Q="), out, 8) < 0);
}

static void test_form(void)
{
	struct token t;
	struct str text = issue(10);
	CHECK(str_starts(text, STR("stw_")) && token_parse(text, &t));
	CHECK(str_is(id_str(&t.account_id), ACCOUNT) && str_is(id_str(&t.secret_id), SECRET));
	CHECK(id_is_valid(id_str(&t.unique)) && t.expires_ms == clock_now_ms() + 10000);
	for (size_t i = 0; i < text.n; i++) {
		char *bent = arena_z(fx.arena, text);
		bent[i] = bent[i] == 'A' ? 'B' : 'A';
		CHECK(!token_parse((struct str){bent, text.n}, &t));
		CHECK(!token_parse((struct str){text.p, i}, &t));
	}
	CHECK(!token_parse(STR_NONE, &t) && token_issue(fx.arena, STR("x"), STR(SECRET), 1).n == 0);
	for (const char *p = text.p; p < text.p + text.n; p++)
		CHECK((*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || *p == '-' ||
		      *p == '_');
}

static void test_time(void)
{
	struct str text = issue(100);
	CHECK(caller_of(text) == 0 && caller_of(text) == 0);
	clock_advance_ms(99999);
	CHECK(caller_of(text) == 0);
	clock_advance_ms(1);
	CHECK(caller_of(text) == -EACCES); /* was in the cache */
	CHECK(caller_of(issue(0)) == -EACCES);
	clock_reset();
}

static void test_hit_reads_nothing(void)
{
	struct store_stats before, after;
	struct str text = issue(100);
	CHECK(caller_of(text) == 0);
	store_stats(fx.service.store, &before);
	for (int i = 0; i < 100; i++)
		CHECK(caller_of(text) == 0);
	store_stats(fx.service.store, &after);
	CHECK(before.reads == after.reads);
}

static void test_revoked(void)
{
	struct str one = issue(100), two = issue(100);
	struct token t;
	CHECK(caller_of(one) == 0 && caller_of(two) == 0 && token_parse(one, &t));
	fixture_put("token_revoked", t.unique.z, "", "", "{\"expiresAtMs\":1}");
	CHECK(caller_of(one) == -EACCES && caller_of(two) == 0);
}

/* A call that began before a revocation may still see the old state, but must not leave it in the cache. */
static void test_old_state_is_not_kept(void)
{
	struct str text = issue(100);
	struct token t;
	struct doc d;
	CHECK(token_parse(text, &t));
	tx_begin_read(fx.loop.reader);
	CHECK(tx_get(fx.loop.reader, fx.arena, "org", STR(ORG), &d) == 0);
	fixture_put("token_revoked", t.unique.z, "", "", "{\"expiresAtMs\":1}");
	CHECK(caller_of(text) == 0);
	tx_end_read(fx.loop.reader);
	CHECK(caller_of(text) == -EACCES);
}

static void test_changes(void)
{
	struct str text = issue(100);
	struct principal *p;
	char hash[65];
	CHECK(token_caller(&fx.service, fx.loop.tokens, fx.loop.reader, text, &p) == 0);
	CHECK(principal_org_roles(p, STR(ORG)) != 0);
	fixture_grant(GRANTEE_ACCOUNT, ACCOUNT, true, ORG, "[]");
	CHECK(principal_org_roles(p, STR(ORG)) != 0); /* a snapshot does not change during a call */
	principal_unref(p);
	CHECK(token_caller(&fx.service, fx.loop.tokens, fx.loop.reader, text, &p) == 0);
	CHECK(principal_org_roles(p, STR(ORG)) == 0);
	principal_unref(p);
	/* The secret expires before the token. */
	char body[128], expires[CLOCK_TEXT];
	clock_format(clock_now_ms() + 50000, expires);
	snprintf(body, sizeof body, "{\"expiresAt\":\"%s\"}", expires);
	sha256_hex(STR("client-secret"), hash);
	fixture_update("sa_secret", SECRET, "", body, str_of(hash));
	CHECK(caller_of(text) == 0);
	clock_advance_ms(50001);
	CHECK(caller_of(text) == -EACCES);
	clock_reset();
	fixture_update("sa_secret", SECRET, "", "{\"expiresAt\":\"nonsense\"}", str_of(hash));
	CHECK(caller_of(text) == -EACCES);
	fixture_update("sa_secret", SECRET, "", "{}", str_of(hash));
	CHECK(caller_of(text) == 0);
	CHECK(caller_of(token_issue(fx.arena, STR(KEY), STR(SECRET), clock_now_ms() + 1000)) == -EACCES);
	fixture_delete("sa_secret", SECRET);
	CHECK(caller_of(text) == -EACCES);
}

static void test_crowd(void)
{
	/* More tokens than slots: each is still right, and none is mistaken for another. */
	for (int i = 0; i < 5000; i++)
		CHECK(caller_of(issue(100)) == 0);
}

static void test_gate(void)
{
	static const struct op op = {.id = "x", .tenant = TENANT_NONE}, open = {.id = "y", .tenant = TENANT_PUBLIC};
	struct str text = issue(100);
	struct call *c = fixture_call(&op, "GET", "/api/svc/v2", "authorization",
	                              arena_printf(fx.arena, "Bearer %.*s", STR_ARG(text)).p, NULL);
	CHECK(gate_authenticate(c) == 0 && c->caller && c->extra_header_count == 0);
	principal_unref(c->caller);
	c = fixture_call(&op, "GET", "/api/svc/v2", "authorization", "bEARER stw_nonsense", NULL);
	CHECK(gate_authenticate(c) == -401 && !c->caller && strcmp(c->problem.code, "INVALID_TOKEN") == 0);
	CHECK(str_starts(fixture_header(c, "www-authenticate", 0), STR("Digest ")));
	CHECK(str_starts(fixture_header(c, "www-authenticate", 1), STR("Digest ")));
	CHECK(str_starts(fixture_header(c, "www-authenticate", 2), STR("Bearer ")));
	static const char *const wrong[] = {"",       "Bearer",  "Bearer ", "Basic YTpi",
	                                    "Digest", "Digest ", "x",       "Negotiate abc"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		c = fixture_call(&op, "GET", "/api/svc/v2", "authorization", wrong[i], NULL);
		CHECK(gate_authenticate(c) == -401 && c->problem.status == 401);
	}
	c = fixture_call(&op, "GET", "/api/svc/v2", NULL);
	CHECK(gate_authenticate(c) == -401 && strcmp(c->problem.code, "NOT_AUTHENTICATED") == 0);
	c = fixture_call(&op, "GET", "/", "authorization", arena_printf(fx.arena, "Bearer %.*s", STR_ARG(text)).p,
	                 "authorization", "Bearer x", NULL);
	CHECK(gate_authenticate(c) == -401);
	c = fixture_call(&open, "GET", "/", "authorization", "Bearer wrong", NULL);
	CHECK(gate_authenticate(c) == 0 && !c->caller);
}

int main(void)
{
	log_setup(LOG_ERROR, false);
	fixture_setup();
	test_base64();
	test_form();
	test_time();
	test_hit_reads_nothing();
	test_revoked();
	test_old_state_is_not_kept();
	test_crowd();
	test_gate();
	test_changes();
	fixture_teardown();
	return CHECK_DONE();
}

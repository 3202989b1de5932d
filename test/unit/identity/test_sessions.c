/* What signing in is made of: the codes of RFC 6238, cookies as browsers send them, tickets. */
#include "gate_fixture.h"

#include "base/json.h"
#include "identity/sessions.h"
#include "identity/tickets.h"
#include "identity/totp.h"

#include <errno.h>

/* RFC 6238, appendix B: the last six digits. */
static void test_codes(void)
{
	static const struct {
		uint64_t seconds;
		const char *code;
	} known[] = {{59, "287082"},         {1111111109, "081804"}, {1111111111, "050471"},
	             {1234567890, "005924"}, {2000000000, "279037"}, {20000000000, "353130"}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		char code[TOTP_DIGITS + 1];
		totp_code((const unsigned char *)"12345678901234567890", 20, known[i].seconds / TOTP_SECONDS, code);
		CHECK(strcmp(code, known[i].code) == 0);
	}
}

static struct str cookie_of(const char *one, const char *two)
{
	static struct header headers[3];
	headers[0] = (struct header){STR("cookie"), str_of(one)};
	headers[1] = (struct header){STR("x-cookie"), STR("a=no")};
	headers[2] = (struct header){STR("cookie"), str_of(two)};
	struct request r = {.headers = headers, .header_count = two ? 3 : 2};
	return request_cookie(&r, "a");
}

static void test_cookies(void)
{
	CHECK(str_is(cookie_of("a=b", NULL), "b"));
	CHECK(str_is(cookie_of("x=1; a=b=c;y=2", NULL), "b=c"));
	CHECK(str_is(cookie_of("x=1", "a=b"), "b")); /* HTTP/2 */
	CHECK(!cookie_of("a=b; a=c", NULL).n && !cookie_of("a=b", "a=c").n && !cookie_of("a=; a=b", NULL).n);
	CHECK(!cookie_of("", NULL).n && !cookie_of("aa=b; =a; a", NULL).n && !cookie_of("A=b", NULL).n);
}

static enum fetch_site site_of(const char *value, size_t count)
{
	struct header headers[2] = {{STR("sec-fetch-site"), str_of(value)}, {STR("sec-fetch-site"), str_of(value)}};
	struct request r = {.headers = headers, .header_count = count};
	return request_fetch_site(&r);
}

static void test_origin(void)
{
	CHECK(site_of("", 0) == FETCH_UNSAID);
	CHECK(site_of("same-origin", 1) == FETCH_SAME_ORIGIN);
	CHECK(site_of("same-origin", 2) == FETCH_OTHER);
	CHECK(site_of("same-site", 1) == FETCH_OTHER && site_of("cross-site", 1) == FETCH_OTHER);
	CHECK(site_of("none", 1) == FETCH_PERSON && site_of("none", 2) == FETCH_OTHER && site_of("", 1) == FETCH_OTHER);
	CHECK(site_of("Same-Origin", 1) == FETCH_OTHER && site_of("same-origin ", 1) == FETCH_OTHER);
}

static void test_tickets(void)
{
	struct ticket t;
	struct str text = ticket_issue(fx.arena, "code", STR(ACCOUNT), 60, json_pack("{s:s}", "a", "b"));
	CHECK(ticket_open(fx.arena, "code", text, &t) == 0);
	CHECK(str_is(t.user_id, ACCOUNT) && str_is(json_field(t.data, "a"), "b") && id_is_valid(t.id));
	CHECK(ticket_open(fx.arena, "reset", text, &t) == -EACCES);
	CHECK(ticket_open(fx.arena, "code", STR_NONE, &t) == -EACCES);
	for (size_t i = 0; i < text.n; i++) {
		char *bent = arena_z(fx.arena, text);
		bent[i] = bent[i] == 'A' ? 'B' : 'A';
		CHECK(ticket_open(fx.arena, "code", (struct str){bent, text.n}, &t) == -EACCES);
		CHECK(ticket_open(fx.arena, "code", (struct str){text.p, i}, &t) == -EACCES);
	}
	clock_advance_ms(60000);
	CHECK(ticket_open(fx.arena, "code", text, &t) == -EACCES);
}

static int session_begins(struct tx *tx, void *ctx)
{
	struct session *s = ctx;
	struct request r = {.headers = NULL};
	struct str cookie;
	return session_begin(tx, fx.arena, &fx.service, &r, STR(ACCOUNT), "password", false, s, &cookie);
}

static struct session session_new(int hours)
{
	struct session s = {.id = STR_NONE};
	fx.service.session_hours = hours;
	fx.service.session_idle_minutes = 24 * 60;
	CHECK(store_write_wait(fx.service.store, session_begins, &s) == 0);
	clock_advance_ms(1000);
	return s;
}

static int session_lives(struct tx *tx, void *ctx)
{
	struct session s;
	return session_look(tx, fx.arena, *(struct str *)ctx, &s);
}

static bool is_live(struct session *s)
{
	return store_write_wait(fx.service.store, session_lives, &s->id) == 0;
}

/* With too many, those that are over make room before the oldest that is not. */
static void test_bound(void)
{
	struct session first = session_new(20), second = session_new(20), over, last;
	for (int i = 2; i < SESSIONS_MAX; i++)
		over = session_new(1);
	CHECK(is_live(&first) && is_live(&over));
	clock_advance_ms(3600 * 1000);
	CHECK(!is_live(&over));
	last = session_new(20);
	CHECK(is_live(&first) && is_live(&second) && is_live(&last));
	for (int i = 3; i < SESSIONS_MAX; i++)
		session_new(20);
	CHECK(is_live(&first) && is_live(&second));
	session_new(20);
	CHECK(!is_live(&first) && is_live(&second) && is_live(&last));
}

/* Sessions that identity providers have begun end with their organization's stamp, not one by one. */

#define PERSON "000000000000000000000051"

struct federated {
	struct session session;
	const char *how;
};

static int federated_begins(struct tx *tx, void *ctx)
{
	struct federated *f = ctx;
	struct request r = {.headers = NULL};
	struct str cookie;
	return session_begin(tx, fx.arena, &fx.service, &r, STR(PERSON), f->how, true, &f->session, &cookie);
}

static struct session federated_new(const char *how)
{
	struct federated f = {.how = how};
	CHECK(store_write_wait(fx.service.store, federated_begins, &f) == 0);
	clock_advance_ms(1000);
	return f.session;
}

static int membership_set(struct tx *tx, void *ctx)
{
	return grant_set(tx, fx.arena, GRANTEE_USER, STR(PERSON), true, STR(ORG),
	                 *(bool *)ctx ? role_bit("ORG_MEMBER") : 0);
}

static int federated_end(struct tx *tx, void *ctx)
{
	return sessions_end_federated(tx, fx.arena, *(struct str *)ctx);
}

static void stamp_renew(struct str org_id)
{
	CHECK(store_write_wait(fx.service.store, federated_end, &org_id) == 0);
	clock_advance_ms(1000);
}

/* As an older release has written it. */
static int stamps_drop(struct tx *tx, void *ctx)
{
	struct doc d;
	int result = tx_get(tx, fx.arena, "user_session", *(struct str *)ctx, &d);
	if (result < 0)
		return result;
	json_t *body = doc_json(fx.arena, d.body);
	json_object_del(body, "stamps");
	d.body = json_text(fx.arena, body);
	return tx_update(tx, &d);
}

static void test_stamps(void)
{
	bool in = true, out = false;
	struct store *store = fx.service.store;
	CHECK(store_write_wait(store, membership_set, &in) == 0);
	struct session oidc = federated_new("oidc"), saml = federated_new("saml"), own = federated_new("password");
	struct session old = federated_new("oidc");
	CHECK(store_write_wait(store, stamps_drop, &old.id) == 0);
	stamp_renew(STR(OTHER_ORG));
	CHECK(is_live(&oidc) && is_live(&saml) && is_live(&own) && is_live(&old));
	stamp_renew(STR(ORG));
	CHECK(!is_live(&oidc) && !is_live(&saml) && is_live(&own) && !is_live(&old));
	struct session later = federated_new("oidc"), last = federated_new("oidc");
	CHECK(store_write_wait(store, stamps_drop, &later.id) == 0);
	CHECK(is_live(&later) && is_live(&last) && !is_live(&oidc));
	/* Who leaves the organization takes no session along that was over. */
	stamp_renew(STR(ORG));
	CHECK(store_write_wait(store, membership_set, &out) == 0);
	CHECK(!is_live(&last) && !is_live(&oidc));
}

int main(void)
{
	fixture_setup();
	test_codes();
	test_cookies();
	test_origin();
	test_tickets();
	test_bound();
	test_stamps();
	fixture_teardown();
	return CHECK_DONE();
}

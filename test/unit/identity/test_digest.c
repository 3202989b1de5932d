/* Digest authentication: the header's parser, nonces and their window, and whole calls as a client makes them. */
#include "gate_fixture.h"

#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>

static bool parse(const char *text, struct digest_header *ret_digest)
{
	/* On the heap and without a NUL: reading one byte too far is detected. */
	size_t n = strlen(text);
	char *copy = must_malloc(n ? n : 1);
	struct digest_header d;
	memcpy(copy, text, n);
	bool ok = digest_parse((struct str){copy, n}, fx.arena, &d);
	if (ok) {
		struct str *all = (struct str *)&d;
		for (size_t i = 0; i < 10; i++)
			all[i] = all[i].p ? arena_dup(fx.arena, all[i]) : STR_NONE;
		*ret_digest = d;
	}
	free(copy);
	return ok;
}

static void test_parse(void)
{
	struct digest_header d;
	CHECK(parse(
	        "Digest username=\"u\", realm=\"r\", nonce=\"n\", uri=\"/x?a=\\\"b\\\\\", response=\"00\", qop=auth, "
	        "nc=00000001, cnonce=\"c, d\", algorithm=\"MD5\", opaque=\"\"",
	        &d));
	CHECK(str_is(d.username, "u") && str_is(d.uri, "/x?a=\"b\\") && str_is(d.cnonce, "c, d") &&
	      str_is(d.qop, "auth"));
	CHECK(str_is(d.nc, "00000001") && str_is(d.algorithm, "MD5") && d.opaque.p && d.opaque.n == 0 &&
	      !d.username_hash);
	CHECK(parse("digest\tUSERNAME = u ,realm=r,,nonce=n, uri=\"/\",response=r,userhash=true,unknown=\"x\",", &d));
	CHECK(d.username_hash && str_is(d.username, "u") && !d.qop.p);
	CHECK(parse("Digest username=\"u\tv\",realm=\"r\",nonce=\"\",uri=\"/\xc3\xa9\",response=\"r\"", &d));
	CHECK(str_is(d.username, "u\tv") && d.nonce.p && d.nonce.n == 0 && str_is(d.uri, "/\xc3\xa9"));
	CHECK(parse(
	        "Digest Username=u,REALM=r,nOnCe=n,Uri=\"/\",rEsponse=r,QOP=auth,cNonce=c,Nc=1,unknown=x,usernamf=v",
	        &d));
	CHECK(str_is(d.username, "u") && str_is(d.nonce, "n") && str_is(d.cnonce, "c") && str_is(d.nc, "1") &&
	      str_is(d.qop, "auth") && !d.username_hash);
	static const char *const wrong[] = {
	        "",
	        "Digest",
	        "Digest ",
	        "Digestusername=u",
	        "Basic x",
	        "Digest username",
	        "Digest username=\"u",
	        "Digest username=\"u\\",
	        "Digest username=\"u\\\"",
	        "Digest username=u realm=r, nonce=n, uri=u, response=r",
	        "Digest username=u, realm=r, nonce=n, uri=u, response=r, nonce=n",
	        "Digest username=u, realm=r, nonce=n, uri=/x, response=r",
	        "Digest =u, realm=r, nonce=n, uri=u, response=r",
	        "Digest username=, realm=r, nonce=n, uri=u, response=r",
	        "Digest username=\"u\001\", realm=r, nonce=n, uri=u, response=r",
	        "Digest username=\"u\\\001\", realm=r, nonce=n, uri=u, response=r",
	        "Digest username=\"u\x7f\", realm=r, nonce=n, uri=u, response=r",
	        "Digest username=u, realm=r, nonce=n, uri=u, response=r, x=\"\x7f\"",
	        "Digest username=u, realm=r, nonce=n, uri=u, response=r, x=\"",
	        "Digest username=u, realm=r, nonce=n, uri=u, response=r, x=\"\\\"",
	        "Digest username=u, realm=r, nonce=n, uri=u, response=r, USERNAME=u",
	        "Digest username=u, realm=r, nonce=n, uri=u",
	        "Digest username=u, realm=r, nonce=n, uri=u, response=r; x=y",
	        "Digest username=\"u\"x, realm=r, nonce=n, uri=u, response=r",
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK(!parse(wrong[i], &d));
	struct buf many = {0};
	buf_z(&many, "Digest username=u, realm=r, nonce=n, uri=u, response=r");
	for (int i = 0; i < 40; i++)
		buf_printf(&many, ", x%d=y", i);
	CHECK(!digest_parse(buf_view(&many), fx.arena, &d));
	buf_free(&many);
}

static void test_ha1(void)
{
	char hex[65];
	digest_ha1(false, STR("u"), STR("p"), hex);
	CHECK(strlen(hex) == 32);
	digest_ha1(true, STR("u"), STR("p"), hex);
	CHECK(strlen(hex) == 64);
}

static void test_nonces(void)
{
	struct nonce_window *w = fx.service.nonces, *other = nonce_window_new();
	char nonce[NONCE_TEXT], second[NONCE_TEXT];
	nonce_issue(w, nonce);
	nonce_issue(w, second);
	CHECK(strcmp(nonce, second) != 0 && strlen(nonce) == NONCE_TEXT - 1);
	struct str n = str_of(nonce);
	CHECK(nonce_use(w, n, 1) && !nonce_use(w, n, 1) && !nonce_use(w, n, 0));
	CHECK(nonce_use(w, n, 5) && nonce_use(w, n, 3) && !nonce_use(w, n, 3) && nonce_use(w, n, 2) &&
	      nonce_use(w, n, 4));
	CHECK(nonce_use(w, n, 100) && !nonce_use(w, n, 36) && nonce_use(w, n, 37) && !nonce_use(w, n, 37));
	CHECK(nonce_use(w, n, UINT32_MAX) && !nonce_use(w, n, UINT32_MAX) && nonce_use(w, n, UINT32_MAX - 63));
	CHECK(nonce_use(w, str_of(second), 7) && nonce_use(w, str_of(second), 1) && !nonce_use(w, str_of(second), 7));
	CHECK(!nonce_use(other, n, 200)); /* of another process */
	for (size_t i = 0; i < n.n; i++) {
		char *bent = arena_z(fx.arena, n);
		bent[i] = bent[i] == 'A' ? 'B' : 'A';
		CHECK(!nonce_use(w, (struct str){bent, n.n}, 300));
	}
	CHECK(!nonce_use(w, STR_NONE, 1) && !nonce_use(w, (struct str){nonce, n.n - 1}, 1));
	nonce_issue(w, nonce);
	clock_advance_ms(299999);
	CHECK(nonce_use(w, n, 1));
	clock_advance_ms(1);
	CHECK(!nonce_use(w, n, 2));
	/* A later nonce has taken over the slot, so the earlier one counts as used up. */
	nonce_issue(w, nonce);
	CHECK(nonce_use(w, n, 1));
	for (int i = 0; i < 65536; i++)
		nonce_issue(w, second);
	CHECK(nonce_use(w, n, 2)); /* issuing alone takes no slot */
	CHECK(nonce_use(w, str_of(second), 1) && !nonce_use(w, n, 3));
	nonce_window_free(other);
	clock_reset();
}

struct race {
	char nonce[NONCE_TEXT];
	atomic_int good;
};

static void *race_run(void *arg)
{
	struct race *r = arg;
	for (uint32_t i = 1; i <= 1000; i++)
		r->good += nonce_use(fx.service.nonces, str_of(r->nonce), i);
	return NULL;
}

static void test_race(void)
{
	struct race r = {.good = 0};
	pthread_t threads[4];
	nonce_issue(fx.service.nonces, r.nonce);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, race_run, &r);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK(r.good >= 1 && r.good <= 1000 && !nonce_use(fx.service.nonces, str_of(r.nonce), 1000));
}

static void hash(bool sha256, struct str text, char ret_hex[65])
{
	unsigned char raw[EVP_MAX_MD_SIZE];
	unsigned n;
	CHECK(EVP_Digest(text.p, text.n, raw, &n, sha256 ? EVP_sha256() : EVP_md5(), NULL));
	hex_encode(raw, n, ret_hex);
}

static const char *private_key = "private-key";

struct attempt {
	const char *user, *password, *uri, *nc, *algorithm, *qop, *nonce, *realm, *cnonce;
	const char *method, *target;            /* of the request */
	const char *hashed_method, *hashed_uri; /* what the response is for, where it is not the request */
	bool sha256, count_first;
	size_t spoiled; /* the byte of the header that is another; 0: none */
};

static size_t header_n; /* of the last attempt */

static struct call *attempt(struct attempt t)
{
	static const struct op op = {.id = "x", .tenant = TENANT_NONE};
	char ha1[65], ha2[65], response[65], fresh[NONCE_TEXT];
	const char *target = t.target ? t.target : "/api/svc/v2/groups?pageNum=1", *qop = t.qop ? t.qop : "auth";
	const char *method = t.method ? t.method : "GET", *cnonce = t.cnonce ? t.cnonce : "cn";
	const char *user = t.user ? t.user : "publickey", *nc = t.nc ? t.nc : "00000001";
	nonce_issue(fx.service.nonces, fresh);
	const char *nonce = t.nonce ? t.nonce : fresh, *uri = t.uri ? t.uri : target;
	digest_ha1(t.sha256, str_of(user), str_of(t.password ? t.password : private_key), ha1);
	hash(t.sha256,
	     arena_printf(fx.arena, "%s:%s", t.hashed_method ? t.hashed_method : method,
	                  t.hashed_uri ? t.hashed_uri : uri),
	     ha2);
	hash(t.sha256, arena_printf(fx.arena, "%s:%s:%s:%s:%s:%s", ha1, nonce, nc, cnonce, qop, ha2), response);
	struct str proof = arena_printf(fx.arena, "response=\"%s\", ", response);
	struct str header = arena_printf(
	        fx.arena,
	        "Digest username=\"%s\", realm=\"%s\", nonce=\"%s\", uri=\"%s\", %sqop=%s, nc=%s, %scnonce=\"%s\"%s%s",
	        user, t.realm ? t.realm : DIGEST_REALM, nonce, uri, t.count_first ? "" : proof.p, qop, nc,
	        t.count_first ? proof.p : "", cnonce, t.algorithm ? ", algorithm=" : "",
	        t.algorithm ? t.algorithm : "");
	char *text = arena_z(fx.arena, header);
	header_n = header.n;
	if (t.spoiled)
		text[t.spoiled] = '!';
	return fixture_call(&op, method, target, "authorization", text, NULL);
}

/* 0 or the status, with "stale" added as 1000. */
static int outcome(struct call *c)
{
	int r = gate_authenticate(c);
	if (r == 0) {
		CHECK(strcmp(c->caller->id, KEY) == 0 && strcmp(c->caller->name, "publickey") == 0);
		principal_unref(c->caller);
		return 0;
	}
	struct str challenge = fixture_header(c, "www-authenticate", 0);
	CHECK(c->problem.status == 401 && challenge.n && !c->caller);
	return -r + (memmem(challenge.p, challenge.n, "stale=true", 10) ? 1000 : 0);
}

static void test_calls(void)
{
	char nonce[NONCE_TEXT], old[NONCE_TEXT];
	CHECK(outcome(attempt((struct attempt){0})) == 0);
	CHECK(outcome(attempt((struct attempt){.algorithm = "MD5"})) == 0);
	CHECK(outcome(attempt((struct attempt){.algorithm = "\"SHA-256\"", .sha256 = true})) == 0);
	CHECK(outcome(attempt((struct attempt){.algorithm = "sha-256", .sha256 = true})) == 0);
	CHECK(outcome(attempt((struct attempt){.uri = "https://h:1/api/svc/v2/groups?pageNum=1"})) == 0);
	CHECK(outcome(attempt((struct attempt){.uri = "/api/svc/v2/groups"})) == 401);
	CHECK(outcome(attempt((struct attempt){.uri = "/api/svc/v2/groups?pageNum=1&"})) == 401);
	CHECK(outcome(attempt((struct attempt){.uri = "https://"})) == 401);
	CHECK(outcome(attempt((struct attempt){.password = "wrong"})) == 401);
	CHECK(outcome(attempt((struct attempt){.user = "nobody"})) == 401);
	CHECK(outcome(attempt((struct attempt){.realm = "Elsewhere"})) == 401);
	CHECK(outcome(attempt((struct attempt){.qop = "auth-int"})) == 401);
	CHECK(outcome(attempt((struct attempt){.algorithm = "MD5-sess"})) == 401);
	CHECK(outcome(attempt((struct attempt){.algorithm = "SHA-256"})) == 401);
	CHECK(outcome(attempt((struct attempt){.nc = "1"})) == 401);
	CHECK(outcome(attempt((struct attempt){.nc = "00000000"})) == 401);
	CHECK(outcome(attempt((struct attempt){.nc = "0000000g"})) == 401);
	CHECK(outcome(attempt((struct attempt){.nonce = "forged"})) == 1401);
	CHECK(outcome(attempt((struct attempt){.nonce = "forged", .password = "wrong"})) == 401);
	nonce_issue(fx.service.nonces, nonce);
	CHECK(outcome(attempt((struct attempt){.nonce = nonce})) == 0);
	CHECK(outcome(attempt((struct attempt){.nonce = nonce})) == 1401); /* replayed */
	CHECK(outcome(attempt((struct attempt){.nonce = nonce, .nc = "0000000A"})) == 0);
	CHECK(outcome(attempt((struct attempt){.nonce = nonce, .nc = "00000002"})) == 0);
	nonce_issue(fx.service.nonces, old);
	clock_advance_ms(300000);
	CHECK(outcome(attempt((struct attempt){.nonce = old})) == 1401);
	CHECK(outcome(attempt((struct attempt){.nonce = old, .password = "wrong"})) == 401);
	clock_reset();
}

/* HA2s are kept: one must answer for its own method, uri and algorithm only, and to nobody without the key. */
static void test_targets(void)
{
	const char *one = "/api/svc/v2/groups/" GROUP, *other = "/api/svc/v2/groups/" OTHER_GROUP;
	attempts_reset(fx.service.attempts);
	for (int i = 0; i < 2; i++) {
		CHECK(outcome(attempt((struct attempt){.target = one})) == 0);
		CHECK(outcome(attempt((struct attempt){.target = one, .method = "PUT"})) == 0);
		CHECK(outcome(attempt((struct attempt){.target = one, .method = "PUT", .hashed_method = "GET"})) ==
		      401);
		CHECK(outcome(attempt((struct attempt){.target = one, .hashed_method = "PUT"})) == 401);
		CHECK(outcome(attempt((struct attempt){.target = one})) == 0);
		CHECK(outcome(attempt((struct attempt){.target = other, .hashed_uri = one})) == 401);
		CHECK(outcome(attempt((struct attempt){.target = other})) == 0);
		CHECK(outcome(attempt((struct attempt){.target = one, .hashed_uri = other})) == 401);
		CHECK(outcome(attempt((struct attempt){.target = one, .password = "wrong"})) == 401);
		CHECK(outcome(attempt((struct attempt){.target = one, .user = "nobody"})) == 401);
		CHECK(outcome(attempt((struct attempt){.target = one, .algorithm = "SHA-256", .sha256 = true})) == 0);
		CHECK(outcome(attempt((struct attempt){.target = one, .algorithm = "SHA-256"})) == 401);
		CHECK(outcome(attempt((struct attempt){.target = one, .sha256 = true})) == 401);
		CHECK(outcome(attempt((struct attempt){.target = one, .algorithm = "MD5"})) == 0);
		attempts_reset(fx.service.attempts);
	}
	/* A wrong response leaves nothing behind that a later right one trips over, nor the other way round. */
	const char *fresh = "/api/svc/v2/groups/fresh";
	CHECK(outcome(attempt((struct attempt){.target = fresh, .hashed_uri = one})) == 401);
	CHECK(outcome(attempt((struct attempt){.target = fresh, .hashed_uri = one})) == 401);
	CHECK(outcome(attempt((struct attempt){.target = fresh})) == 0);
	CHECK(outcome(attempt((struct attempt){.target = fresh, .hashed_uri = one})) == 401);
}

/* More targets than are kept, and of all lengths around what is kept of one. */
static void test_many_targets(void)
{
	attempts_reset(fx.service.attempts);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 300; i++) {
			const char *target = arena_printf(fx.arena, "/api/svc/v2/groups/%d/clusters", i).p;
			CHECK(outcome(attempt((struct attempt){.target = target})) == 0);
			CHECK(outcome(attempt((struct attempt){.target = target})) == 0);
		}
	for (size_t n = 1; n < 300; n++) {
		char *target = arena_alloc(fx.arena, n + 1);
		memset(target, 'x', n);
		target[0] = '/';
		target[n] = '\0';
		CHECK(outcome(attempt((struct attempt){.target = target})) == 0);
		CHECK(outcome(attempt((struct attempt){.target = target})) == 0);
		char *last = arena_z(fx.arena, str_of(target));
		last[n - 1] = n > 1 ? 'y' : '/';
		CHECK(outcome(attempt((struct attempt){.target = last, .hashed_uri = target})) == (n > 1 ? 401 : 0));
		attempts_reset(fx.service.attempts);
	}
}

/* With MD5 the state after key and nonce is kept: it must answer for that key and that nonce only. */
static void test_nonce_again(void)
{
	static const char *const nc[] = {"00000001", "00000002", "00000003", "00000004", "00000005"};
	char nonce[NONCE_TEXT], other[NONCE_TEXT], last[NONCE_TEXT];
	attempts_reset(fx.service.attempts);
	nonce_issue(fx.service.nonces, nonce);
	nonce_issue(fx.service.nonces, other);
	for (int i = 0; i < 5; i++) {
		CHECK(outcome(attempt((struct attempt){.nonce = nonce, .nc = nc[i], .password = "wrong"})) == 401);
		CHECK(outcome(attempt((struct attempt){.nonce = nonce, .nc = nc[i], .user = "nobody"})) == 401);
		CHECK(outcome(attempt((struct attempt){.nonce = nonce, .nc = nc[i]})) == 0);
		CHECK(outcome(attempt((struct attempt){.nonce = nonce, .nc = nc[i]})) == 1401);
		CHECK(outcome(attempt((struct attempt){
		              .nonce = other, .nc = nc[i], .algorithm = "SHA-256", .sha256 = true})) == 0);
		CHECK(outcome(attempt((struct attempt){.nonce = other, .nc = nc[i]})) == 1401);
	}
	/* Nonces that differ after the first block, or in it, are not ours; who knows the key is told that they are stale. */
	for (size_t i = 0; i < NONCE_TEXT - 1; i++) {
		memcpy(last, nonce, sizeof last);
		last[i] = last[i] == 'A' ? 'B' : 'A';
		CHECK(outcome(attempt((struct attempt){.nonce = last, .nc = "00000009"})) == 1401);
	}
	/* More nonces than states are kept, each used twice; and texts of all lengths. */
	for (int i = 0; i < 600; i++) {
		nonce_issue(fx.service.nonces, last);
		CHECK(outcome(attempt((struct attempt){.nonce = last})) == 0);
		CHECK(outcome(attempt((struct attempt){.nonce = last, .nc = "00000002"})) == 0);
	}
	for (size_t n = 1; n < 600; n++) {
		char *cnonce = arena_alloc(fx.arena, n + 1);
		memset(cnonce, 'c', n);
		cnonce[n] = '\0';
		CHECK(outcome(attempt((struct attempt){
		              .cnonce = cnonce, .sha256 = n % 2 == 0, .algorithm = n % 2 == 0 ? "SHA-256" : "MD5"})) ==
		      0);
	}
	CHECK(outcome(attempt((struct attempt){.nonce = ""})) == 1401);
}

/* Headers are kept too: one that differs in anything but count and response is no use of the same nonce, nor is one whose
 * count or response cannot be read. */
static void test_header_again(void)
{
	char nonce[NONCE_TEXT];
	for (int order = 0; order < 2; order++) {
		nonce_issue(fx.service.nonces, nonce);
		struct attempt t = {.nonce = nonce, .count_first = order == 1};
		CHECK(outcome(attempt(t)) == 0);
		t.nc = "00000002";
		for (size_t i = 1; i < header_n; i++) {
			t.spoiled = i;
			attempts_reset(fx.service.attempts);
			CHECK(outcome(attempt(t)) == 401);
		}
		t.spoiled = 0;
		attempts_reset(fx.service.attempts);
		CHECK(outcome(attempt(t)) == 0);
		CHECK(outcome(attempt(t)) == 1401);
		t.target = "/api/svc/v2/groups?pageNum=2";
		t.nc = "00000003";
		CHECK(outcome(attempt(t)) == 0);
	}
}

/* A key that gets another private key: the old one is refused, also with a nonce that it has used. */
static void test_key_changes(void)
{
	char md5[65], sha256[65], nonce[NONCE_TEXT];
	nonce_issue(fx.service.nonces, nonce);
	CHECK(outcome(attempt((struct attempt){.nonce = nonce, .nc = "00000001"})) == 0);
	digest_ha1(false, STR("publickey"), STR("another"), md5);
	digest_ha1(true, STR("publickey"), STR("another"), sha256);
	struct str plain = arena_printf(fx.arena, "{\"md5\":\"%s\",\"sha256\":\"%s\"}", md5, sha256);
	fixture_write((struct fixture_write){.what = FIXTURE_UPDATE,
	                                     .doc = {.kind = STR("api_key"),
	                                             .id = STR(KEY),
	                                             .parent = STR(ORG),
	                                             .name = STR(""),
	                                             .body = STR("{\"id\":\"" KEY "\",\"publicKey\":\"publickey\"}"),
	                                             .secret = seal(fx.arena, plain, STR("api_key/" KEY))}});
	CHECK(outcome(attempt((struct attempt){.nonce = nonce, .nc = "00000002"})) == 401);
	CHECK(outcome(attempt((struct attempt){.nonce = nonce, .nc = "00000002", .password = "another"})) == 0);
	CHECK(outcome(attempt((struct attempt){.nonce = nonce, .nc = "00000003"})) == 401);
	private_key = "another";
}

static void test_cache(void)
{
	struct store_stats before, after;
	store_stats(fx.service.store, &before);
	for (int i = 0; i < 50; i++)
		CHECK(outcome(attempt((struct attempt){0})) == 0);
	store_stats(fx.service.store, &after);
	CHECK(before.reads == after.reads);
	fixture_delete("api_key", KEY);
	CHECK(outcome(attempt((struct attempt){0})) == 401);
}

int main(void)
{
	log_setup(LOG_ERROR, false);
	fixture_setup();
	test_parse();
	test_ha1();
	test_nonces();
	test_race();
	test_calls();
	test_targets();
	test_many_targets();
	test_nonce_again();
	test_header_again();
	test_key_changes();
	test_cache();
	fixture_teardown();
	return CHECK_DONE();
}

/* For the tests of the gates: a service on its own store in a temporary directory, with one organization, one project,
 * one API key and one service account. */
#ifndef STEWARD_TEST_GATE_FIXTURE_H
#define STEWARD_TEST_GATE_FIXTURE_H

#include "base/clock.h"
#include "base/log.h"
#include "check.h"
#include "gate/gate.h"
#include "identity/attempts.h"
#include "identity/grants.h"
#include "identity/identity.h"
#include "identity/uses.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORG "000000000000000000000001"
#define OTHER_ORG "000000000000000000000002"
#define GROUP "000000000000000000000011"
#define OTHER_GROUP "000000000000000000000012"
#define KEY "000000000000000000000021"
#define ACCOUNT "000000000000000000000031"
#define SECRET "000000000000000000000041"

struct fixture {
	char dir[64];
	struct service service;
	struct loop_state loop;
	struct arena *arena;
};

static struct fixture fx;

struct fixture_write {
	struct doc doc;
	struct str ref_kind, ref_value;
	enum { FIXTURE_INSERT, FIXTURE_UPDATE, FIXTURE_DELETE } what;
};

static inline int fixture_run(struct tx *tx, void *ctx)
{
	struct fixture_write *w = ctx;
	int r = 0;
	tx_touch_identity(tx);
	if (w->what == FIXTURE_DELETE)
		return tx_delete(tx, w->doc.kind.p, w->doc.id);
	r = w->what == FIXTURE_INSERT ? tx_insert(tx, &w->doc) : tx_update(tx, &w->doc);
	if (r == 0 && w->ref_kind.n)
		r = tx_ref_put(tx, w->ref_kind.p, w->ref_value, w->doc.id);
	return r;
}

static inline void fixture_write(struct fixture_write w)
{
	int r = store_write_wait(fx.service.store, fixture_run, &w);
	if (r < 0) {
		fprintf(stderr, "the fixture cannot write %s %s: %d\n", w.doc.kind.p, w.doc.id.p, r);
		exit(1);
	}
}

/* Literals only: they are NUL-terminated. */
static inline void fixture_put(const char *kind, const char *id, const char *parent, const char *name, const char *body)
{
	fixture_write((struct fixture_write){.doc = {.kind = str_of(kind),
	                                             .id = str_of(id),
	                                             .parent = str_of(parent),
	                                             .name = str_of(name),
	                                             .created_ms = clock_now_ms(),
	                                             .body = str_of(body),
	                                             .secret = STR("")}});
}

static inline void fixture_update(const char *kind, const char *id, const char *name, const char *body,
                                  struct str secret)
{
	fixture_write((struct fixture_write){.what = FIXTURE_UPDATE,
	                                     .doc = {.kind = str_of(kind),
	                                             .id = str_of(id),
	                                             .parent = STR(""),
	                                             .name = str_of(name),
	                                             .body = str_of(body),
	                                             .secret = secret}});
}

static inline void fixture_delete(const char *kind, const char *id)
{
	fixture_write((struct fixture_write){.what = FIXTURE_DELETE, .doc = {.kind = str_of(kind), .id = str_of(id)}});
}

struct fixture_grant {
	enum grantee who;
	const char *id, *scope, *roles; /* roles: JSON list */
	bool in_org;
};

static inline int fixture_grant_run(struct tx *tx, void *ctx)
{
	const struct fixture_grant *g = ctx;
	json_t *names = json_loads(g->roles, 0, NULL);
	role_mask roles = roles_from_json(names, g->in_org);
	json_decref(names);
	return grant_set(tx, fx.arena, g->who, str_of(g->id), g->in_org, str_of(g->scope), roles);
}

static inline void fixture_grant(enum grantee who, const char *id, bool in_org, const char *scope, const char *roles)
{
	struct fixture_grant g = {who, id, scope, roles, in_org};
	if (store_write_wait(fx.service.store, fixture_grant_run, &g) < 0)
		exit(1);
}

static inline void fixture_key(void)
{
	char md5[65], sha256[65];
	digest_ha1(false, STR("publickey"), STR("private-key"), md5);
	digest_ha1(true, STR("publickey"), STR("private-key"), sha256);
	struct str plain = arena_printf(fx.arena, "{\"md5\":\"%s\",\"sha256\":\"%s\"}", md5, sha256);
	fixture_write((struct fixture_write){.doc = {.kind = STR("api_key"),
	                                             .id = STR(KEY),
	                                             .parent = STR(ORG),
	                                             .name = STR(""),
	                                             .body = STR("{\"id\":\"" KEY "\",\"publicKey\":\"publickey\"}"),
	                                             .secret = seal(fx.arena, plain, STR("api_key/" KEY))},
	                                     .ref_kind = STR("api_key_public"),
	                                     .ref_value = STR("publickey")});
	fixture_grant(GRANTEE_KEY, KEY, false, GROUP, "[\"GROUP_CLUSTER_MANAGER\"]");
	fixture_grant(GRANTEE_KEY, KEY, true, ORG, "[\"ORG_MEMBER\"]");
}

static inline void fixture_account(void)
{
	char hash[65], expires[CLOCK_TEXT];
	sha256_hex(STR("client-secret"), hash);
	fixture_write((struct fixture_write){.doc = {.kind = STR("service_account"),
	                                             .id = STR(ACCOUNT),
	                                             .parent = STR(ORG),
	                                             .name = STR(""),
	                                             .body = STR("{\"clientId\":\"client-id\",\"name\":\"a\"}"),
	                                             .secret = STR("")},
	                                     .ref_kind = STR("service_account_client"),
	                                     .ref_value = STR("client-id")});
	fixture_grant(GRANTEE_ACCOUNT, ACCOUNT, true, ORG, "[\"ORG_READ_ONLY\"]");
	fixture_grant(GRANTEE_ACCOUNT, ACCOUNT, false, GROUP, "[\"GROUP_OWNER\"]");
	clock_format(clock_now_ms() + (int64_t)86400 * 1000, expires);
	fixture_write((struct fixture_write){
	        .doc = {.kind = STR("sa_secret"),
	                .id = STR(SECRET),
	                .parent = STR(ACCOUNT),
	                .name = STR(""),
	                .body = arena_printf(fx.arena, "{\"id\":\"" SECRET "\",\"expiresAt\":\"%s\"}", expires),
	                .secret = str_of(hash)}});
}

static inline void fixture_setup(void)
{
	fx = (struct fixture){.dir = "/tmp/steward-unit-XXXXXX"};
	struct store_options o = {.data_dir = fx.dir};
	clock_make_virtual();
	if (!mkdtemp(fx.dir) || seal_setup(fx.dir) < 0 || store_open(&o, &fx.service.store) < 0)
		exit(1);
	fx.arena = arena_new();
	fx.service.limiter = limiter_new(0);
	fx.service.loops = fx.service.lanes = 1;
	fx.service.loop = &fx.loop;
	fx.service.nonces = nonce_window_new();
	fx.service.attempts = attempts_new();
	fx.loop.reader = store_reader(fx.service.store);
	fx.loop.tokens = token_cache_new();
	fixture_put("org", ORG, "", "", "{\"id\":\"" ORG "\",\"name\":\"one\"}");
	fixture_put("org", OTHER_ORG, "", "", "{\"id\":\"" OTHER_ORG "\",\"name\":\"two\"}");
	fixture_put("project", GROUP, ORG, "p", "{\"id\":\"" GROUP "\",\"name\":\"p\"}");
	fixture_put("project", OTHER_GROUP, OTHER_ORG, "p", "{\"id\":\"" OTHER_GROUP "\",\"name\":\"p\"}");
	fixture_key();
	fixture_account();
}

static inline void fixture_teardown(void)
{
	static const char *const files[] = {"secret.key", "steward.db", "steward.db-wal", "steward.db-shm"};
	char path[128];
	token_cache_free(fx.loop.tokens);
	uses_free(fx.loop.uses);
	store_reader_free(fx.loop.reader);
	nonce_window_free(fx.service.nonces);
	attempts_free(fx.service.attempts);
	limiter_free(fx.service.limiter);
	store_close(fx.service.store);
	arena_free(fx.arena);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", fx.dir, files[i]);
		unlink(path);
	}
	rmdir(fx.dir);
}

/* A call in the fixture's arena, with up to four headers given as name, value, ..., NULL. */
static inline struct call *fixture_call(const struct op *op, const char *method, const char *target, ...)
{
	struct request *r = arena_new_of(fx.arena, struct request);
	struct call *c = arena_new_of(fx.arena, struct call);
	struct str path;
	va_list args;
	r->arena = fx.arena;
	r->method = str_of(method);
	r->target = str_of(target);
	str_cut(r->target, '?', &path, &r->query);
	r->path = path;
	if (!ip_parse(STR("192.0.2.7"), &r->peer))
		exit(1);
	r->headers = arena_new_array(fx.arena, struct header, 4);
	va_start(args, target);
	for (const char *name; r->header_count < 4 && (name = va_arg(args, const char *));)
		r->headers[r->header_count++] = (struct header){str_of(name), str_of(va_arg(args, const char *))};
	va_end(args);
	c->service = &fx.service;
	c->request = r;
	c->arena = fx.arena;
	c->op = op;
	c->tx = fx.loop.reader;
	return c;
}

/* The value of the n-th header of that name that the call will answer with; "" when there is none. */
static inline struct str fixture_header(const struct call *c, const char *name, size_t n)
{
	for (size_t i = 0; i < c->extra_header_count; i++)
		if (str_is(c->extra_headers[i][0], name) && n-- == 0)
			return c->extra_headers[i][1];
	return STR("");
}

#endif

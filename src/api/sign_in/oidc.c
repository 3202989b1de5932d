/* Signing in by an OIDC identity provider: the authorization code flow with PKCE.
 *
 *   GET /providers?username=         who can sign in people of that address's domain; says nothing about accounts
 *   GET /oidc/{id}?to=/console/...   sends the browser to the provider
 *   GET /oidc/callback/{id}          the provider sends it back, with a code that is exchanged for an ID token
 *
 * State, nonce and verifier lie in a ticket, in a cookie of this browser: another one cannot end what this one has
 * begun. The cookie is Lax, because it must come along when the provider's page leads here. Each provider has its own
 * callback, so that none can have us hand it another's codes. */
#include "api/federation/federation.h"
#include "api/sign_in/federated.h"
#include "api/sign_in/sign_in.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "identity/jwks.h"
#include "identity/oidc.h"
#include "identity/passkey.h"
#include "identity/tickets.h"

#include <errno.h>
#include <stdatomic.h>

#define STATE_COOKIE "__Host-steward-oidc"
#define SECONDS 600                /* to sign in at the provider */
#define FACTS_MS INT64_C(86400000) /* what an issuer says of itself is asked for again after a day */
#define STATE_MAX 512
#define CODE_MAX 2048
#define ASKING 8 /* calls of providers at a time; what hangs there holds up no passwords */
#define ASKING_WAIT 128

static struct pool asking = POOL(ASKING, ASKING_WAIT);

struct oidc_visit {
	struct doc provider;
	const json_t *settings; /* of the provider */
	const json_t *facts;    /* of its issuer: the body of "idp_jwks"; or NULL */
	int64_t facts_rev;      /* of the kept ones; 0: none are kept */
	bool fetched;           /* the facts were asked for now */
	struct str to, hint;
	struct ticket ticket;
	struct str code;
	const json_t *claims;
	const char *fault; /* what the sign-in page is told */
};

/* By the name with which the browser came: the cookies belong to it. */
static struct str callback_uri(const struct visit *v, struct str provider_id)
{
	struct passkey_place place;
	struct str base = passkey_place(v->arena, v->service->base_url, v->request->authority, &place)
	                          ? place.origin
	                          : str_of(v->service->base_url);
	return arena_printf(v->arena, "%.*s" SESSION_PATH "/oidc/callback/%.*s", STR_ARG(base), STR_ARG(provider_id));
}

/* What is known of the provider and its issuer. -ENOENT. */
static int provider_read(struct tx *tx, struct visit *v, struct str id)
{
	struct oidc_visit *o = v->state;
	struct doc kept;
	int result = id_is_valid(id) ? federation_provider(tx, v->arena, id, &o->provider) : -ENOENT;
	if (result < 0)
		return result;
	o->settings = doc_json(v->arena, o->provider.body);
	result = tx_get(tx, v->arena, "idp_jwks", id, &kept);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	const json_t *facts = doc_json(v->arena, kept.body);
	o->facts_rev = kept.rev;
	if (str_eq(json_field(facts, "issuerUri"), json_field(o->settings, "issuerUri")))
		o->facts = facts;
	return 0;
}

static bool facts_are_fresh(const json_t *facts)
{
	int64_t at;
	return json_field(facts, "authorizationEndpoint").n && json_field(facts, "tokenEndpoint").n &&
	       clock_parse(json_field(facts, "fetchedAt"), &at) && clock_now_ms() - at < FACTS_MS;
}

/* Asking the issuer, on a thread of the pool. */

static bool is_draining(void *ctx)
{
	return atomic_load(&((struct service *)ctx)->draining);
}

static struct issuer_request request_to(struct visit *v)
{
	return (struct issuer_request){
	        .ca_file = jwks_ca_file(v->service->jwks), .stops = is_draining, .ctx = v->service};
}

static void tell(const struct visit *v, const char *why)
{
	const struct oidc_visit *o = v->state;
	struct str issuer = json_field(o->settings, "issuerUri");
	log_warn("sign-in by %.*s (provider %.*s): %s", STR_ARG(issuer), STR_ARG(o->provider.id), why);
}

static int facts_fetch(struct visit *v)
{
	struct oidc_visit *o = v->state;
	char fault[ISSUER_FAULT];
	struct issuer_request how = request_to(v);
	const json_t *fetched = jwks_fetch(&how, v->arena, json_field(o->settings, "issuerUri"), fault);
	if (!fetched) {
		tell(v, fault);
		return -EIO;
	}
	o->facts = fetched;
	o->fetched = true;
	return 0;
}

/* In a write. -EAGAIN: the keys that were used have been revoked or replaced meanwhile. */
static int facts_keep(struct visit *v)
{
	const struct oidc_visit *o = v->state;
	struct doc kept;
	if (o->fetched)
		return o->facts_rev ? jwks_keep(v->call.tx, v->arena, o->provider.id, o->facts_rev, o->facts) : 0;
	int result = tx_get(v->call.tx, v->arena, "idp_jwks", o->provider.id, &kept);
	return result == -ENOENT || (result == 0 && kept.rev != o->facts_rev) ? -EAGAIN : result;
}

/* The way there. */

static int leave(struct visit *v)
{
	const struct oidc_visit *o = v->state;
	char state[OIDC_SECRET_TEXT], nonce[OIDC_SECRET_TEXT], verifier[OIDC_SECRET_TEXT];
	struct oidc_request r = {.endpoint = json_field(o->facts, "authorizationEndpoint"),
	                         .client_id = json_field(o->settings, "clientId"),
	                         .redirect_uri = callback_uri(v, o->provider.id),
	                         .scopes = json_object_get(o->settings, "requestedScopes"),
	                         .login_hint = o->hint};
	if (!r.endpoint.n || !json_field(o->facts, "tokenEndpoint").n) {
		tell(v, "its discovery document names no endpoints for sign-in");
		return federated_redirect_fault(v, "OIDC_FAILED");
	}
	oidc_secret_make(state);
	oidc_secret_make(nonce);
	oidc_secret_make(verifier);
	r.state = str_of(state);
	r.nonce = str_of(nonce);
	r.verifier = str_of(verifier);
	json_t *data = json_pack("{s:s, s:s, s:s}", "state", state, "nonce", nonce, "verifier", verifier);
	json_put_str(data, "provider", o->provider.id);
	json_put_str(data, "redirect", r.redirect_uri);
	json_put_str(data, "to", o->to);
	struct str ticket = ticket_issue(v->arena, "oidc", STR_NONE, SECONDS, data);
	federated_cookie(v, STATE_COOKIE, ticket, SECONDS);
	return federated_redirect(v, oidc_request_url(v->arena, &r));
}

static int start_save(struct visit *v)
{
	int result = facts_keep(v);
	return result < 0 ? result : leave(v);
}

/* Old facts are better than none. */
static int start_slow(struct visit *v)
{
	const struct oidc_visit *o = v->state;
	if (facts_fetch(v) == 0)
		return 0;
	v->save = NULL;
	return o->facts ? leave(v) : federated_redirect_fault(v, "OIDC_FAILED");
}

static int start(struct visit *v)
{
	struct oidc_visit *o = v->state = arena_new_of(v->arena, struct oidc_visit);
	o->to = federated_target(v);
	o->hint = federated_parameter(v, "username", 254);
	if (!federated_is_from_here(v->request))
		return federated_redirect_fault(v, "OIDC_NOT_FROM_HERE");
	int result = provider_read(v->reader, v, v->rest);
	if (result == -ENOENT)
		return federated_redirect_fault(v, "OIDC_UNKNOWN");
	if (result < 0)
		return result;
	if (facts_are_fresh(o->facts))
		return leave(v);
	v->pool = &asking;
	v->slow = start_slow;
	v->save = start_save;
	return 0;
}

/* The way back. */

static json_t *tokens_ask(struct visit *v)
{
	const struct oidc_visit *o = v->state;
	struct str endpoint = json_field(o->facts, "tokenEndpoint");
	struct issuer_request r = request_to(v);
	struct buf form = {0};
	char fault[ISSUER_FAULT];
	oidc_parameter(&form, "grant_type", STR("authorization_code"));
	oidc_parameter(&form, "code", o->code);
	oidc_parameter(&form, "redirect_uri", json_field(o->ticket.data, "redirect"));
	oidc_parameter(&form, "client_id", json_field(o->settings, "clientId"));
	oidc_parameter(&form, "code_verifier", json_field(o->ticket.data, "verifier"));
	r.url = arena_z(v->arena, endpoint);
	r.form = buf_view(&form);
	/* Only where an issuer has shown that it lives may this lead into private networks: a form is more than a
	 * question. */
	r.is_public = !issuer_same_origin(endpoint, json_field(o->settings, "issuerUri"));
	json_t *tokens = issuer_ask(&r, fault);
	buf_free(&form);
	if (!tokens)
		tell(v, fault);
	return tokens ? json_keep(v->arena, tokens) : NULL;
}

static enum oidc_verdict token_verify(struct visit *v, struct str token, const char **ret_fault)
{
	struct oidc_visit *o = v->state;
	struct oidc_expected expected = {.issuer = json_field(o->settings, "issuerUri"),
	                                 .client_id = json_field(o->settings, "clientId"),
	                                 .nonce = json_field(o->ticket.data, "nonce"),
	                                 .now_ms = clock_machine_ms()};
	json_t *claims;
	enum oidc_verdict verdict =
	        oidc_token_verify(v->arena, json_object_get(o->facts, "keys"), token, &expected, &claims, ret_fault);
	if (verdict == OIDC_RIGHT)
		o->claims = claims;
	return verdict;
}

static int callback_slow(struct visit *v)
{
	const struct oidc_visit *o = v->state;
	const char *fault = NULL;
	if (!json_field(o->facts, "tokenEndpoint").n && facts_fetch(v) < 0)
		return federated_page_fault(v, STATE_COOKIE, "OIDC_FAILED");
	const json_t *tokens = tokens_ask(v);
	if (!tokens)
		return federated_page_fault(v, STATE_COOKIE, "OIDC_FAILED");
	struct str token = json_field(tokens, "id_token");
	enum oidc_verdict verdict = token_verify(v, token, &fault);
	/* The issuer may have a new key. */
	if (verdict == OIDC_KEY_UNKNOWN && !o->fetched && facts_fetch(v) == 0)
		verdict = token_verify(v, token, &fault);
	if (verdict == OIDC_RIGHT)
		return 0;
	tell(v, fault);
	return federated_page_fault(v, STATE_COOKIE, "OIDC_FAILED");
}

/* The settings must still be those by which the token was verified. */
static int provider_again(struct visit *v)
{
	const struct oidc_visit *o = v->state;
	struct doc now;
	int result = federation_provider(v->call.tx, v->arena, o->provider.id, &now);
	return result == -ENOENT || (result == 0 && now.rev != o->provider.rev) ? -EAGAIN : result;
}

static int callback_save(struct visit *v)
{
	struct oidc_visit *o = v->state;
	struct str user_id;
	int result = ticket_use(v->call.tx, v->arena, &o->ticket);
	if (result == 0)
		result = provider_again(v);
	if (result == 0)
		result = facts_keep(v);
	o->fault = "OIDC_EXPIRED";
	if (result == -EAGAIN || result == -EACCES)
		return call_fail(&v->call, 409, "TRY_AGAIN", "The provider, its keys or the sign-in have changed.");
	if (result == 0) {
		o->fault = "OIDC_NOT_ALLOWED";
		result = federation_vouched(&v->call, &o->provider, o->claims, &user_id);
	}
	if (result == 0)
		result = visit_sign_in(v, user_id, "oidc", true);
	if (result < 0)
		return result;
	federated_page(v, STATE_COOKIE, o->to);
	return 0;
}

static void callback_ended(struct visit *v, bool kept)
{
	const struct oidc_visit *o = v->state;
	if (federated_refused(v, kept, STATE_COOKIE, o->fault))
		tell(v, "nobody was signed in");
}

static int callback(struct visit *v)
{
	struct oidc_visit *o = v->state = arena_new_of(v->arena, struct oidc_visit);
	struct str cookie = request_cookie(v->request, STATE_COOKIE),
	           state = federated_parameter(v, "state", STATE_MAX),
	           issuer = federated_parameter(v, "iss", STATE_MAX);
	int result = cookie.n ? ticket_open(v->arena, "oidc", cookie, &o->ticket) : -EACCES;
	if (result < 0 && result != -EACCES)
		return result;
	if (result == -EACCES || !state.n || !str_eq_secret(state, json_field(o->ticket.data, "state")) ||
	    !str_eq(json_field(o->ticket.data, "provider"), v->rest))
		return federated_page_fault(v, STATE_COOKIE, "OIDC_EXPIRED");
	o->to = json_field(o->ticket.data, "to");
	o->code = federated_parameter(v, "code", CODE_MAX);
	result = provider_read(v->reader, v, v->rest);
	if (result < 0)
		return result == -ENOENT ? federated_page_fault(v, STATE_COOKIE, "OIDC_UNKNOWN") : result;
	if (issuer.n && !str_eq(issuer, json_field(o->settings, "issuerUri"))) {
		tell(v, "the answer names another issuer");
		return federated_page_fault(v, STATE_COOKIE, "OIDC_FAILED");
	}
	if (!o->code.n)
		return federated_page_fault(v, STATE_COOKIE, "OIDC_REFUSED");
	v->pool = &asking;
	v->slow = callback_slow;
	v->save = callback_save;
	v->ended = callback_ended;
	return 0;
}

static int providers(struct visit *v)
{
	json_t *results = json_array();
	v->out = json_new(v->arena);
	json_put(v->out, "results", results);
	return federation_providers_of(v->reader, v->arena, federated_parameter(v, "username", 254), results);
}

void oidc_serve(struct service *s, struct request *r)
{
	static const struct visit_row rows[] = {
	        {"GET", "/providers", providers, 0},
	        {"GET", "/oidc/callback/", callback, VISIT_OPEN},
	        {"GET", "/oidc/", start, VISIT_OPEN},
	};
	visit_serve(s, r, rows, sizeof rows / sizeof *rows);
}

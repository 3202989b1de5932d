/* Who is calling? The scheme of the Authorization header decides: Bearer is a token, Digest is an API key, anything
 * else is refused. A refusal offers both schemes, one challenge per line, Digest first, and never says which part was
 * wrong. Without that header the cookie of a session counts, if a page of ours has made the call. Browsers get no
 * challenge, because they would ask people for a key. */
#include "gate/authenticate.h"

#include "gate/gate.h"
#include "identity/attempts.h"
#include "identity/identity.h"
#include "identity/sessions.h"

#include <errno.h>

/* Both digest challenges carry the same nonce, because clients that join the lines mix the directives of the two. */
void authenticate_challenge(struct call *c, bool stale, bool bad_token)
{
	static const char *const algorithms[] = {"MD5", "SHA-256"};
	char nonce[NONCE_TEXT], opaque[33];
	unsigned char mac[32];
	if (request_fetch_site(c->request) != FETCH_UNSAID)
		return;
	nonce_issue(c->service->nonces, nonce);
	seal_mac("opaque", STR(DIGEST_REALM), mac);
	hex_encode(mac, 16, opaque);
	for (size_t i = 0; i < 2; i++)
		call_header(c, STR("www-authenticate"),
		            arena_printf(c->arena,
		                         "Digest realm=\"" DIGEST_REALM "\", domain=\"/api\", nonce=\"%s\", "
		                         "opaque=\"%s\", stale=%s, algorithm=%s, qop=\"auth\"",
		                         nonce, opaque, stale ? "true" : "false", algorithms[i]));
	call_header(c, STR("www-authenticate"),
	            bad_token ? STR("Bearer realm=\"" DIGEST_REALM "\", error=\"invalid_token\"")
	                      : STR("Bearer realm=\"" DIGEST_REALM "\""));
}

static bool has_scheme(struct str value, struct str scheme)
{
	return value.n > scheme.n && value.p[scheme.n] == ' ' && str_ieq((struct str){value.p, scheme.n}, scheme);
}

static int too_many(struct call *c)
{
	unsigned seconds = c->limit.retry_after ? c->limit.retry_after : 1;
	call_header(c, STR("retry-after"), arena_printf(c->arena, "%u", seconds));
	return call_fail(c, 429, "TOO_MANY_FAILED_ATTEMPTS",
	                 "Too many failed attempts from this address. Please retry after %u seconds.", seconds);
}

static int session_note(struct call *c, const struct session *session)
{
	c->by_session = true;
	c->weak = !session->strong;
	c->proven_ms = session->proven_ms;
	return 0;
}

/* A person's token is of a session, which ends by itself, may lack a second factor, and may not be proven lately. */
static int token_session(struct call *c, struct str text)
{
	struct session session;
	if (c->caller->kind != PRINCIPAL_USER)
		return 0;
	int r = session_of_token(c->service, c->tx, c->arena, text, &session, &c->caller);
	if (r == 0 || r == -ENOENT)
		return r == 0 ? session_note(c, &session) : 0;
	principal_unref(c->caller);
	c->caller = NULL;
	return r;
}

/* A token cannot be guessed, so a valid one is never refused because of failed attempts from its address. */
static int bearer(struct call *c, struct str value)
{
	struct str text = str_trim((struct str){value.p + 7, value.n - 7});
	int r = token_caller(c->service, call_loop(c)->tokens, c->tx, text, &c->caller);
	if (r == 0)
		r = token_session(c, text);
	if (r == 0)
		return 0;
	if (r != -EACCES)
		return call_fail_store(c, r, "token");
	enum attempt_state attempt =
	        attempt_ask(c->service->attempts, STR_NONE, &c->request->peer, &c->limit.retry_after);
	attempt_failed(c->service->attempts, STR_NONE, &c->request->peer);
	if (attempt != ATTEMPT_OPEN)
		return too_many(c);
	authenticate_challenge(c, false, true);
	return call_fail(c, 401, "INVALID_TOKEN", "The access token is not valid or has expired.");
}

static int digest(struct call *c, struct str value)
{
	int r = digest_caller(c, value, &c->caller);
	if (r == 0)
		return 0;
	if (r == -EBUSY)
		return too_many(c);
	if (r != -EACCES && r != -ESTALE)
		return call_fail_store(c, r, "api_key");
	authenticate_challenge(c, r == -ESTALE, false);
	if (r == -ESTALE)
		return call_fail(c, 401, "STALE_NONCE", "The nonce has expired or was used before. Use the new one.");
	return call_fail(c, 401, "INVALID_CREDENTIALS", "The credentials are not valid.");
}

/* The other host has asked for the credentials. What the caller may do is read here again. */
static int passed_on(struct call *c)
{
	struct str kind, id;
	uint64_t number;
	if (request_header_count(c->request, HEADER_CALLER) == 1 &&
	    str_cut(request_header(c->request, HEADER_CALLER), '/', &kind, &id) &&
	    str_to_u64(kind, PRINCIPAL_USER, &number)) {
		int r = known_caller(c->service, call_loop(c)->tokens, c->tx, (enum principal_kind)number, id,
		                     &c->caller);
		if (r == 0)
			return 0;
		if (r != -ENOENT)
			return call_fail_store(c, r, "caller");
	}
	return call_fail(c, 401, "NOT_AUTHENTICATED", "The host %s passed on a call of nobody.", c->request->from_host);
}

/* Without an Authorization header. */
static int cookie(struct call *c)
{
	struct session session;
	int r = session_caller(c->service, c->tx, c->arena, c->request, &session, &c->caller);
	if (r == 0)
		return session_note(c, &session);
	if (r != -ENOENT && r != -EACCES)
		return call_fail_store(c, r, "session");
	if (request_fetch_site(c->request) != FETCH_UNSAID)
		return call_fail(c, 401, "NOT_SIGNED_IN", "Nobody is signed in, or the session has ended.");
	authenticate_challenge(c, false, false);
	return call_fail(c, 401, "NOT_AUTHENTICATED",
	                 "Credentials are required: an access token (Bearer) or an API key (Digest).");
}

int gate_authenticate(struct call *c)
{
	if (c->op->tenant == TENANT_PUBLIC)
		return 0;
	if (call_is_passed_on(c))
		return passed_on(c);
	if (!request_header_count(c->request, "authorization"))
		return cookie(c);
	struct str value = str_trim(request_header(c->request, "authorization"));
	if (value.n && request_header_count(c->request, "authorization") == 1) {
		if (has_scheme(value, STR("Bearer")))
			return bearer(c, value);
		if (has_scheme(value, STR("Digest")))
			return digest(c, value);
	}
	authenticate_challenge(c, false, false);
	return call_fail(c, 401, "NOT_AUTHENTICATED",
	                 "Credentials are required: an access token (Bearer) or an API key (Digest).");
}

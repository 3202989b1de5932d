/* Signing in by a SAML identity provider (web browser SSO: the request by redirect, the answer by POST).
 *
 *   GET  /api/session/saml/{id}?to=/console/...   sends the browser to the provider
 *   POST /sso/saml2/{oktaIdpId}                   its answer, in a form; verified by steward-saml
 *   GET  /api/session/saml/done/{id}?answer=...   where the page that follows leads
 *
 * The answer comes by a form of another site, with which browsers send no cookie of ours that is safe to have. So it is
 * verified and sealed into a ticket, and a page of ours goes on with that: then the cookie comes along which says that
 * this browser has asked, and what. An answer that nobody here has asked for signs nobody in. */
#include "api/federation/federation.h"
#include "api/sign_in/federated.h"
#include "api/sign_in/sign_in.h"
#include "api/sign_in/visit.h"

#include "base/id.h"
#include "base/log.h"
#include "identity/saml.h"
#include "identity/tickets.h"

#include <errno.h>

#define STATE_COOKIE "__Host-steward-saml"
#define SECONDS 600     /* to sign in at the provider */
#define DONE_SECONDS 60 /* for the page in between */
#define RESPONSE_MAX (192u << 10)
#define ANSWER_MAX 8000 /* bytes of a ticket with what the provider says: it is a part of an address */
#define GROUPS_MAX 100
#define VERIFYING 2 /* processes at a time */
#define VERIFYING_WAIT 64

static struct pool verifying = POOL(VERIFYING, VERIFYING_WAIT);

struct saml_visit {
	struct doc provider;
	const json_t *settings;
	struct str response;
	struct ticket asked, answered;
	const char *fault;
};

static int provider_read(struct visit *v, struct str id)
{
	struct saml_visit *s = v->state;
	int result = federation_provider(v->reader, v->arena, id, &s->provider);
	if (result < 0)
		return result;
	s->settings = doc_json(v->arena, s->provider.body);
	return str_is(json_field(s->settings, "protocol"), "SAML") ? 0 : -ENOENT;
}

static void tell(const struct visit *v, const char *why)
{
	const struct saml_visit *s = v->state;
	struct str issuer = json_field(s->settings, "issuerUri");
	log_warn("sign-in by %.*s (provider %.*s): %s", STR_ARG(issuer), STR_ARG(s->provider.id), why);
}

/* The way there. */

static int start(struct visit *v)
{
	struct saml_visit *s = v->state = arena_new_of(v->arena, struct saml_visit);
	if (!federated_is_from_here(v->request))
		return federated_redirect_fault(v, "OIDC_NOT_FROM_HERE");
	int result = id_is_valid(v->rest) ? provider_read(v, v->rest) : -ENOENT;
	if (result < 0)
		return result == -ENOENT ? federated_redirect_fault(v, "OIDC_UNKNOWN") : result;
	unsigned char bytes[16];
	char id[40] = "_"; /* an XML name does not begin with a digit */
	random_bytes(bytes, sizeof bytes);
	hex_encode(bytes, sizeof bytes, id + 1);
	json_t *data = json_pack("{s:s}", "request", id);
	json_put_str(data, "provider", s->provider.id);
	json_put_str(data, "to", federated_target(v));
	federated_cookie(v, STATE_COOKIE, ticket_issue(v->arena, "saml", STR_NONE, SECONDS, data), SECONDS);
	return federated_redirect(v, saml_request_url(v->arena, v->service->base_url, s->settings, str_of(id)));
}

/* The answer. */

/* The first text of an attribute by one of its usual names. */
static struct str attribute(const json_t *all, const char *const *names)
{
	for (size_t i = 0; names[i]; i++) {
		struct str text = json_item(json_object_get(all, names[i]), 0);
		if (text.n)
			return text;
	}
	return STR_NONE;
}

/* What a token of an OIDC provider would say. */
static json_t *claims_of(const json_t *said)
{
	static const char *const first[] = {"firstName", "givenName", "given_name",
	                                    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/givenname", NULL};
	static const char *const last[] = {"lastName",
	                                   "surname",
	                                   "sn",
	                                   "family_name",
	                                   "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/surname",
	                                   NULL};
	const json_t *all = json_object_get(said, "attributes"), *member = json_object_get(all, "memberOf");
	const json_t *groups = member ? member : json_object_get(all, "groups");
	json_t *claims = json_object(), *kept = json_array();
	json_put_str(claims, "email", json_field(said, "nameId"));
	json_put_str(claims, "given_name", attribute(all, first));
	json_put_str(claims, "family_name", attribute(all, last));
	for (size_t i = 0; i < json_array_size(groups) && i < GROUPS_MAX; i++)
		json_add_str(kept, json_item(groups, i));
	json_put(claims, "groups", kept);
	return claims;
}

static int answer_slow(struct visit *v)
{
	struct saml_visit *s = v->state;
	const char *fault;
	const json_t *said = saml_verify(v->arena, v->service->base_url, s->settings, s->response, &fault);
	if (!said) {
		tell(v, fault);
		return federated_page_fault(v, NULL, "OIDC_FAILED");
	}
	json_t *data = json_pack("{s:o}", "claims", claims_of(said));
	json_put_str(data, "provider", s->provider.id);
	json_put_str(data, "request", json_field(said, "inResponseTo"));
	json_put(data, "rev", json_integer(s->provider.rev));
	struct str ticket = ticket_issue(v->arena, "saml-answer", STR_NONE, DONE_SECONDS, data);
	if (ticket.n > ANSWER_MAX) {
		tell(v, "its answer is too long");
		return federated_page_fault(v, NULL, "OIDC_FAILED");
	}
	federated_page(v, NULL,
	               arena_printf(v->arena, SESSION_PATH "/saml/done/%.*s?answer=%.*s", STR_ARG(s->provider.id),
	                            STR_ARG(ticket)));
	return 0;
}

static int answer(struct visit *v)
{
	struct saml_visit *s = v->state = arena_new_of(v->arena, struct saml_visit);
	struct str id;
	int result = tx_ref_get(v->reader, v->arena, "identity_provider_okta", v->rest, &id);
	if (result == 0)
		result = provider_read(v, id);
	if (result < 0)
		return result == -ENOENT ? federated_page_fault(v, NULL, "OIDC_UNKNOWN") : result;
	s->response = federated_field(v, v->request->body, "SAMLResponse", RESPONSE_MAX);
	if (!s->response.n)
		return federated_page_fault(v, NULL, "OIDC_REFUSED");
	v->pool = &verifying;
	v->slow = answer_slow;
	return 0;
}

/* The browser that has asked. */

static int done_save(struct visit *v)
{
	struct saml_visit *s = v->state;
	struct doc now;
	struct str user_id;
	int result = ticket_use(v->call.tx, v->arena, &s->asked);
	if (result == 0)
		result = ticket_use(v->call.tx, v->arena, &s->answered);
	if (result == 0)
		result = federation_provider(v->call.tx, v->arena, s->provider.id, &now);
	s->fault = "OIDC_EXPIRED";
	if (result == -EACCES || result == -ENOENT || (result == 0 && now.rev != json_number(s->answered.data, "rev")))
		return call_fail(&v->call, 409, "TRY_AGAIN", "The provider or the sign-in have changed.");
	if (result == 0) {
		s->fault = "OIDC_NOT_ALLOWED";
		result = federation_vouched(&v->call, &now, json_object_get(s->answered.data, "claims"), &user_id);
	}
	if (result == 0)
		result = visit_sign_in(v, user_id, "saml", true);
	if (result == 0)
		federated_page(v, STATE_COOKIE, json_field(s->asked.data, "to"));
	return result;
}

static void done_ended(struct visit *v, bool kept)
{
	const struct saml_visit *s = v->state;
	if (federated_refused(v, kept, STATE_COOKIE, s->fault))
		tell(v, "nobody was signed in");
}

static int done(struct visit *v)
{
	struct saml_visit *s = v->state = arena_new_of(v->arena, struct saml_visit);
	struct str cookie = request_cookie(v->request, STATE_COOKIE),
	           text = federated_parameter(v, "answer", ANSWER_MAX);
	int result = cookie.n ? ticket_open(v->arena, "saml", cookie, &s->asked) : -EACCES;
	if (result == 0)
		result = ticket_open(v->arena, "saml-answer", text, &s->answered);
	if (result < 0 && result != -EACCES)
		return result;
	if (result == -EACCES || !str_eq(json_field(s->asked.data, "provider"), v->rest) ||
	    !str_eq(json_field(s->answered.data, "provider"), v->rest) ||
	    !str_eq_secret(json_field(s->asked.data, "request"), json_field(s->answered.data, "request")))
		return federated_page_fault(v, STATE_COOKIE, "OIDC_EXPIRED");
	result = provider_read(v, v->rest);
	if (result < 0)
		return result == -ENOENT ? federated_page_fault(v, STATE_COOKIE, "OIDC_UNKNOWN") : result;
	v->save = done_save;
	v->ended = done_ended;
	return 0;
}

void saml_serve(struct service *s, struct request *r)
{
	static const struct visit_row rows[] = {
	        {"GET", "/saml/done/", done, VISIT_OPEN},
	        {"GET", "/saml/", start, VISIT_OPEN},
	        {"POST", "/saml/acs/", answer, VISIT_OPEN},
	};
	struct str path = STR(SAML_PATH);
	if (str_starts(r->path, path))
		r->path = arena_printf(r->arena, SESSION_PATH "/saml/acs/%.*s", (int)(r->path.n - path.n),
		                       r->path.p + path.n);
	visit_serve(s, r, rows, sizeof rows / sizeof *rows);
}

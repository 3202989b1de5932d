/* The token endpoint (RFC 6749, client credentials) and revocation (RFC 7009). Outside the catalog: the caller has no
 * token yet, so no gate applies but the access list of the account.
 *
 * A client is checked against every secret that the account has, by hash and without an early exit. Who has failed too
 * often is refused before anything is looked at: identity/attempts.h. */
#include "api/edge/device.h"
#include "api/edge/edge.h"
#include "api/kit/verbs.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "call/answer.h"
#include "call/pool.h"
#include "call/workers.h"
#include "gate/gate.h"
#include "identity/attempts.h"
#include "identity/identity.h"
#include "identity/sessions.h"
#include "identity/uses.h"
#include "trail/events.h"

#include <errno.h>
#include <stdarg.h>

#define FORM_MAX 32
#define SECRETS_MAX 100
#define CREDENTIALS_MAX 1024
#define SWEEP 16

struct form {
	struct str grant_type, client_id, client_secret, token, device_code;
};

struct client {
	struct id account, secret; /* secret: the document of the one that was given */
	struct principal *principal;
	int64_t until_ms; /* the secret's end */
};

struct oauth {
	struct service *service;
	struct request *request;
	struct form form;
	struct problem problem;
};

static int fail(struct oauth *o, int status, const char *code, const char *format, ...) printf_like(4, 5);

static int fail(struct oauth *o, int status, const char *code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	o->problem = (struct problem){
	        .status = status, .code = code, .detail = arena_vprintf(o->request->arena, format, args)};
	va_end(args);
	return -status;
}

static int fail_client(struct oauth *o)
{
	response_header(&o->request->response, "www-authenticate", STR("Basic realm=\"" DIGEST_REALM "\""));
	return fail(o, 401, "INVALID_CLIENT", "The client id or secret is not valid.");
}

static int fail_store(struct oauth *o, int error)
{
	if (error == -ENOTCONN) {
		response_header(&o->request->response, "retry-after", STR("1"));
		return fail(o, 503, "STORE_UNAVAILABLE", "The service cannot reach its store. Try again in a second.");
	}
	if (error == -ENOSPC) {
		response_header(&o->request->response, "retry-after", STR(STORE_FULL_SECONDS));
		return fail(o, 503, "STORE_FULL", STORE_FULL_DETAIL);
	}
	log_error("oauth: the store failed with %d, request %s", error, o->request->id);
	return fail(o, 500, "UNEXPECTED_ERROR", "The service could not read or write its store. Try again later.");
}

/* Refusals. Libraries for OAuth read `error` as one of RFC 6749's words. Our own document has the status there, as a
 * number: at these two endpoints the word takes its place, and error_description stands beside our other fields. */

static const char *error_word(const struct problem *p)
{
	static const struct {
		const char *code, *word;
	} words[] = {{"INVALID_CLIENT", "invalid_client"},
	             {"UNSUPPORTED_GRANT_TYPE", "unsupported_grant_type"},
	             {"UNAUTHORIZED_CLIENT", "unauthorized_client"},
	             {"IP_ADDRESS_NOT_ON_ACCESS_LIST", "access_denied"},
	             {"CROSS_SITE_REQUEST", "access_denied"},
	             {"INVALID_GRANT", "invalid_grant"},
	             {"AUTHORIZATION_PENDING", "authorization_pending"}, /* RFC 8628 */
	             {"ACCESS_DENIED", "access_denied"}};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(p->code, words[i].code) == 0)
			return words[i].word;
	return p->status == 429 || p->status == 503 ? "temporarily_unavailable"
	       : p->status < 500                    ? "invalid_request"
	                                            : "server_error";
}

/* RFC 6749 allows printable ASCII without quotes and backslashes. */
static struct str error_description(struct arena *a, struct str detail)
{
	char *text = arena_z(a, detail);
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
			*c = '\'';
	return str_of(text);
}

void oauth_problem(struct request *r, const struct problem *p)
{
	struct str description = error_description(r->arena, p->detail);
	json_t *parameters = json_loadb(p->parameters.p, p->parameters.n, 0, NULL);
	response_header(&r->response, "pragma", STR("no-cache"));
	answer_value(r, p->status,
	             json_pack("{s:s%, s:s, s:s%, s:s, s:o, s:s}", "detail", p->detail.p, p->detail.n, "error",
	                       error_word(p), "error_description", description.p, description.n, "errorCode", p->code,
	                       "parameters", parameters ? parameters : json_array(), "reason",
	                       status_reason(p->status)));
}

/* The form. */

/* application/x-www-form-urlencoded; a '%' that starts no byte stays itself. */
static struct str form_decode(struct arena *a, struct str s)
{
	char *out = arena_alloc(a, s.n + 1);
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++) {
		int high = s.p[i] == '%' && s.n - i > 2 ? hex_value(s.p[i + 1]) : -1;
		int low = high >= 0 ? hex_value(s.p[i + 2]) : -1;
		if (low >= 0) {
			out[n++] = (char)(high << 4 | low);
			i += 2;
		} else {
			out[n++] = (char)(s.p[i] == '+' ? ' ' : s.p[i]);
		}
	}
	return (struct str){out, n};
}

static struct str *form_field(struct form *f, struct str name)
{
	return str_is(name, "grant_type")      ? &f->grant_type
	       : str_is(name, "client_id")     ? &f->client_id
	       : str_is(name, "client_secret") ? &f->client_secret
	       : str_is(name, "token")         ? &f->token
	       : str_is(name, "device_code")   ? &f->device_code
	                                       : NULL;
}

static int form_parse(struct oauth *o)
{
	struct request *r = o->request;
	struct str type, rest = r->body, pair, name, value;
	str_cut(request_header(r, "content-type"), ';', &type, &value);
	if (!str_ieq(str_trim(type), STR("application/x-www-form-urlencoded")))
		return fail(o, 400, "INVALID_REQUEST", "Content-Type: must be application/x-www-form-urlencoded.");
	for (int count = 0; rest.n; count++) {
		if (count == FORM_MAX)
			return fail(o, 400, "INVALID_REQUEST", "The form has too many parameters.");
		str_cut(rest, '&', &pair, &rest);
		str_cut(pair, '=', &name, &value);
		struct str *field = form_field(&o->form, form_decode(r->arena, name));
		if (!field)
			continue;
		if (field->p)
			return fail(o, 400, "INVALID_REQUEST", "A parameter is given more than once.");
		*field = form_decode(r->arena, value);
	}
	return 0;
}

/* The client. */

struct credentials {
	struct str id, secret;
};

/* Candidates in *ret_list: as sent and, for Basic, URL-decoded, which RFC 6749 asks for and many clients do not do. */
static int credentials_take(struct oauth *o, struct credentials ret_list[2], size_t *ret_count)
{
	struct request *r = o->request;
	struct str header = str_trim(request_header(r, "authorization"));
	char raw[CREDENTIALS_MAX];
	if (request_header_count(r, "authorization") > 1)
		return fail(o, 400, "INVALID_REQUEST", "Authorization is given more than once.");
	if (!header.n) {
		if (!o->form.client_id.n || !o->form.client_secret.n)
			return fail_client(o);
		ret_list[0] = (struct credentials){o->form.client_id, o->form.client_secret};
		*ret_count = 1;
		return 0;
	}
	if (header.n < 6 || !str_ieq((struct str){header.p, 6}, STR("Basic ")))
		return fail_client(o);
	ssize_t n = base64_decode(str_trim((struct str){header.p + 6, header.n - 6}), raw, sizeof raw);
	struct credentials sent;
	if (n < 0 || !str_cut(arena_dup(r->arena, (struct str){raw, (size_t)n}), ':', &sent.id, &sent.secret))
		return fail_client(o);
	struct credentials decoded = {form_decode(r->arena, sent.id), form_decode(r->arena, sent.secret)};
	if (o->form.client_id.n && !str_eq(o->form.client_id, sent.id) && !str_eq(o->form.client_id, decoded.id))
		return fail(o, 400, "INVALID_REQUEST", "client_id: is not the one in Authorization.");
	ret_list[0] = decoded;
	ret_list[1] = sent;
	*ret_count = str_eq(sent.id, decoded.id) && str_eq(sent.secret, decoded.secret) ? 1 : 2;
	return 0;
}

/* -ENOENT when the id and secret are not those of an account. */
static int client_find(struct tx *tx, struct arena *a, const struct credentials *given, struct client *ret_client)
{
	char hash[65];
	struct str account;
	struct doc *secrets;
	size_t count = 0;
	const struct doc *found = NULL;
	int64_t until = 0;
	sha256_hex(given->secret, hash);
	if (!given->id.n || !given->secret.n)
		return -ENOENT;
	int r = tx_ref_get(tx, a, "service_account_client", given->id, &account);
	if (r == 0)
		r = tx_list(tx, a, "sa_secret", account, 0, SECRETS_MAX, &secrets, &count);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		if (str_eq_secret(secrets[i].secret, str_of(hash)) && secret_in_force(&secrets[i], &until)) {
			found = &secrets[i];
			ret_client->until_ms = until;
		}
	if (!found || !id_is_valid(account) || !id_is_valid(found->id))
		return -ENOENT;
	struct principal *principal;
	r = principal_load(tx, PRINCIPAL_SERVICE_ACCOUNT, account, &principal);
	if (r < 0)
		return r;
	ret_client->principal = principal;
	memcpy(ret_client->account.z, account.p, ID_LEN);
	memcpy(ret_client->secret.z, found->id.p, ID_LEN);
	return 0;
}

static int too_many(struct oauth *o, unsigned seconds)
{
	response_header(&o->request->response, "retry-after", arena_printf(o->request->arena, "%u", seconds));
	return fail(o, 429, "TOO_MANY_FAILED_ATTEMPTS",
	            "Too many failed attempts from this address. Please retry after %u seconds.", seconds);
}

static void client_release(void *principal)
{
	principal_unref(principal);
}

static int client_authenticate(struct oauth *o, struct client *ret_client)
{
	struct request *r = o->request;
	struct credentials list[2] = {{.id = STR_NONE}};
	struct attempts *attempts = o->service->attempts;
	size_t count = 0;
	unsigned seconds = 0;
	int result = credentials_take(o, list, &count);
	enum attempt_state attempt = attempt_ask(attempts, list[0].id, &r->peer, &seconds);
	if (attempt == ATTEMPT_REFUSED)
		return too_many(o, seconds);
	int found = -ENOENT;
	for (size_t i = 0; result == 0 && found == -ENOENT && i < count; i++)
		found = client_find(lane_here(o->service)->reader, r->arena, &list[i], ret_client);
	if (result == 0 && found == -ENOENT)
		result = fail_client(o);
	else if (result == 0 && found < 0)
		result = fail_store(o, found);
	if (result == -401)
		attempt_failed(attempts, list[0].id, &r->peer);
	if (result == -401 && attempt != ATTEMPT_OPEN)
		return too_many(o, seconds);
	if (result < 0)
		return result;
	attempt_succeeded(attempts, list[0].id, &r->peer);
	arena_defer(r->arena, client_release, ret_client->principal);
	if (access_list_permits(ret_client->principal, &r->peer))
		return 0;
	char peer[IP_TEXT];
	ip_format(&r->peer, peer);
	result = fail(o, 403, "IP_ADDRESS_NOT_ON_ACCESS_LIST",
	              "The address %s is not on the access list of this credential.", peer);
	o->problem.parameters = arena_printf(r->arena, "[\"%s\"]", peer);
	return result;
}

static int post_only(struct oauth *o)
{
	if (str_is(o->request->method, "POST"))
		return 0;
	response_header(&o->request->response, "allow", STR("POST"));
	return fail(o, 405, "METHOD_NOT_ALLOWED", "%.*s is not supported here. Use POST.", STR_ARG(o->request->method));
}

/* A form is what a page of another site can make a browser send without asking anybody. Wrong credentials would then
 * use up the tries of the reader's address, and codes that nobody asked for its places (identity/devices.h). */
static int origin_check(struct oauth *o)
{
	if (request_fetch_site(o->request) != FETCH_OTHER)
		return 0;
	return fail(o, 403, "CROSS_SITE_REQUEST", "A page of another site has made this request.");
}

/* What all endpoints ask first. */
static int admit(struct oauth *o)
{
	int r = post_only(o);
	r = r < 0 ? r : origin_check(o);
	return r < 0 ? r : form_parse(o);
}

static void oauth_refuse(struct oauth *o)
{
	oauth_problem(o->request, &o->problem);
	respond_here(o->request);
}

void oauth_device(struct service *s, struct request *r)
{
	struct oauth o = {.service = s, .request = r};
	if (admit(&o) < 0)
		oauth_refuse(&o);
	else
		device_authorize(s, r);
}

void oauth_token(struct service *s, struct request *r)
{
	struct oauth o = {.service = s, .request = r};
	struct client client = {0};
	int result = admit(&o);
	if (result == 0 && str_is(o.form.grant_type, DEVICE_GRANT)) {
		device_token(s, r, o.form.device_code);
		return;
	}
	if (result == 0)
		result = client_authenticate(&o, &client);
	if (result == 0 && !o.form.grant_type.n)
		result = fail(&o, 400, "INVALID_REQUEST", "grant_type: is required. It must be client_credentials.");
	else if (result == 0 && !str_is(o.form.grant_type, "client_credentials"))
		result = fail(&o, 400, "UNSUPPORTED_GRANT_TYPE", "grant_type: must be client_credentials.");
	if (result < 0) {
		oauth_refuse(&o);
		return;
	}
	int64_t now = clock_now_ms(), lifetime = (client.until_ms - now) / 1000;
	struct str token = token_issue(r->arena, id_str(&client.account), id_str(&client.secret),
	                               now + TOKEN_SECONDS * INT64_C(1000));
	use_secret(s, thread_lane, id_str(&client.secret));
	response_header(&r->response, "pragma", STR("no-cache")); /* RFC 6749, 5.1 */
	/* It ends with its secret, if not before. */
	answer_value(r, 200,
	             json_pack("{s:s%, s:s, s:I}", "access_token", token.p, token.n, "token_type", "Bearer",
	                       "expires_in", (json_int_t)(lifetime < TOKEN_SECONDS ? lifetime : TOKEN_SECONDS)));
	respond_here(r);
}

/* Revocation. */

struct revocation {
	struct write write;
	struct oauth o;
	struct token token;
	struct call call; /* for the event: who, from where */
};

/* What the event says that it is about: nothing beyond its type. */
static const struct op revoke_op = {.id = "revokeToken", .method = METHOD_POST};

/* Forgets revocations of tokens that have expired, oldest first, so that their number stays that of an hour. */
static int revocations_sweep(struct tx *tx, struct arena *a)
{
	struct doc *docs;
	size_t count;
	int r = tx_list(tx, a, "token_revoked", STR(""), 0, SWEEP, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (docs[i].created_ms + TOKEN_SECONDS * INT64_C(1000) >= clock_now_ms())
			break;
		r = tx_delete(tx, "token_revoked", docs[i].id);
	}
	return r;
}

static int revoke_run(struct tx *tx, void *ctx)
{
	struct revocation *v = ctx;
	struct arena *a = v->o.request->arena;
	struct doc doc;
	int r = tx_get(tx, a, "token_revoked", id_str(&v->token.unique), &doc);
	if (r != -ENOENT)
		return r;
	r = revocations_sweep(tx, a);
	if (r < 0)
		return r;
	tx_touch_identity(tx);
	v->call.tx = tx;
	event_set_type(&v->call, "OAUTH_TOKEN_REVOKED");
	event_scope(&v->call, str_of(v->call.caller->org_id), STR_NONE);
	r = event_next(&v->call);
	if (r < 0)
		return r;
	return doc_insert(tx, "token_revoked", id_str(&v->token.unique), STR_NONE, STR_NONE,
	                  arena_printf(a, "{\"expiresAtMs\":%lld}", (long long)v->token.expires_ms));
}

static void revoke_done(void *ctx, int result)
{
	struct revocation *v = ctx;
	if (result < 0) {
		fail_store(&v->o, result);
		oauth_problem(v->o.request, &v->o.problem);
	} else {
		answer_value(v->o.request, 200, json_object());
	}
	http_respond_from_thread(v->o.request);
}

void oauth_revoke(struct service *s, struct request *r)
{
	struct revocation *v = arena_new_of(r->arena, struct revocation);
	struct client client = {0};
	v->o = (struct oauth){.service = s, .request = r};
	v->write = (struct write){.run = revoke_run, .done = revoke_done, .ctx = v, .item.key = address_key(r)};
	int result = admit(&v->o);
	if (result == 0 && device_revoke(s, r, v->o.form.token))
		return;
	if (result == 0)
		result = client_authenticate(&v->o, &client);
	v->call = (struct call){
	        .service = s, .request = r, .arena = r->arena, .op = &revoke_op, .caller = client.principal};
	if (result == 0 && !v->o.form.token.n)
		result = fail(&v->o, 400, "INVALID_REQUEST", "token: is required.");
	bool ours = result == 0 && token_parse(v->o.form.token, &v->token);
	if (ours && !str_eq(id_str(&v->token.account_id), id_str(&client.account)))
		result = fail(&v->o, 400, "UNAUTHORIZED_CLIENT", "token: was issued to another client.");
	else if (ours && v->token.expires_ms > clock_now_ms()) {
		if (store_write(s->store, &v->write))
			return;
		response_header(&r->response, "retry-after", STR("1"));
		result = fail(&v->o, 503, "SERVICE_BUSY",
		              "The service has too many writes waiting. Try again in a second.");
	}
	if (result < 0) {
		oauth_refuse(&v->o);
		return;
	}
	answer_value(r, 200, json_object());
	respond_here(r);
}

/* The frame of what people do with browsers. */
#include "api/sign_in/visit.h"

#include "base/log.h"
#include "call/answer.h"
#include "call/workers.h"
#include "identity/accounts.h"
#include "identity/attempts.h"
#include "identity/identity.h"

#include <errno.h>

#define SLOW_MAX 4 /* few more than are hashed at once: those that wait do so here, where it is fair */
#define SLOW_WAIT 256
#define PAGE_POLICY "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

/* Not of the catalog: it only stands in the events. */
static const struct op visit_op = {.id = "session", .method = METHOD_POST};

static struct pool hashing = POOL(SLOW_MAX, SLOW_WAIT);

/* The answer. */

static void page_answer(struct visit *v)
{
	struct response *a = &v->request->response;
	a->status = v->status ? v->status : 200;
	a->body = v->page;
	response_header(a, "content-type", STR("text/html; charset=utf-8"));
	response_header(a, "content-security-policy", STR(PAGE_POLICY));
	response_header(a, "referrer-policy", STR("no-referrer"));
}

/* Guesses are the operator's to see. */
static void refusal_tell(struct visit *v)
{
	const struct problem *p = &v->call.problem;
	const struct principal *caller = v->call.caller;
	struct str whose = v->whose.n ? v->whose : caller ? str_of(caller->name) : STR("somebody");
	char peer[IP_TEXT];
	if (!v->trying || p->status < 400 || p->status >= 500)
		return;
	attempt_wrong(v->service->attempts);
	ip_format(&v->request->peer, peer);
	log_info("sign-in: refused: %.*s from %s: %s", STR_ARG(whose), peer, v->why ? v->why : p->code);
}

static void answer_fill(struct visit *v)
{
	struct request *r = v->request;
	refusal_tell(v);
	for (size_t i = 0; i < v->call.extra_header_count; i++)
		response_header(&r->response, v->call.extra_headers[i][0].p, v->call.extra_headers[i][1]);
	if (v->call.problem.status) {
		answer_problem(r, &v->call.problem);
		return;
	}
	if (v->cookie.n)
		response_header(&r->response, "set-cookie", v->cookie);
	if (v->page.n)
		page_answer(v);
	else if (v->out)
		answer_value(r, v->status ? v->status : 200, json_incref(v->out));
	else
		r->response.status = v->status ? v->status : 204;
}

static void answer_here(struct visit *v)
{
	answer_fill(v);
	respond_here(v->request);
}

static void answer_from_thread(struct visit *v)
{
	answer_fill(v);
	http_respond_from_thread(v->request);
}

static int fail_busy(struct visit *v)
{
	call_header(&v->call, STR("retry-after"), STR("1"));
	return call_fail(&v->call, 503, "SERVICE_BUSY",
	                 "The service has too many such calls under way. Try again in a second.");
}

/* save() */

static int save_run(struct tx *tx, void *ctx)
{
	struct visit *v = ctx;
	v->call.problem = (struct problem){0};
	v->call.event = (struct call_event){0};
	v->call.extra_header_count = v->headers;
	v->call.tx = tx;
	v->cookie = STR_NONE;
	v->out = NULL;
	v->status = 0;
	v->note_count = 0;
	v->signed_in = false;
	int result = v->save(v);
	v->call.tx = NULL;
	return result < 0 ? result : 0;
}

static void save_done(void *ctx, int result)
{
	struct visit *v = ctx;
	/* What the store itself refuses is told instead of what the step had found. */
	if (result == -EIO || result == -ENOTCONN || result == -ENOSPC)
		v->call.problem = (struct problem){0};
	if (result < 0 && !v->call.problem.status)
		call_fail_store(&v->call, result, "session");
	bool kept = result == 0 && !v->call.problem.status;
	for (size_t i = 0; kept && i < v->note_count; i++)
		log_info("%.*s", STR_ARG(v->notes[i]));
	if (kept && v->signed_in)
		attempt_signed_in(v->service->attempts);
	if (v->ended)
		v->ended(v, kept);
	answer_from_thread(v);
}

static bool save_start(struct visit *v)
{
	v->headers = v->call.extra_header_count;
	v->write = (struct write){.run = save_run, .done = save_done, .ctx = v, .item.key = address_key(v->request)};
	return store_write(v->service->store, &v->write);
}

/* slow() */

static void slow_run(void *ctx)
{
	struct visit *v = ctx;
	int result = v->slow(v);
	if (result < 0 && !v->call.problem.status)
		fail_busy(v);
	if (result == 0 && v->save && save_start(v))
		return;
	if (result == 0 && v->save)
		fail_busy(v);
	answer_from_thread(v);
}

/* True: the answer comes later. */
static bool go_on(struct visit *v)
{
	bool started;
	if (v->slow) {
		v->work = (struct pool_work){.run = slow_run, .ctx = v};
		started = pool_run(v->pool ? v->pool : &hashing, &v->work,
		                   v->pool_key ? v->pool_key : address_key(v->request));
	} else if (v->save) {
		started = save_start(v);
	} else {
		return false;
	}
	if (!started)
		fail_busy(v);
	return started;
}

/* The request. */

static bool row_fits(const struct visit_row *row, struct str path)
{
	struct str wanted = str_of(row->path);
	return wanted.n && str_ends(wanted, STR("/")) ? str_starts(path, wanted) && path.n > wanted.n
	                                              : str_eq(path, wanted);
}

/* NULL after a refusal. */
static const struct visit_row *row_find(struct visit *v, struct str path, const struct visit_row *rows, size_t count)
{
	struct str method = str_is(v->request->method, "HEAD") ? STR("GET") : v->request->method, allowed = STR_NONE;
	for (size_t i = 0; i < count; i++) {
		if (!row_fits(&rows[i], path))
			continue;
		if (str_is(method, rows[i].method))
			return &rows[i];
		allowed = arena_printf(v->arena, "%.*s%s%s", STR_ARG(allowed), allowed.n ? ", " : "", rows[i].method);
	}
	if (allowed.n) {
		call_header(&v->call, STR("allow"), allowed);
		call_fail(&v->call, 405, "METHOD_NOT_ALLOWED", "Use %.*s.", STR_ARG(allowed));
	} else {
		call_fail(&v->call, 404, "RESOURCE_NOT_FOUND", "There is nothing at this path.");
	}
	return NULL;
}

/* A page of another site may make a browser send a request, but neither choose what Sec-Fetch-Site says nor leave it
 * out. What has a cookie and not this header comes from a browser that is too old to be told from such a page. */
static int origin_check(struct visit *v, const struct visit_row *row)
{
	const struct request *r = v->request;
	enum fetch_site site = request_fetch_site(r);
	if (row->flags & VISIT_OPEN || strcmp(row->method, "GET") == 0 || site == FETCH_SAME_ORIGIN)
		return 0;
	if (site == FETCH_UNSAID && !request_header_count(r, "cookie"))
		return 0;
	return call_fail(&v->call, 403, "CROSS_SITE_REQUEST", "This can only be asked for by the console's own pages.");
}

static int body_read(struct visit *v)
{
	struct request *r = v->request;
	struct str type, rest;
	str_cut(request_header(r, "content-type"), ';', &type, &rest);
	if (!str_ieq(str_trim(type), STR("application/json")))
		return call_fail(&v->call, 415, "UNSUPPORTED_MEDIA_TYPE", "Content-Type: must be application/json.");
	v->body = json_keep(v->arena, json_loadb(r->body.p, r->body.n, JSON_REJECT_DUPLICATES, NULL));
	return json_is_object(v->body) ? 0
	                               : call_fail(&v->call, 400, "INVALID_JSON", "The body must be a JSON object.");
}

static void caller_release(void *principal)
{
	principal_unref(principal);
}

static int caller_find(struct visit *v)
{
	int result = session_caller(v->service, v->reader, v->arena, v->request, &v->session, &v->call.caller);
	if (result == 0)
		arena_defer(v->arena, caller_release, v->call.caller);
	if (result == -ENOENT || result == -EACCES)
		return call_fail(&v->call, 401, "NOT_SIGNED_IN", "Nobody is signed in, or the session has ended.");
	return result < 0 ? call_fail_store(&v->call, result, "session") : 0;
}

static int run(struct visit *v, const struct visit_row *row)
{
	v->reader = lane_here(v->service)->reader;
	tx_begin_read(v->reader);
	v->call.tx = v->reader;
	int result = row->flags & VISIT_SIGNED_IN ? caller_find(v) : 0;
	if (result == 0 && row->flags & VISIT_BODY)
		result = body_read(v);
	if (result == 0)
		result = row->run(v);
	tx_end_read(v->reader);
	v->call.tx = v->reader = NULL;
	if (result < 0 && !v->call.problem.status)
		call_fail_store(&v->call, result, "session");
	return result;
}

void visit_serve(struct service *s, struct request *r, const struct visit_row *rows, size_t count)
{
	struct visit *v = arena_new_of(r->arena, struct visit);
	struct str path = {r->path.p + sizeof SESSION_PATH - 1, r->path.n - (sizeof SESSION_PATH - 1)};
	v->service = s;
	v->request = r;
	v->arena = r->arena;
	v->call = (struct call){.service = s, .request = r, .arena = r->arena, .op = &visit_op};
	const struct visit_row *row = row_find(v, path, rows, count);
	int result = row ? origin_check(v, row) : -ENOENT;
	if (result == 0) {
		size_t known = strlen(row->path);
		v->rest = (struct str){path.p + known, path.n - known};
		result = run(v, row);
	}
	if (result < 0 || !go_on(v))
		answer_here(v);
}

/* For the steps. */

static struct str attempt_name(struct visit *v, struct str name)
{
	return arena_lower(v->arena, name);
}

static int too_many(struct visit *v, unsigned seconds)
{
	call_header(&v->call, STR("retry-after"), arena_printf(v->arena, "%u", seconds));
	return call_fail(&v->call, 429, "TOO_MANY_FAILED_ATTEMPTS",
	                 "Too many failed attempts from this address. Please retry after %u seconds.", seconds);
}

int visit_attempt(struct visit *v, struct str name)
{
	unsigned seconds = 0;
	name = attempt_name(v, name);
	enum attempt_state state = attempt_begin(v->service->attempts, name, &v->request->peer, &seconds);
	if (state == ATTEMPT_REFUSED)
		return too_many(v, seconds);
	v->known_wait = state == ATTEMPT_KNOWN ? seconds : 0;
	v->trying = true;
	return 0;
}

int visit_attempt_password(struct visit *v, struct str username)
{
	unsigned seconds = 0;
	int result = visit_attempt(v, username);
	if (result < 0 || device_is_known(v->arena, v->request, attempt_name(v, username)))
		return result;
	if (!attempt_anywhere(v->service->attempts, attempt_name(v, username), &v->request->peer, &seconds)) {
		v->trying = false; /* nothing is looked at */
		return too_many(v, seconds);
	}
	v->counted = true;
	return 0;
}

void visit_attempt_right(struct visit *v, struct str name)
{
	name = attempt_name(v, name);
	v->trying = false;
	if (v->counted)
		attempt_anywhere_right(v->service->attempts, name);
	attempt_take_back(v->service->attempts, name, &v->request->peer);
	if (name.n)
		attempt_succeeded(v->service->attempts, name, &v->request->peer);
}

void visit_attempt_none(struct visit *v, struct str name)
{
	v->trying = false;
	attempt_take_back(v->service->attempts, attempt_name(v, name), &v->request->peer);
}

void visit_note(struct visit *v, struct str line)
{
	if (v->note_count < sizeof v->notes / sizeof *v->notes)
		v->notes[v->note_count++] = line;
}

int visit_fail_sign_in(struct visit *v)
{
	if (v->known_wait)
		return too_many(v, v->known_wait);
	return call_fail(&v->call, 401, "INVALID_CREDENTIALS", "The name, the password or the code is not right.");
}

int visit_text(struct visit *v, const char *name, size_t most, struct str *ret_text)
{
	const json_t *given = json_object_get(v->body, name);
	struct str text = json_field(v->body, name);
	if (!given || (json_is_string(given) && !text.n))
		return call_fail_field(&v->call, 400, "VALIDATION_ERROR", name, "is required.");
	if (!text.n || text.n > most)
		return call_fail_field(&v->call, 400, "VALIDATION_ERROR", name, "must be a text of at most %zu bytes.",
		                       most);
	*ret_text = text;
	return 0;
}

int visit_own_account(struct visit *v)
{
	if (!str_is_one_of("oidc|saml", v->session.how))
		return 0;
	return call_fail(&v->call, 403, "SESSION_IS_FEDERATED",
	                 "An identity provider has signed you in: passwords, codes and keys of the account cannot be "
	                 "changed in such a session.");
}

int visit_own_factors(struct visit *v)
{
	int64_t passkeys = 0;
	int result = visit_own_account(v);
	if (result == 0 && !v->session.strong && !str_is(v->session.how, "letter"))
		result = tx_count(v->call.tx, "user_passkey", v->session.user_id, &passkeys);
	if (result < 0)
		return result;
	if (!passkeys)
		return session_is_proven(v->session.proven_ms)
		               ? 0
		               : call_fail(&v->call, 403, PROOF_NEEDED, PROOF_NEEDED_DETAIL);
	return call_fail(&v->call, 403, "PASSKEY_NEEDED",
	                 "The account has a passkey: sign in with that to change how it is signed in to. Who has lost "
	                 "it asks for a letter, as for a forgotten password.");
}

int visit_still_signed_in(struct visit *v)
{
	struct session now;
	int result = session_look(v->call.tx, v->arena, v->session.id, &now);
	if (result == 0)
		v->session = now;
	return result == -EACCES ? call_fail(&v->call, 401, "NOT_SIGNED_IN", "The session has ended.") : result;
}

int visit_sign_in(struct visit *v, struct str user_id, const char *how, bool strong)
{
	struct doc user;
	struct tx *tx = v->call.tx;
	int result = tx_get(tx, v->arena, "user", user_id, &user);
	if (result == 0)
		result = session_replace(tx, v->arena, v->request);
	if (result == 0)
		result = user_signed_in(tx, v->arena, user_id);
	if (result == 0)
		result = session_begin(tx, v->arena, v->service, v->request, user_id, how, strong, &v->session,
		                       &v->cookie);
	if (result < 0)
		return result;
	char peer[IP_TEXT];
	ip_format(&v->request->peer, peer);
	struct str name = json_field(doc_json(v->arena, user.body), "username");
	visit_note(v, arena_printf(v->arena, "sign-in: %.*s from %s by %s, session %.*s", STR_ARG(name), peer, how,
	                           STR_ARG(v->session.id)));
	v->signed_in = true;
	if (!device_is_known(v->arena, v->request, name))
		call_header(&v->call, STR("set-cookie"), device_cookie(v->arena, name));
	if (!v->out)
		v->out = json_new(v->arena);
	json_put_str(v->out, "userId", user_id);
	json_put_str(v->out, "username", name);
	return 0;
}

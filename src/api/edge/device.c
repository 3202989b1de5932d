/* Device authorization (RFC 8628). A client without a browser gets two codes: a secret one, with which it asks for the
 * token, and a short one that the person confirms in the console (api/sign_in/device.c). The token is of a session of
 * its own: the account's page shows and ends it, and it ends with what the person who has allowed it may do.
 *
 * There is no client to authenticate: whoever holds the device code gets the token, once. Asking writes to the store,
 * so what one address may have waiting is bounded (identity/devices.h). */
#include "api/edge/device.h"

#include "api/edge/edge.h"
#include "base/clock.h"
#include "base/log.h"
#include "call/answer.h"
#include "call/pool.h"
#include "call/workers.h"
#include "identity/accounts.h"
#include "identity/attempts.h"
#include "identity/devices.h"
#include "identity/identity.h"

#include <errno.h>

struct flow {
	struct write write;
	struct service *service;
	struct request *request;
	struct str device_code, user_code;
	struct token token; /* to be revoked */
	struct session session;
	struct str username;
	struct problem problem;
};

static void problem_set(struct flow *f, int status, const char *code, const char *detail)
{
	f->problem = (struct problem){.status = status, .code = code, .detail = str_of(detail)};
}

static void fault_set(struct flow *f, int error)
{
	bool away = error == -ENOTCONN || error == -ENOSPC || error == -EAGAIN;
	if (away || error == -EBUSY || error == -EDQUOT)
		response_header(&f->request->response, "retry-after", STR("60"));
	if (away)
		problem_set(f, 503, "STORE_UNAVAILABLE", "The service cannot write now. Try again in a while.");
	else if (error == -EBUSY)
		problem_set(f, 429, "TOO_MANY_DEVICE_CODES",
		            "Too many clients wait at this address. Codes are over after ten minutes.");
	else if (error == -EDQUOT)
		problem_set(f, 503, "TOO_MANY_DEVICE_CODES", "Too many clients wait. Try again in a while.");
	else if (error == -EACCES)
		problem_set(f, 400, "INVALID_GRANT",
		            "device_code: there is none such, or it is over. Ask for another.");
	else
		problem_set(f, 500, "UNEXPECTED_ERROR", "The service could not read or write its store. Try later.");
}

/* Fills the answer. */
static void answer_fill(struct flow *f, json_t *value)
{
	struct request *r = f->request;
	if (f->problem.status) {
		json_decref(value);
		oauth_problem(r, &f->problem);
		return;
	}
	response_header(&r->response, "pragma", STR("no-cache"));
	answer_value(r, 200, value);
}

static void flow_refuse(struct flow *f)
{
	answer_fill(f, NULL);
	respond_here(f->request);
}

static void write_start(struct flow *f, int (*run)(struct tx *tx, void *ctx), void (*done)(void *ctx, int result))
{
	f->write = (struct write){.run = run, .done = done, .ctx = f, .item.key = address_key(f->request)};
	if (store_write(f->service->store, &f->write))
		return;
	fault_set(f, -EAGAIN);
	flow_refuse(f);
}

static struct flow *flow_new(struct service *s, struct request *r)
{
	struct flow *f = arena_new_of(r->arena, struct flow);
	f->service = s;
	f->request = r;
	return f;
}

/* Asking for codes. */

static int authorize_run(struct tx *tx, void *ctx)
{
	struct flow *f = ctx;
	return device_begin(tx, f->request->arena, f->request, &f->device_code, &f->user_code);
}

static void authorize_done(void *ctx, int result)
{
	struct flow *f = ctx;
	const char *base = f->service->base_url;
	json_t *value = NULL;
	if (result < 0)
		fault_set(f, result);
	else
		value = json_pack("{s:s%, s:s%, s:o, s:o, s:i, s:i}", "device_code", f->device_code.p, f->device_code.n,
		                  "user_code", f->user_code.p, f->user_code.n, "verification_uri",
		                  json_sprintf("%s/console/device", base), "verification_uri_complete",
		                  json_sprintf("%s/console/device?code=%.*s", base, STR_ARG(f->user_code)),
		                  "expires_in", DEVICE_SECONDS_MAX, "interval", DEVICE_INTERVAL);
	answer_fill(f, value);
	http_respond_from_thread(f->request);
}

/* Who has too many is told so without a write. */
void device_authorize(struct service *s, struct request *r)
{
	struct flow *f = flow_new(s, r);
	struct tx *tx = lane_here(s)->reader;
	tx_begin_read(tx);
	int result = device_room(tx, r->arena, &r->peer);
	tx_end_read(tx);
	if (result < 0) {
		fault_set(f, result);
		flow_refuse(f);
		return;
	}
	write_start(f, authorize_run, authorize_done);
}

/* Asking for the token. */

/* What is known of the request says what to answer: 0 when the token may be given. */
static int answer_check(struct flow *f, int result, const struct device_request *d)
{
	if (result < 0)
		fault_set(f, result);
	else if (d->answer == DEVICE_ASKED)
		problem_set(f, 400, "AUTHORIZATION_PENDING", "The person has not answered yet.");
	return f->problem.status ? -EACCES : 0;
}

static int token_make(struct flow *f, struct tx *tx, const struct device_request *d)
{
	struct arena *a = f->request->arena;
	struct session by;
	struct str cookie;
	struct doc user;
	int result = session_look(tx, a, d->session, &by); /* who has signed out since does not let others in */
	if (result == 0)
		result = tx_get(tx, a, "user", d->user_id, &user);
	if (result == 0)
		result = user_signed_in(tx, a, d->user_id);
	if (result == 0)
		result = session_begin(tx, a, f->service, f->request, d->user_id, arena_z(a, d->how), d->strong,
		                       &f->session, &cookie);
	if (result == 0)
		f->username = json_field(doc_json(a, user.body), "username");
	return result == -ENOENT ? -EACCES : result;
}

static int token_run(struct tx *tx, void *ctx)
{
	struct flow *f = ctx;
	struct device_request d;
	f->problem = (struct problem){0};
	int result = answer_check(f, device_look(tx, f->request->arena, f->device_code, &d), &d);
	if (result < 0)
		return 0; /* it is said */
	result = device_end(tx, &d);
	if (result == 0 && d.answer == DEVICE_ALLOWED)
		result = token_make(f, tx, &d);
	if (result == -EACCES || d.answer == DEVICE_DENIED) {
		problem_set(f, 400, "ACCESS_DENIED", "The person has refused it, or has signed out since.");
		return 0;
	}
	return result;
}

static void token_done(void *ctx, int result)
{
	struct flow *f = ctx;
	struct request *r = f->request;
	json_t *value = NULL;
	char peer[IP_TEXT];
	if (result < 0)
		fault_set(f, result);
	if (!f->problem.status) {
		struct str token = token_issue(r->arena, f->session.user_id, f->session.id, f->session.expires_ms);
		value = json_pack("{s:s%, s:s, s:I, s:s%}", "access_token", token.p, token.n, "token_type", "Bearer",
		                  "expires_in", (json_int_t)((f->session.expires_ms - clock_now_ms()) / 1000),
		                  "username", f->username.p, f->username.n);
		attempt_signed_in(f->service->attempts);
		ip_format(&r->peer, peer);
		log_info("sign-in: %.*s from %s by a client that was allowed, session %.*s", STR_ARG(f->username), peer,
		         STR_ARG(f->session.id));
	}
	answer_fill(f, value);
	http_respond_from_thread(r);
}

/* Clients ask every few seconds, so only what changes something is a write. */
void device_token(struct service *s, struct request *r, struct str device_code)
{
	struct flow *f = flow_new(s, r);
	struct device_request d;
	struct tx *tx = lane_here(s)->reader;
	f->device_code = device_code;
	tx_begin_read(tx);
	int result = device_look(tx, r->arena, device_code, &d);
	tx_end_read(tx);
	if (answer_check(f, result, &d) < 0)
		flow_refuse(f);
	else
		write_start(f, token_run, token_done);
}

/* Revoking. */

static int revoke_run(struct tx *tx, void *ctx)
{
	struct flow *f = ctx;
	int result = session_end(tx, f->request->arena, id_str(&f->token.account_id), id_str(&f->token.secret_id));
	return result == -ENOENT ? 0 : result;
}

static void revoke_done(void *ctx, int result)
{
	struct flow *f = ctx;
	if (result < 0)
		fault_set(f, result);
	answer_fill(f, json_object());
	http_respond_from_thread(f->request);
}

bool device_revoke(struct service *s, struct request *r, struct str text)
{
	struct flow *f = flow_new(s, r);
	struct tx *tx = lane_here(s)->reader;
	struct doc session;
	if (!token_parse(text, &f->token))
		return false;
	tx_begin_read(tx);
	int result = tx_get(tx, r->arena, "user_session", id_str(&f->token.secret_id), &session);
	tx_end_read(tx);
	if (result < 0 || !str_eq(session.parent, id_str(&f->token.account_id)))
		return false;
	write_start(f, revoke_run, revoke_done);
	return true;
}

/* The person's side of device authorization (RFC 8628): who is signed in at a browser sees which client asks, and from
 * where, and allows it or not. Allowing leaves a way in behind, so it takes a fresh proof of who is there; guesses at
 * codes are counted like wrong passwords. */
#include "api/sign_in/sign_in.h"
#include "identity/devices.h"

#include <errno.h>

#define CODE_MAX 32

static int fail_unknown(struct visit *v)
{
	return call_fail(&v->call, 404, "DEVICE_CODE_NOT_FOUND",
	                 "No client waits under this code: it is good for ten minutes, and once.");
}

/* Counted as a wrong try until the request is found. */
static int find(struct visit *v, struct tx *tx, struct str code, struct device_request *ret_device)
{
	int result = visit_attempt(v, v->session.user_id);
	if (result < 0)
		return result;
	v->why = "no such device code";
	result = device_find(tx, v->arena, code, ret_device);
	if (result == -ENOENT)
		return v->known_wait ? visit_fail_sign_in(v) : fail_unknown(v);
	if (result == 0)
		visit_attempt_right(v, v->session.user_id);
	return result;
}

int device_show(struct visit *v)
{
	struct device_request d;
	char peer[IP_TEXT];
	int result = find(v, v->reader, v->rest, &d);
	if (result < 0)
		return result;
	ip_format(&v->request->peer, peer);
	v->out = json_new(v->arena);
	json_put_str(v->out, "code", d.code);
	json_put_str(v->out, "address", d.address);
	json_put_str(v->out, "agent", d.agent);
	json_put_time(v->out, "expiresAt", d.until_ms);
	json_put(v->out, "sameAddress", json_boolean(str_is(d.address, peer)));
	return 0;
}

static bool is_allowed(const struct visit *v)
{
	return json_flag(v->body, "allow");
}

static int decide_save(struct visit *v)
{
	const struct device_request *d = v->state;
	struct device_request now;
	int result = visit_still_signed_in(v);
	if (result == 0)
		result = device_find(v->call.tx, v->arena, d->code, &now);
	if (result == -ENOENT)
		return fail_unknown(v);
	if (result == 0)
		result = device_decide(v->call.tx, v->arena, &now, &v->session, is_allowed(v));
	if (result < 0)
		return result;
	visit_note(v, arena_printf(v->arena, "sign-in: %s %s the client at %.*s", v->call.caller->name,
	                           is_allowed(v) ? "allows" : "refuses", STR_ARG(now.address)));
	return 0;
}

int device_decision(struct visit *v)
{
	struct device_request *d = arena_new_of(v->arena, struct device_request);
	struct str code;
	if (!json_is_boolean(json_object_get(v->body, "allow")))
		return call_fail_field(&v->call, 400, "VALIDATION_ERROR", "allow", "must be true or false.");
	int result = visit_text(v, "code", CODE_MAX, &code);
	if (result == 0 && is_allowed(v) && !session_is_proven(v->session.proven_ms))
		result = call_fail(&v->call, 403, PROOF_NEEDED, PROOF_NEEDED_DETAIL);
	if (result == 0)
		result = find(v, v->reader, code, d);
	if (result < 0)
		return result;
	v->state = d;
	v->save = decide_save;
	return 0;
}

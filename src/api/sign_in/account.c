/* What somebody who is signed in changes in the own account: the password, one-time codes, recovery codes. */
#include "api/sign_in/sign_in.h"

#include "base/clock.h"
#include "identity/accounts.h"
#include "identity/password.h"
#include "identity/recovery.h"
#include "identity/totp.h"
#include "outbox/outbox.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#define CODE_MAX 64
#define ISSUER "Steward"

struct change {
	struct str old, new, kept, new_hash, code;
};

/* In the person's own name: what waits of an organization must not keep such a letter back. */
int account_letter(struct tx *tx, struct arena *a, struct str user_id, struct str username, const char *subject,
                   struct str text)
{
	return outbox_mail(tx, a, user_id, username, str_of(subject), text);
}

int account_changed(struct visit *v, struct str user_id, struct str username, const char *what)
{
	char peer[IP_TEXT], now[CLOCK_TEXT];
	ip_format(&v->request->peer, peer);
	clock_format(clock_now_ms(), now);
	visit_note(v, arena_printf(v->arena, "account: %.*s from %s: %s", STR_ARG(username), peer, what));
	if (!outbox_has_mail(v->service->outbox))
		return 0;
	struct str text = arena_printf(v->arena,
	                               "Of your account %.*s: %s.\n\nFrom %s, at %s.\n\n"
	                               "If it was not you, ask for a new password at\n\n%s/console/sign-in\n\n"
	                               "and tell an owner of your organization.\n",
	                               STR_ARG(username), what, peer, now, v->service->base_url);
	return account_letter(v->call.tx, v->arena, user_id, username, "A change of your account at Steward", text);
}

/* Of who is signed in. */
static int own_changed(struct visit *v, const char *what)
{
	return account_changed(v, v->session.user_id, str_of(v->call.caller->name), what);
}

int account_take_over(struct tx *tx, struct arena *a, const struct doc *user)
{
	struct doc *keys;
	size_t count = 0;
	int result = sessions_end(tx, a, user->id, STR_NONE);
	if (result < 0 || user_is_proven(a, user))
		return result;
	result = tx_list_all(tx, a, "user_passkey", user->id, &keys, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = passkey_delete(tx, a, &keys[i]);
	if (result == 0)
		result = totp_remove(tx, user->id);
	if (result == 0 || result == -ENOENT)
		result = recovery_remove(tx, user->id);
	return result;
}

int account_set_password(struct visit *v, struct doc *user, struct str hash, struct str but)
{
	user->secret = hash;
	int result = tx_update(v->call.tx, user);
	return result < 0 ? result : sessions_end(v->call.tx, v->arena, user->id, but);
}

/* The account's owner shows once more that it is the one: with the password, or a code. */

static int own_user(struct visit *v, struct tx *tx, struct doc *ret_user)
{
	return tx_get(tx, v->arena, "user", v->session.user_id, ret_user);
}

static int fail_password(struct visit *v, const char *field)
{
	return call_fail_field(&v->call, 403, "WRONG_PASSWORD", field, "is not the one of the account.");
}

/* POST change-password */

static int change_slow(struct visit *v)
{
	struct change *c = v->state;
	if (!password_verify(c->old, c->kept))
		return fail_password(v, "old");
	visit_attempt_right(v, str_of(v->call.caller->name));
	return password_hash(v->arena, c->new, &c->new_hash);
}

static int change_save(struct visit *v)
{
	struct change *c = v->state;
	struct doc user;
	int result = visit_still_signed_in(v);
	if (result == 0)
		result = own_user(v, v->call.tx, &user);
	if (result == 0 && !str_eq(user.secret, c->kept))
		result = fail_password(v, "old");
	if (result == 0)
		result = account_set_password(v, &user, c->new_hash, v->session.id);
	return result < 0 ? result : own_changed(v, "the password was changed");
}

int account_change_password(struct visit *v)
{
	struct change *c = v->state = arena_new_of(v->arena, struct change);
	struct doc user;
	int result = visit_own_account(v);
	if (result == 0)
		result = visit_text(v, "old", PASSWORD_MAX, &c->old);
	if (result == 0)
		result = visit_text(v, "new", PASSWORD_MAX, &c->new);
	if (result == 0)
		result = password_check(v, "new", c->new, str_of(v->call.caller->name));
	if (result == 0)
		result = own_user(v, v->reader, &user);
	if (result < 0)
		return result;
	if (!user.secret.n)
		return call_fail(&v->call, 409, "NO_PASSWORD",
		                 "The account has no password. Ask for a letter to set one.");
	c->kept = user.secret;
	v->slow = change_slow;
	v->save = change_save;
	return visit_attempt(v, str_of(v->call.caller->name));
}

/* One-time codes. */

/* The name as a part of a URI. */
static struct str label_of(struct arena *a, struct str name)
{
	char *out = arena_alloc(a, 3 * name.n + 1), *to = out;
	for (size_t i = 0; i < name.n; i++) {
		unsigned char c = (unsigned char)name.p[i];
		if (isalnum(c) || strchr("-._~@", c))
			*to++ = (char)c;
		else
			to += snprintf(to, 4, "%%%02X", c);
	}
	return (struct str){out, (size_t)(to - out)};
}

static int begin_save(struct visit *v)
{
	struct str key = STR_NONE;
	int result = visit_still_signed_in(v);
	if (result == 0)
		result = totp_enroll(v->call.tx, v->arena, v->session.user_id, &key);
	if (result == -EEXIST)
		return call_fail(&v->call, 409, "TOTP_IS_ON", "One-time codes are in use already. End that first.");
	if (result < 0)
		return result;
	struct str label = label_of(v->arena, str_of(v->call.caller->name));
	v->out = json_new(v->arena);
	json_put_str(v->out, "secret", key);
	json_put_str(v->out, "uri",
	             arena_printf(v->arena, "otpauth://totp/" ISSUER ":%.*s?secret=%.*s&issuer=" ISSUER, STR_ARG(label),
	                          STR_ARG(key)));
	return 0;
}

int totp_begin(struct visit *v)
{
	v->save = begin_save;
	return visit_own_factors(v);
}

static int fail_code(struct visit *v, int result, unsigned seconds)
{
	if (result == -ENOENT)
		return call_fail(&v->call, 409, "TOTP_IS_OFF", "There is no key that the code could be of.");
	if (result == -EBUSY) {
		call_header(&v->call, STR("retry-after"), arena_printf(v->arena, "%u", seconds));
		return call_fail(&v->call, 429, "TOO_MANY_FAILED_ATTEMPTS",
		                 "Too many codes were wrong. Please retry after %u seconds.", seconds);
	}
	if (result != -EACCES)
		return result;
	call_fail_field(&v->call, 400, "WRONG_CODE", "code", "is not right, or was used before.");
	return VISIT_KEPT_REFUSAL;
}

static int codes_show(struct visit *v)
{
	json_t *codes = json_array();
	v->out = json_new(v->arena);
	json_put(v->out, "recoveryCodes", codes);
	return recovery_make(v->call.tx, v->arena, v->session.user_id, codes);
}

static int confirm_save(struct visit *v)
{
	const struct change *c = v->state;
	unsigned seconds = 0;
	int result = visit_still_signed_in(v);
	if (result < 0)
		return result;
	result = visit_own_factors(v);
	if (result < 0)
		return result;
	result = totp_check(v->call.tx, v->arena, v->session.user_id, c->code, true, &seconds);
	if (result < 0)
		return fail_code(v, result, seconds);
	result = sessions_end(v->call.tx, v->arena, v->session.user_id, v->session.id);
	if (result == 0)
		result = own_changed(v, "one-time codes are in use");
	if (result == 0)
		result = session_strengthen(v->call.tx, v->arena, v->session.id);
	return result < 0 ? result : codes_show(v);
}

int totp_confirm(struct visit *v)
{
	struct change *c = v->state = arena_new_of(v->arena, struct change);
	int result = visit_own_factors(v);
	if (result == 0)
		result = visit_text(v, "code", CODE_MAX, &c->code);
	c->code = str_trim(c->code);
	v->save = confirm_save;
	return result;
}

/* DELETE totp, with the password or a code. */

static int end_slow(struct visit *v)
{
	struct change *c = v->state;
	if (!password_verify(c->old, c->kept))
		return fail_password(v, "password");
	visit_attempt_right(v, str_of(v->call.caller->name));
	return 0;
}

static int end_save(struct visit *v)
{
	const struct change *c = v->state;
	unsigned seconds = 0;
	struct doc user;
	int result = visit_still_signed_in(v);
	if (result == 0)
		result = own_user(v, v->call.tx, &user);
	if (result < 0)
		return result;
	if (c->old.n && !str_eq(user.secret, c->kept))
		return fail_password(v, "password");
	if (!c->old.n)
		result = totp_check(v->call.tx, v->arena, user.id, c->code, false, &seconds);
	if (result == 0)
		result = totp_remove(v->call.tx, user.id);
	if (result < 0)
		return fail_code(v, result, seconds);
	result = recovery_remove(v->call.tx, user.id);
	return result < 0 ? result : own_changed(v, "one-time codes are not in use any more");
}

int totp_end(struct visit *v)
{
	struct change *c = v->state = arena_new_of(v->arena, struct change);
	struct doc user;
	int result = visit_own_account(v);
	v->save = end_save;
	c->old = json_field(v->body, "password");
	c->code = str_trim(json_field(v->body, "code"));
	if (result == 0 && (!c->old.n == !c->code.n || c->old.n > PASSWORD_MAX || c->code.n > CODE_MAX))
		return call_fail(&v->call, 400, "VALIDATION_ERROR", "Give either the password or a code.");
	if (result == 0)
		result = own_user(v, v->reader, &user);
	if (result < 0 || !c->old.n)
		return result;
	c->kept = user.secret;
	v->slow = end_slow;
	return visit_attempt(v, str_of(v->call.caller->name));
}

/* POST recovery-codes: new ones. */

static int again_save(struct visit *v)
{
	bool on = false;
	int result = visit_still_signed_in(v);
	if (result == 0)
		result = totp_is_on(v->call.tx, v->arena, v->session.user_id, &on);
	if (result < 0)
		return result;
	if (!on)
		return fail_code(v, -ENOENT, 0);
	result = own_changed(v, "new recovery codes were made");
	return result < 0 ? result : codes_show(v);
}

int recovery_again(struct visit *v)
{
	v->save = again_save;
	return visit_own_account(v);
}

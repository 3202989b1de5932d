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

/* `more` stands in the letter alone. */
static int change_tell(struct visit *v, struct str user_id, struct str username, const char *what, struct str more)
{
	char peer[IP_TEXT], now[CLOCK_TEXT];
	ip_format(&v->request->peer, peer);
	clock_format(clock_now_ms(), now);
	visit_note(v, arena_printf(v->arena, "account: %.*s from %s: %s", STR_ARG(username), peer, what));
	if (!outbox_has_mail(v->service->outbox))
		return 0;
	struct str text = arena_printf(v->arena,
	                               "Of your account %.*s: %s.\n\nFrom %s, at %s.\n%.*s\n"
	                               "If it was not you, ask for a new password at\n\n%s/console/sign-in\n\n"
	                               "and tell an owner of your organization.\n",
	                               STR_ARG(username), what, peer, now, STR_ARG(more), v->service->base_url);
	return account_letter(v->call.tx, v->arena, user_id, username, "A change of your account at Steward", text);
}

int account_changed(struct visit *v, struct str user_id, struct str username, const char *what)
{
	return change_tell(v, user_id, username, what, STR(""));
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

/* What a reset finds. Somebody who had a stolen session may have added factors of their own, which would outlive it: a
 * new password alone, which the letters advise, would not keep them out. What was added lately goes. It cannot be told
 * by the session that added it, because who has added a passkey can end that session and begin another. */

#define PASSKEY_FRESH_MS (7 * 86400000LL)
#define CODES_FRESH_MS 86400000LL

/* One line of the letter, and one entry of the answer. The name is whoever's who added it, so nothing of it can end the
 * line. */
static void factor_list(struct visit *v, json_t *list, const char *kind, struct str name, int64_t added_ms)
{
	json_t *one = json_object();
	char *plain = arena_alloc(v->arena, name.n + 1);
	memcpy(plain, name.p ? name.p : "", name.n);
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)plain[i] < ' ' || plain[i] == 0x7f)
			plain[i] = ' ';
	json_put_z(one, "kind", kind);
	if (name.n)
		json_put_str(one, "name", (struct str){plain, name.n});
	if (added_ms)
		json_put_time(one, "addedAt", added_ms);
	json_array_append_new(list, one);
}

static int passkeys_sort(struct visit *v, struct str user_id, struct found_factors *f)
{
	struct doc *keys;
	size_t count = 0;
	int result = tx_list_all(v->call.tx, v->arena, "user_passkey", user_id, &keys, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		bool fresh = clock_now_ms() - keys[i].created_ms < PASSKEY_FRESH_MS;
		factor_list(v, fresh ? f->removed : f->kept, "PASSKEY",
		            json_field(doc_json(v->arena, keys[i].body), "name"), keys[i].created_ms);
		result = fresh ? passkey_delete(v->call.tx, v->arena, &keys[i]) : 0;
	}
	return result;
}

/* Recovery codes go with one-time codes, and alone where only they are new. */
static int codes_sort(struct visit *v, struct str user_id, bool keep, struct found_factors *f)
{
	struct tx *tx = v->call.tx;
	int64_t session = v->service->session_hours * INT64_C(3600000), totp_ms = 0, recovery_ms = 0,
	        since = clock_now_ms() - (session > CODES_FRESH_MS ? session : CODES_FRESH_MS);
	bool on = false;
	int result = totp_is_on(tx, v->arena, user_id, &on);
	if (result == 0)
		result = totp_added(tx, v->arena, user_id, &totp_ms);
	if (result == 0)
		result = recovery_added(tx, v->arena, user_id, &recovery_ms);
	if (result < 0 || !on)
		return result;
	bool totp = !keep && totp_ms > since, recovery = totp || (!keep && recovery_ms > since);
	factor_list(v, totp ? f->removed : f->kept, "ONE_TIME_CODES", STR_NONE, totp_ms);
	if (recovery_ms)
		factor_list(v, recovery ? f->removed : f->kept, "RECOVERY_CODES", STR_NONE, recovery_ms);
	if (totp)
		result = totp_remove(tx, user_id);
	return result == 0 && recovery ? recovery_remove(tx, user_id) : result;
}

static void factors_text(struct buf *b, const char *title, const json_t *list)
{
	static const char *const words[][2] = {
	        {"PASSKEY", "passkey"}, {"ONE_TIME_CODES", "one-time codes"}, {"RECOVERY_CODES", "recovery codes"}};
	if (json_array_size(list))
		buf_printf(b, "\n%s:\n", title);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		struct str name = json_field(one, "name"), at = json_field(one, "addedAt");
		for (size_t k = 0; k < sizeof words / sizeof *words; k++)
			if (str_is(json_field(one, "kind"), words[k][0]))
				buf_printf(b, "  %s", words[k][1]);
		if (name.n)
			buf_printf(b, " \"%.*s\"", STR_ARG(name));
		if (at.n)
			buf_printf(b, ", added at %.*s", STR_ARG(at));
		buf_z(b, "\n");
	}
}

int account_reset(struct visit *v, struct doc *user, struct str hash, bool keeps_codes, struct found_factors *f)
{
	struct buf b = {0};
	f->removed = json_keep(v->arena, json_array());
	f->kept = json_keep(v->arena, json_array());
	int result = account_take_over(v->call.tx, v->arena, user);
	if (result == 0)
		result = passkeys_sort(v, user->id, f);
	if (result == 0)
		result = codes_sort(v, user->id, keeps_codes, f);
	if (result == 0)
		result = account_set_password(v, user, hash, STR_NONE);
	if (result < 0)
		return result;
	factors_text(&b, "Removed, because it was added lately", f->removed);
	factors_text(&b, "Still good for signing in; remove what is not yours", f->kept);
	buf_z(&b, "\nAPI keys, service accounts and invitations belong to organizations: their events tell what was "
	          "made in your name.\n");
	return change_tell(v, user->id, json_field(doc_json(v->arena, user->body), "username"),
	                   "the password was changed by a link", buf_keep(&b, v->arena));
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
	return visit_attempt_password(v, str_of(v->call.caller->name));
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
		result = visit_own_factors(v);
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

/* Once more who it is: {"password"} or {"code"}. A password is counted as that of a sign-in is, from all addresses
 * together: who had stolen a session would otherwise guess it here, from as many addresses as there are. */

static int again_slow(struct visit *v)
{
	struct change *c = v->state;
	if (!password_verify(c->old, c->kept))
		return fail_password(v, "password");
	visit_attempt_right(v, str_of(v->call.caller->name));
	return 0;
}

/* In run(): what the body says, and the password's hash at this time. */
static int again_read(struct visit *v)
{
	struct change *c = v->state = arena_new_of(v->arena, struct change);
	struct doc user;
	int result = visit_own_account(v);
	c->old = json_field(v->body, "password");
	c->code = str_trim(json_field(v->body, "code"));
	if (result == 0 && (!c->old.n == !c->code.n || c->old.n > PASSWORD_MAX || c->code.n > CODE_MAX))
		return call_fail(&v->call, 400, "VALIDATION_ERROR", "Give either the password or a code.");
	if (result == 0)
		result = own_user(v, v->reader, &user);
	if (result < 0 || !c->old.n)
		return result;
	c->kept = user.secret;
	v->slow = again_slow;
	return visit_attempt_password(v, str_of(v->call.caller->name));
}

/* In save(): 0 when it was right. A wrong code is counted, so its refusal is kept (VISIT_KEPT_REFUSAL). */
static int again_check(struct visit *v)
{
	const struct change *c = v->state;
	unsigned seconds = 0;
	struct doc user;
	int result = visit_still_signed_in(v);
	if (result == 0)
		result = own_user(v, v->call.tx, &user);
	if (result < 0)
		return result;
	if (c->old.n)
		return str_eq(user.secret, c->kept) ? 0 : fail_password(v, "password");
	result = totp_check(v->call.tx, v->arena, user.id, c->code, false, &seconds);
	return result < 0 ? fail_code(v, result, seconds) : 0;
}

/* POST proof */

static int prove_save(struct visit *v)
{
	int result = again_check(v);
	return result ? result : session_prove(v->call.tx, v->arena, v->session.id);
}

int account_prove(struct visit *v)
{
	v->save = prove_save;
	return again_read(v);
}

/* DELETE totp */

static int end_save(struct visit *v)
{
	int result = again_check(v);
	if (result)
		return result;
	result = totp_remove(v->call.tx, v->session.user_id);
	if (result < 0)
		return fail_code(v, result, 0);
	result = recovery_remove(v->call.tx, v->session.user_id);
	return result < 0 ? result : own_changed(v, "one-time codes are not in use any more");
}

int totp_end(struct visit *v)
{
	v->save = end_save;
	return again_read(v);
}

/* POST recovery-codes: new ones. */

static int again_save(struct visit *v)
{
	bool on = false;
	int result = visit_still_signed_in(v);
	if (result == 0)
		result = visit_own_factors(v);
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
	return visit_own_factors(v);
}

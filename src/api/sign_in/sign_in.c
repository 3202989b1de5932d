/* Signing in with a password, and with a one-time or a recovery code after it; the first owner's link; passwords that
 * were forgotten.
 *
 * Nobody learns here which names have accounts: an unknown name costs the same work and gets the same answer as a wrong
 * password, and who asks for a letter is answered before anything is looked up. */
#include "api/sign_in/sign_in.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "catalog/formats.h"
#include "catalog/schema.h"
#include "identity/accounts.h"
#include "identity/attempts.h"
#include "identity/password.h"
#include "identity/recovery.h"
#include "identity/tickets.h"
#include "identity/totp.h"
#include "outbox/outbox.h"

#include <errno.h>
#include <stdlib.h>

#define NAME_MAX_BYTES 256
#define TICKET_TEXT 4096
#define CODE_MAX 64
#define CODE_SECONDS 300 /* between the password and the code */
#define RESET_SECONDS 3600
#define RESET_PAUSE_MS 120000 /* between two letters to one person */
#define FINGERPRINT 16

struct entry {
	struct str username, password, user_id;
	struct str kept;     /* the account's hash, or empty */
	struct str new_hash; /* to be set */
	struct str code;
	bool recovers; /* the code is a recovery code */
	struct ticket ticket;
};

/* Tells whether the password is still the same, without telling the password's hash. */
static struct str fingerprint(struct arena *a, struct str hash)
{
	char text[65];
	sha256_hex(hash, text);
	return arena_dup(a, (struct str){text, FINGERPRINT});
}

int password_check(struct visit *v, const char *field, struct str password, struct str username)
{
	if (utf8_length(password) < PASSWORD_MIN)
		return call_fail_field(&v->call, 400, "INVALID_PASSWORD", field, "must have %d characters or more.",
		                       PASSWORD_MIN);
	if (password.n > PASSWORD_MAX)
		return call_fail_field(&v->call, 400, "INVALID_PASSWORD", field, "must not have more than %d bytes.",
		                       PASSWORD_MAX);
	if (str_ieq(password, username))
		return call_fail_field(&v->call, 400, "INVALID_PASSWORD", field,
		                       "must not be the name of the account.");
	return 0;
}

/* The account's hash; empty where there is no password, or one that its owner has not chosen. */
static struct str hash_of(struct arena *a, const struct doc *user)
{
	return user_is_proven(a, user) ? user->secret : STR_NONE;
}

/* A right password is enough, or has to be followed by a code. */
static int password_passed(struct visit *v, const struct doc *user, const char *how)
{
	bool on = false;
	int result = totp_is_on(v->call.tx, v->arena, user->id, &on);
	if (result < 0 || !on)
		return result < 0 ? result : visit_sign_in(v, user->id, how, false);
	char address[IP_TEXT];
	ip_format(&v->request->peer, address);
	struct str mark = fingerprint(v->arena, user->secret);
	struct str ticket = ticket_issue(v->arena, "code", user->id, CODE_SECONDS,
	                                 json_pack("{s:s%, s:s}", "password", mark.p, mark.n, "address", address));
	v->out = json_new(v->arena);
	json_put_z(v->out, "next", "TOTP");
	json_put_str(v->out, "ticket", ticket);
	json_put_time(v->out, "expiresAt", clock_now_ms() + CODE_SECONDS * INT64_C(1000));
	return 0;
}

/* POST password */

static int password_slow(struct visit *v)
{
	struct entry *e = v->state;
	bool right = password_verify(e->password, e->kept.n ? e->kept : password_nobodys());
	if (!right || !e->kept.n)
		return visit_fail_sign_in(v);
	visit_attempt_right(v, e->username);
	return 0;
}

static int password_save(struct visit *v)
{
	struct entry *e = v->state;
	struct doc user;
	int result = tx_get(v->call.tx, v->arena, "user", e->user_id, &user);
	if (result == -ENOENT || (result == 0 && !str_eq(hash_of(v->arena, &user), e->kept)))
		return visit_fail_sign_in(v);
	return result < 0 ? result : password_passed(v, &user, "password");
}

static int account_find(struct visit *v, struct entry *e)
{
	struct doc user;
	int result = tx_ref_get(v->reader, v->arena, "user_name", e->username, &e->user_id);
	if (result == 0)
		result = tx_get(v->reader, v->arena, "user", e->user_id, &user);
	if (result == 0)
		e->kept = hash_of(v->arena, &user);
	return result == -ENOENT ? 0 : result;
}

int sign_in_password(struct visit *v)
{
	struct entry *e = v->state = arena_new_of(v->arena, struct entry);
	int result = visit_text(v, "username", NAME_MAX_BYTES, &e->username);
	if (result == 0)
		result = visit_text(v, "password", PASSWORD_MAX, &e->password);
	if (result < 0)
		return result;
	e->username = arena_lower(v->arena, e->username);
	result = account_find(v, e);
	v->whose = e->user_id.n ? e->username : STR_NONE;
	if (result == 0)
		result = visit_attempt_password(v, e->username);
	v->slow = password_slow;
	v->save = password_save;
	return result;
}

/* POST totp, recovery: the second step. */

static struct str code_attempt(struct visit *v, const struct entry *e)
{
	return arena_printf(v->arena, "code/%.*s", STR_ARG(e->ticket.user_id));
}

static int code_right(struct visit *v, const struct entry *e)
{
	unsigned seconds = 0;
	int result = e->recovers ? recovery_use(v->call.tx, v->arena, e->ticket.user_id, e->code)
	                         : totp_check(v->call.tx, v->arena, e->ticket.user_id, e->code, false, &seconds);
	if (result != -EBUSY)
		return result == -ENOENT ? -EACCES : result;
	call_header(&v->call, STR("retry-after"), arena_printf(v->arena, "%u", seconds));
	return call_fail(&v->call, 429, "TOO_MANY_FAILED_ATTEMPTS",
	                 "Too many codes were wrong. Please retry after %u seconds, or use a recovery code.", seconds);
}

static int code_save(struct visit *v)
{
	struct entry *e = v->state;
	struct doc user;
	struct str mark = json_field(e->ticket.data, "password");
	int result = tx_get(v->call.tx, v->arena, "user", e->ticket.user_id, &user);
	/* A changed password ends what was begun with the old one. */
	if (result == -ENOENT || (result == 0 && !str_eq(fingerprint(v->arena, user.secret), mark)))
		return visit_fail_sign_in(v);
	if (result == 0)
		result = code_right(v, e);
	if (result == -EACCES) {
		result = ticket_miss(v->call.tx, v->arena, &e->ticket);
		if (result < 0 && result != -EACCES)
			return result;
		visit_fail_sign_in(v);
		return VISIT_KEPT_REFUSAL;
	}
	if (result == 0)
		result = ticket_use(v->call.tx, v->arena, &e->ticket);
	if (result == -EACCES)
		return visit_fail_sign_in(v);
	return result < 0 ? result
	                  : visit_sign_in(v, user.id, e->recovers ? "password and recovery code" : "password and code",
	                                  true);
}

static void code_ended(struct visit *v, bool kept)
{
	if (kept)
		visit_attempt_right(v, code_attempt(v, v->state));
}

static int code_read(struct visit *v, bool recovers)
{
	struct entry *e = v->state = arena_new_of(v->arena, struct entry);
	struct str ticket;
	char address[IP_TEXT];
	int result = visit_text(v, "ticket", TICKET_TEXT, &ticket);
	if (result == 0)
		result = visit_text(v, "code", CODE_MAX, &e->code);
	if (result < 0)
		return result;
	ip_format(&v->request->peer, address);
	if (ticket_open(v->arena, "code", ticket, &e->ticket) < 0 ||
	    !str_is(json_field(e->ticket.data, "address"), address)) {
		result = visit_attempt(v, STR_NONE);
		return result < 0 ? result : visit_fail_sign_in(v);
	}
	e->code = str_trim(e->code);
	e->recovers = recovers;
	v->whose = e->ticket.user_id;
	v->save = code_save;
	v->ended = code_ended;
	return visit_attempt(v, code_attempt(v, e));
}

int sign_in_totp(struct visit *v)
{
	return code_read(v, false);
}

int sign_in_recovery(struct visit *v)
{
	return code_read(v, true);
}

/* A link with a token: first, reset. */

static int fail_link(struct visit *v)
{
	return call_fail(&v->call, 404, "LINK_NOT_FOUND", "The link was used already, or is over. Ask for a new one.");
}

/* 404, as a failed attempt of the address. */
static int fail_token(struct visit *v)
{
	int result = visit_attempt(v, STR_NONE);
	return result < 0 ? result : fail_link(v);
}

static int new_password_slow(struct visit *v)
{
	struct entry *e = v->state;
	return password_hash(v->arena, e->password, &e->new_hash);
}

/* The first owner. Its link stands for the account as long as nobody has signed in to it: the account's id, and what
 * only this installation can know of it. Short, because people copy it from a terminal. */

#define FIRST_MAC 16

static struct str first_token(struct arena *a, struct str user_id)
{
	unsigned char mac[32];
	char text[65];
	seal_mac("first link", user_id, mac);
	hex_encode(mac, FIRST_MAC, text);
	return arena_printf(a, "%.*s%s", STR_ARG(user_id), text);
}

struct str first_link(struct arena *a, const char *base_url, struct str user_id)
{
	struct str token = first_token(a, user_id);
	return arena_printf(a, "%s/console/first/%.*s", base_url, STR_ARG(token));
}

bool first_is_open(struct arena *a, const struct doc *user)
{
	return !user->secret.n && !user_is_proven(a, user);
}

static int first_find(struct visit *v, struct tx *tx, struct str token, struct doc *ret_user)
{
	struct str id = {token.p, token.n < ID_LEN ? token.n : ID_LEN};
	if (!id_is_valid(id) || token.n != ID_LEN + 2 * FIRST_MAC ||
	    !seal_mac_is_hex("first link", id, (struct str){token.p + ID_LEN, token.n - ID_LEN}))
		return -ENOENT;
	int result = tx_get(tx, v->arena, "user", id, ret_user);
	return result == 0 && !first_is_open(v->arena, ret_user) ? -ENOENT : result;
}

int first_look(struct visit *v)
{
	struct doc user;
	int result = first_find(v, v->reader, v->rest, &user);
	if (result < 0)
		return result == -ENOENT ? fail_token(v) : result;
	v->out = json_new(v->arena);
	json_put_str(v->out, "username", json_field(doc_json(v->arena, user.body), "username"));
	return 0;
}

static int name_change(struct visit *v, struct doc *user, json_t *body)
{
	struct entry *e = v->state;
	struct str before = json_field(body, "username"), taken;
	if (!e->username.n || str_eq(before, e->username))
		return 0;
	int result = tx_ref_get(v->call.tx, v->arena, "user_name", e->username, &taken);
	if (result == 0)
		return call_fail_about(&v->call, 409, "USER_ALREADY_EXISTS", e->username,
		                       "username: %.*s has an account already.", STR_ARG(e->username));
	if (result == -ENOENT)
		result = tx_ref_delete(v->call.tx, "user_name", before);
	if (result == 0)
		result = tx_ref_put(v->call.tx, "user_name", e->username, user->id);
	json_put_str(body, "username", e->username);
	return result;
}

static int first_save(struct visit *v)
{
	struct entry *e = v->state;
	struct doc user;
	int result = first_find(v, v->call.tx, json_field(v->body, "token"), &user);
	if (result < 0)
		return result == -ENOENT ? fail_link(v) : result;
	json_t *body = doc_json(v->arena, user.body);
	result = name_change(v, &user, body);
	if (result < 0)
		return result;
	user_profile_set(body, v->body);
	user.body = json_text(v->arena, body);
	user.secret = e->new_hash;
	result = tx_update(v->call.tx, &user);
	tx_touch_identity(v->call.tx);
	return result < 0 ? result : visit_sign_in(v, user.id, "first link", false);
}

static int names_check(struct visit *v)
{
	static const char *const fields[] = {"firstName", "lastName"};
	for (size_t i = 0; i < 2; i++) {
		const json_t *value = json_object_get(v->body, fields[i]);
		struct str name = json_str_of(value);
		if (value && (!str_trim(name).n || name.n > NAME_MAX_BYTES))
			return call_fail_field(&v->call, 400, "VALIDATION_ERROR", fields[i],
			                       "must be a name of at most %d bytes.", NAME_MAX_BYTES);
	}
	return 0;
}

int first_set(struct visit *v)
{
	struct entry *e = v->state = arena_new_of(v->arena, struct entry);
	struct doc user;
	struct str token;
	int result = visit_text(v, "token", TICKET_TEXT, &token);
	if (result < 0)
		return result;
	result = first_find(v, v->reader, token, &user);
	if (result < 0)
		return result == -ENOENT ? fail_token(v) : result;
	e->username = arena_lower(v->arena, json_field(v->body, "username"));
	e->password = json_field(v->body, "password");
	if (e->username.n && (e->username.n > NAME_MAX_BYTES - 1 || !format_fits(FORMAT_EMAIL, e->username)))
		return call_fail_field(&v->call, 400, "VALIDATION_ERROR", "username", "must be an e-mail address.");
	struct str name = e->username.n ? e->username : json_field(doc_json(v->arena, user.body), "username");
	result = names_check(v);
	if (result == 0)
		result = password_check(v, "password", e->password, name);
	v->slow = new_password_slow;
	v->save = first_save;
	return result;
}

/* POST forgotten: answered at once; what there is to do is done behind the answer. */

struct letter {
	struct write write;
	struct arena *arena;
	struct service *service;
	struct str username;
};

/* Whoever knows a name could fill its owner's mailbox. -EALREADY: not now. */
static int pause_check(struct tx *tx, struct arena *a, struct str user_id)
{
	struct doc d;
	int64_t now = clock_now_ms();
	int result = tx_get(tx, a, "password_letter", user_id, &d);
	if (result == 0 && now - json_number(doc_json(a, d.body), "sentMs") < RESET_PAUSE_MS)
		return -EALREADY;
	if (result < 0 && result != -ENOENT)
		return result;
	bool known = result == 0;
	if (!known)
		d = doc_new(a, "password_letter", STR_NONE, STR_NONE, STR_NONE);
	d.id = user_id;
	d.body = arena_printf(a, "{\"sentMs\":%lld}", (long long)now);
	return known ? tx_update(tx, &d) : tx_insert(tx, &d);
}

/* keeps_codes: an operator's, who decides by an option of its own whether codes are asked for. */
static struct str reset_link(struct arena *a, const char *base_url, const struct doc *user, bool keeps_codes)
{
	struct str mark = fingerprint(a, user->secret);
	struct str ticket =
	        ticket_issue(a, "reset", user->id, RESET_SECONDS,
	                     json_pack("{s:s%, s:b}", "password", mark.p, mark.n, "keepsCodes", keeps_codes));
	return arena_printf(a, "%s/console/reset/%.*s", base_url, STR_ARG(ticket));
}

int password_link(struct tx *tx, struct arena *a, const char *base_url, struct str username, bool without_codes,
                  struct str *ret_link)
{
	struct doc user;
	struct str id;
	int result = tx_ref_get(tx, a, "user_name", arena_lower(a, username), &id);
	if (result == 0)
		result = tx_get(tx, a, "user", id, &user);
	if (result == 0 && without_codes) {
		result = totp_remove(tx, id);
		if (result == 0 || result == -ENOENT)
			result = recovery_remove(tx, id);
	}
	if (result == 0)
		*ret_link = reset_link(a, base_url, &user, true);
	return result;
}

static int letter_run(struct tx *tx, void *ctx)
{
	struct letter *l = ctx;
	struct arena *a = l->arena;
	struct doc user;
	struct str id;
	int result = tx_ref_get(tx, a, "user_name", l->username, &id);
	if (result == 0)
		result = tx_get(tx, a, "user", id, &user);
	if (result == 0)
		result = pause_check(tx, a, id);
	if (result < 0)
		return result;
	if (!outbox_has_mail(l->service->outbox)) {
		log_warn("forgotten password: %.*s asks for a letter, but there is no mail server (--smtp-url). "
		         "`steward "
		         "password-link` makes a link",
		         STR_ARG(l->username));
		return 0;
	}
	struct str link = reset_link(a, l->service->base_url, &user, false);
	struct str text = arena_printf(a,
	                               "Somebody has asked for a new password for %.*s.\n\nTo choose one, open\n\n"
	                               "%.*s\n\nThe link can be used once, for an hour.\n"
	                               "If it was not you, ignore this letter: nothing has changed.\n",
	                               STR_ARG(l->username), STR_ARG(link));
	return account_letter(tx, a, id, l->username, "A new password for Steward", text);
}

static void letter_done(void *ctx, int result)
{
	struct letter *l = ctx;
	if (result < 0 && result != -ENOENT && result != -EALREADY)
		log_error("forgotten password: a letter could not be written (error %d)", result);
	arena_free(l->arena);
	free(l);
}

int forgotten_ask(struct visit *v)
{
	struct str username;
	int result = visit_text(v, "username", NAME_MAX_BYTES, &username);
	/* Each counts as an attempt, whatever the name is: that bounds how many may be asked for. */
	if (result == 0)
		result = visit_attempt(v, arena_printf(v->arena, "forgotten/%.*s", STR_ARG(username)));
	if (result < 0)
		return result;
	v->trying = false; /* it counts, but nobody was refused */
	struct letter *l = must_calloc(1, sizeof *l);
	l->arena = arena_new();
	l->service = v->service;
	l->username = arena_lower(l->arena, username);
	l->write =
	        (struct write){.run = letter_run, .done = letter_done, .ctx = l, .item.key = address_key(v->request)};
	if (!store_write(v->service->store, &l->write)) {
		letter_done(l, -EALREADY);
		call_header(&v->call, STR("retry-after"), STR("1"));
		return call_fail(&v->call, 503, "SERVICE_BUSY",
		                 "The service has too many writes waiting. Try again in a second.");
	}
	v->status = 202;
	v->out = json_new(v->arena);
	return 0;
}

/* POST reset: the letter's link. */

static int reset_find(struct visit *v, struct tx *tx, struct entry *e, struct doc *ret_user)
{
	int result = ticket_open(v->arena, "reset", json_field(v->body, "token"), &e->ticket);
	if (result == 0)
		result = tx_get(tx, v->arena, "user", e->ticket.user_id, ret_user);
	if (result == 0 && !str_eq(fingerprint(v->arena, ret_user->secret), json_field(e->ticket.data, "password")))
		result = -ENOENT;
	return result == -EACCES ? -ENOENT : result;
}

static int reset_save(struct visit *v)
{
	struct entry *e = v->state;
	struct tx *tx = v->call.tx;
	struct doc user;
	int result = reset_find(v, tx, e, &user);
	if (result == 0)
		result = ticket_use(tx, v->arena, &e->ticket);
	if (result < 0)
		return result == -ENOENT || result == -EACCES ? fail_link(v) : result;
	struct found_factors found;
	result = account_reset(v, &user, e->new_hash, json_flag(e->ticket.data, "keepsCodes"), &found);
	if (result == 0)
		result = password_passed(v, &user, "letter");
	/* Who still has to give a code is told nothing yet. */
	if (result == 0 && v->signed_in) {
		json_object_set(v->out, "removed", found.removed);
		json_object_set(v->out, "kept", found.kept);
	}
	return result;
}

int reset_set(struct visit *v)
{
	struct entry *e = v->state = arena_new_of(v->arena, struct entry);
	struct doc user;
	int result = reset_find(v, v->reader, e, &user);
	if (result < 0)
		return result == -ENOENT ? fail_token(v) : result;
	e->password = json_field(v->body, "password");
	v->slow = new_password_slow;
	v->save = reset_save;
	return password_check(v, "password", e->password, json_field(doc_json(v->arena, user.body), "username"));
}

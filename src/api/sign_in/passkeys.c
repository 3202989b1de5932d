/* Passkeys of people: signing in with one (the passkey says whose it is, so that no name is asked for), and those of
 * the signed-in user.
 *
 *   "user_passkey"  parent = user; body {"id","name","createdAt","lastUsedAt"?,"rpId","credentialId","publicKey",
 *                   "count","backedUp"}; ref "passkey_credential" (SHA-256 of the credential's id) -> id
 *
 * A challenge lies in a ticket, which can be used once and ends soon. */
#include "api/sign_in/sign_in.h"
#include "api/sign_in/visit.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "catalog/formats.h"
#include "identity/passkey.h"
#include "identity/tickets.h"

#include <errno.h>

#define CHALLENGE 32
#define SECONDS 300 /* to answer a challenge */
#define PASSKEYS_MAX 20
#define NAME_MAX_BYTES 100
#define TICKET_MAX 2048
#define FOR_SIGN_IN "passkey"
#define FOR_NEW "passkey-new"

/* What a browser has sent. */
struct credential {
	struct str id; /* base64url, as it came */
	struct passkey_answer answer;
	struct str user_handle;
};

struct passkey_visit {
	struct ticket ticket;
	struct credential credential;
	struct passkey_authenticator authenticator;
	struct passkey_place place;
	struct doc passkey; /* that signs in */
	struct str name;
};

static int place_find(struct visit *v, struct passkey_place *ret_place)
{
	if (passkey_place(v->arena, v->service->base_url, v->request->authority, ret_place))
		return 0;
	return call_fail(&v->call, 400, "PASSKEYS_NEED_A_NAME",
	                 "Passkeys belong to the name of the service, and browsers take no address for one. Open %s.",
	                 passkey_url(v->arena, v->service->base_url).p);
}

/* Bodies. */

static int bytes_of(struct visit *v, const json_t *object, const char *name, size_t most, struct str *ret_bytes)
{
	struct str text = json_field(object, name);
	char *bytes = arena_alloc(v->arena, most);
	ssize_t n = text.n ? base64_decode(text, bytes, most) : -1;
	if (n <= 0)
		return call_fail_field(&v->call, 400, "VALIDATION_ERROR", name, "must be base64url of 1 to %zu bytes.",
		                       most);
	*ret_bytes = (struct str){bytes, (size_t)n};
	return 0;
}

static int credential_read(struct visit *v, bool registers, struct credential *c)
{
	const json_t *given = json_object_get(v->body, "credential"), *said = json_object_get(given, "response");
	struct str id = STR_NONE;
	int result = bytes_of(v, given, "id", PASSKEY_ID_MAX, &id);
	if (result == 0)
		result = bytes_of(v, said, "authenticatorData", PASSKEY_DATA_MAX, &c->answer.authenticator);
	if (result == 0)
		result = bytes_of(v, said, "clientDataJSON", PASSKEY_DATA_MAX, &c->answer.client_data);
	if (result == 0 && registers)
		result = bytes_of(v, said, "publicKey", PASSKEY_KEY_MAX, &c->answer.key);
	if (result == 0 && !registers)
		result = bytes_of(v, said, "signature", PASSKEY_KEY_MAX, &c->answer.signature);
	if (result == 0 && !registers)
		result = bytes_of(v, said, "userHandle", ID_LEN, &c->user_handle);
	if (result < 0)
		return result;
	char *text = arena_alloc(v->arena, BASE64_TEXT(id.n));
	base64url_encode(id.p, id.n, text);
	c->id = str_of(text);
	c->answer.registers = registers;
	return 0;
}

/* The key of the reference: ids may be longer than those of a store. */
static struct str credential_key(struct arena *a, struct str id)
{
	char hash[65];
	sha256_hex(id, hash);
	return arena_dup(a, str_of(hash));
}

/* Challenges. */

static json_t *challenge_issue(struct visit *v, const char *purpose, struct str user_id)
{
	unsigned char bytes[CHALLENGE];
	char text[BASE64_TEXT(CHALLENGE)];
	random_bytes(bytes, sizeof bytes);
	base64url_encode(bytes, sizeof bytes, text);
	v->out = json_new(v->arena);
	json_put_str(v->out, "ticket", ticket_issue(v->arena, purpose, user_id, SECONDS, json_string(text)));
	json_t *options = json_pack("{s:s, s:i, s:s}", "challenge", text, "timeout", SECONDS * 1000, "userVerification",
	                            "required");
	json_put(v->out, "publicKey", options);
	return options;
}

static int ticket_read(struct visit *v, const char *purpose, struct ticket *ret_ticket)
{
	struct str text;
	int result = visit_text(v, "ticket", TICKET_MAX, &text);
	return result < 0 ? result : ticket_open(v->arena, purpose, text, ret_ticket);
}

/* Signing in. */

static int sign_in_options(struct visit *v)
{
	struct passkey_place place;
	int result = place_find(v, &place);
	if (result == 0)
		json_put_str(challenge_issue(v, FOR_SIGN_IN, STR_NONE), "rpId", place.rp_id);
	return result;
}

/* What is wrong is for the log: whoever tries learns only that it was not right. */
static int passkey_refuse(struct visit *v, const char *why)
{
	v->why = arena_printf(v->arena, "its passkey: %s", why).p;
	return visit_fail_sign_in(v);
}

static int passkey_find(struct tx *tx, struct visit *v, struct doc *ret_doc)
{
	const struct passkey_visit *p = v->state;
	struct str id;
	int result = tx_ref_get(tx, v->arena, "passkey_credential", credential_key(v->arena, p->credential.id), &id);
	return result < 0 ? result : tx_get(tx, v->arena, "user_passkey", id, ret_doc);
}

static int count_check(struct visit *v, const struct doc *passkey)
{
	const struct passkey_visit *p = v->state;
	json_int_t kept = json_number(doc_json(v->arena, passkey->body), "count");
	if (passkey_count_fits((uint32_t)kept, p->authenticator.count))
		return 0;
	log_warn("sign-in: the passkey %.*s of user %.*s has counted back: somebody may have a copy of it",
	         STR_ARG(passkey->id), STR_ARG(passkey->parent));
	return visit_fail_sign_in(v);
}

/* In a write: the passkey that has answered the challenge, which counts it. */
static int answer_use(struct visit *v, struct doc *ret_passkey)
{
	const struct passkey_visit *p = v->state;
	struct tx *tx = v->call.tx;
	struct doc d;
	int result = ticket_use(tx, v->arena, &p->ticket);
	if (result == -EACCES)
		return passkey_refuse(v, "its challenge was answered before");
	if (result == 0)
		result = passkey_find(tx, v, &d);
	if (result < 0)
		return result == -ENOENT ? passkey_refuse(v, "it is gone") : result;
	result = count_check(v, &d);
	if (result < 0)
		return result;
	json_t *body = doc_json(v->arena, d.body);
	json_put(body, "count", json_integer(p->authenticator.count));
	json_put(body, "backedUp", json_boolean(p->authenticator.backed_up));
	json_put_time(body, "lastUsedAt", clock_now_ms());
	d.body = json_text(v->arena, body);
	*ret_passkey = d;
	return tx_update(tx, &d);
}

static int sign_in_save(struct visit *v)
{
	struct doc d;
	int result = answer_use(v, &d);
	return result < 0 ? result : visit_sign_in(v, d.parent, "passkey", true);
}

static void sign_in_ended(struct visit *v, bool kept)
{
	if (kept)
		visit_attempt_right(v, STR_NONE);
}

/* By the key that is kept of it. */
static const char *sign_in_fault(struct visit *v, struct passkey_visit *p)
{
	const json_t *kept = doc_json(v->arena, p->passkey.body);
	char *key = arena_alloc(v->arena, PASSKEY_KEY_MAX);
	ssize_t n = base64_decode(json_field(kept, "publicKey"), key, PASSKEY_KEY_MAX);
	p->credential.answer.key = (struct str){key, n > 0 ? (size_t)n : 0};
	if (!str_eq(json_field(kept, "rpId"), p->place.rp_id))
		return "it was made for another name of the service";
	if (!str_eq(p->credential.user_handle, p->passkey.parent))
		return "it is another user's";
	return passkey_fault(&p->credential.answer, json_str_of(p->ticket.data), &p->place, &p->authenticator);
}

static int answer_read(struct visit *v)
{
	struct passkey_visit *p = arena_new_of(v->arena, struct passkey_visit);
	v->state = p;
	int result = place_find(v, &p->place);
	if (result == 0)
		result = credential_read(v, false, &p->credential);
	if (result == 0)
		result = visit_attempt(v, STR_NONE);
	if (result < 0)
		return result;
	result = ticket_read(v, FOR_SIGN_IN, &p->ticket);
	if (result == -EACCES)
		return passkey_refuse(v, "its challenge is not ours, or too old");
	if (result == 0)
		result = passkey_find(v->reader, v, &p->passkey);
	if (result < 0)
		return result == -ENOENT ? passkey_refuse(v, "nobody here has it") : result;
	const char *fault = sign_in_fault(v, p);
	if (fault)
		return passkey_refuse(v, fault);
	v->ended = sign_in_ended;
	return count_check(v, &p->passkey);
}

static int sign_in(struct visit *v)
{
	v->save = sign_in_save;
	return answer_read(v);
}

/* POST passkey/proof: somebody who is signed in shows once more who it is, by a challenge of passkey/options. */

static int prove_save(struct visit *v)
{
	struct doc d;
	int result = visit_still_signed_in(v);
	if (result == 0)
		result = answer_use(v, &d);
	if (result == 0)
		result = session_prove(v->call.tx, v->arena, v->session.id);
	return result < 0 ? result : session_strengthen(v->call.tx, v->arena, v->session.id);
}

static int prove(struct visit *v)
{
	v->save = prove_save;
	int result = visit_own_account(v);
	if (result == 0)
		result = answer_read(v);
	const struct passkey_visit *p = v->state;
	return result == 0 && !str_eq(p->passkey.parent, v->session.user_id) ? passkey_refuse(v, "it is another user's")
	                                                                     : result;
}

/* The user's own. */

static json_t *passkey_view(struct arena *a, const struct doc *d)
{
	static const char *const shown[] = {"id", "name", "createdAt", "lastUsedAt", "rpId", "backedUp"};
	json_t *view = json_new(a);
	json_copy_fields(view, doc_json(a, d->body), shown, sizeof shown / sizeof *shown);
	return view;
}

static int list(struct visit *v)
{
	struct doc *docs;
	size_t count;
	json_t *results = json_array();
	v->out = json_new(v->arena);
	json_put(v->out, "results", results);
	int result = tx_list_all(v->reader, v->arena, "user_passkey", v->session.user_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		json_array_append(results, passkey_view(v->arena, &docs[i]));
	return result;
}

static int fail_full(struct visit *v)
{
	return call_fail(&v->call, 409, "TOO_MANY_PASSKEYS", "You have %d passkeys already. Delete one first.",
	                 PASSKEYS_MAX);
}

/* An authenticator that has one of these makes no second. */
static void exclude(struct visit *v, json_t *options, const struct doc *docs, size_t count)
{
	json_t *excluded = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(excluded,
		                      json_pack("{s:s, s:O}", "type", "public-key", "id",
		                                json_object_get(doc_json(v->arena, docs[i].body), "credentialId")));
	json_put(options, "excludeCredentials", excluded);
}

static json_t *user_json(struct visit *v)
{
	char handle[BASE64_TEXT(ID_LEN)];
	base64url_encode(v->session.user_id.p, v->session.user_id.n, handle);
	return json_pack("{s:s, s:s, s:s}", "id", handle, "name", v->call.caller->name, "displayName",
	                 v->call.caller->name);
}

static int new_options(struct visit *v)
{
	struct passkey_place place;
	struct doc *docs;
	size_t count = 0;
	int result = visit_own_factors(v);
	if (result == 0)
		result = place_find(v, &place);
	if (result == 0)
		result = tx_list_all(v->reader, v->arena, "user_passkey", v->session.user_id, &docs, &count);
	if (result < 0)
		return result;
	if (count >= PASSKEYS_MAX)
		return fail_full(v);
	json_t *options = challenge_issue(v, FOR_NEW, v->session.user_id);
	json_object_del(options, "userVerification");
	json_put(options, "rp", json_pack("{s:s%, s:s}", "id", place.rp_id.p, place.rp_id.n, "name", "Steward"));
	json_put(options, "user", user_json(v));
	json_put(options, "pubKeyCredParams",
	         json_pack("[{s:s, s:i}, {s:s, s:i}, {s:s, s:i}]", "type", "public-key", "alg", -7, "type",
	                   "public-key", "alg", -8, "type", "public-key", "alg", -257));
	json_put(options, "authenticatorSelection",
	         json_pack("{s:s, s:b, s:s}", "residentKey", "required", "requireResidentKey", 1, "userVerification",
	                   "required"));
	json_put_z(options, "attestation", "none");
	exclude(v, options, docs, count);
	return 0;
}

static int name_read(struct visit *v, struct str *ret_name)
{
	int result = visit_text(v, "name", NAME_MAX_BYTES, ret_name);
	return result < 0 || str_trim(*ret_name).n
	               ? result
	               : call_fail_field(&v->call, 400, "VALIDATION_ERROR", "name", "must not be empty.");
}

static json_t *new_body(const struct passkey_visit *p, struct str id)
{
	const struct passkey_answer *answer = &p->credential.answer;
	char key[BASE64_TEXT(PASSKEY_KEY_MAX)];
	json_t *body = json_object();
	base64url_encode(answer->key.p, answer->key.n, key);
	json_put_str(body, "id", id);
	json_put_str(body, "name", p->name);
	json_put_time(body, "createdAt", clock_now_ms());
	json_put_str(body, "rpId", p->place.rp_id);
	json_put_str(body, "credentialId", p->credential.id);
	json_put_z(body, "publicKey", key);
	json_put(body, "count", json_integer(p->authenticator.count));
	json_put(body, "backedUp", json_boolean(p->authenticator.backed_up));
	return body;
}

static int new_save(struct visit *v)
{
	const struct passkey_visit *p = v->state;
	struct tx *tx = v->call.tx;
	struct doc d = doc_new(v->arena, "user_passkey", v->session.user_id, STR_NONE, STR_NONE);
	int64_t count = 0;
	d.body = json_text(v->arena, json_keep(v->arena, new_body(p, d.id)));
	int result = visit_still_signed_in(v);
	if (result == 0)
		result = visit_own_factors(v);
	if (result < 0)
		return result;
	result = ticket_use(tx, v->arena, &p->ticket);
	if (result == -EACCES)
		return call_fail(&v->call, 400, "INVALID_TICKET", "The challenge was answered before. Begin again.");
	if (result == 0)
		result = tx_count(tx, "user_passkey", v->session.user_id, &count);
	if (result == 0 && count >= PASSKEYS_MAX)
		return fail_full(v);
	if (result == 0)
		result = tx_ref_put(tx, "passkey_credential", credential_key(v->arena, p->credential.id), d.id);
	if (result == -EEXIST)
		return call_fail(&v->call, 409, "PASSKEY_EXISTS", "This passkey is registered already.");
	if (result == 0)
		result = tx_insert(tx, &d);
	/* It has just verified the person, as it will when it signs in. */
	if (result == 0)
		result = session_strengthen(tx, v->arena, v->session.id);
	if (result < 0)
		return result;
	v->status = 201;
	v->out = passkey_view(v->arena, &d);
	return account_changed(v, v->session.user_id, str_of(v->call.caller->name), "a passkey was added");
}

static int new_fault(struct visit *v, const char *fault)
{
	return call_fail(&v->call, 400, "INVALID_PASSKEY", "%s.", fault);
}

static int create(struct visit *v)
{
	struct passkey_visit *p = arena_new_of(v->arena, struct passkey_visit);
	char id[BASE64_TEXT(PASSKEY_ID_MAX)];
	v->state = p;
	int result = visit_own_factors(v);
	if (result == 0)
		result = place_find(v, &p->place);
	if (result == 0)
		result = name_read(v, &p->name);
	if (result == 0)
		result = credential_read(v, true, &p->credential);
	if (result < 0)
		return result;
	result = ticket_read(v, FOR_NEW, &p->ticket);
	if (result == -EACCES || (result == 0 && !str_eq(p->ticket.user_id, v->session.user_id)))
		return call_fail(&v->call, 400, "INVALID_TICKET",
		                 "The challenge is not yours, or too old. Begin again.");
	if (result < 0)
		return result;
	const char *fault =
	        passkey_fault(&p->credential.answer, json_str_of(p->ticket.data), &p->place, &p->authenticator);
	if (fault)
		return new_fault(v, fault);
	base64url_encode(p->authenticator.credential_id.p, p->authenticator.credential_id.n, id);
	if (!str_is(p->credential.id, id))
		return new_fault(v, "authenticatorData: is of another credential");
	v->save = new_save;
	return 0;
}

/* -404 after call_fail(): the user has none of that id. */
static int own_get(struct visit *v, struct doc *ret_doc)
{
	int result = id_is_valid(v->rest) ? tx_get(v->call.tx, v->arena, "user_passkey", v->rest, ret_doc) : -ENOENT;
	if (result == -ENOENT || (result == 0 && !str_eq(ret_doc->parent, v->session.user_id)))
		return call_fail(&v->call, 404, "PASSKEY_NOT_FOUND", "You have no such passkey.");
	return result;
}

static int rename_save(struct visit *v)
{
	struct doc d;
	int result = own_get(v, &d);
	if (result < 0)
		return result;
	json_t *body = doc_json(v->arena, d.body);
	json_put_str(body, "name", json_field(v->body, "name"));
	d.body = json_text(v->arena, body);
	v->out = passkey_view(v->arena, &d);
	return tx_update(v->call.tx, &d);
}

static int rename_one(struct visit *v)
{
	struct str name;
	struct doc d;
	int result = visit_own_account(v);
	if (result == 0)
		result = name_read(v, &name);
	if (result == 0)
		result = own_get(v, &d);
	v->save = rename_save;
	return result;
}

int passkey_delete(struct tx *tx, struct arena *a, const struct doc *passkey)
{
	struct str credential = json_field(doc_json(a, passkey->body), "credentialId");
	int result = tx_ref_delete(tx, "passkey_credential", credential_key(a, credential));
	return result == 0 || result == -ENOENT ? tx_delete(tx, "user_passkey", passkey->id) : result;
}

static int delete_save(struct visit *v)
{
	struct doc d;
	int result = visit_still_signed_in(v);
	if (result == 0)
		result = visit_own_factors(v);
	if (result == 0)
		result = own_get(v, &d);
	if (result == 0)
		result = passkey_delete(v->call.tx, v->arena, &d);
	return result < 0
	               ? result
	               : account_changed(v, v->session.user_id, str_of(v->call.caller->name), "a passkey was deleted");
}

static int delete_one(struct visit *v)
{
	struct doc d;
	int result = visit_own_factors(v);
	if (result == 0)
		result = own_get(v, &d);
	v->save = delete_save;
	return result;
}

void passkeys_serve(struct service *s, struct request *r)
{
	static const struct visit_row rows[] = {
	        {"POST", "/passkey/options", sign_in_options, VISIT_BODY},
	        {"POST", "/passkey", sign_in, VISIT_BODY},
	        {"POST", "/passkey/proof", prove, VISIT_SIGNED_IN | VISIT_BODY},
	        {"POST", "/passkeys/options", new_options, VISIT_SIGNED_IN | VISIT_BODY},
	        {"GET", "/passkeys", list, VISIT_SIGNED_IN},
	        {"POST", "/passkeys", create, VISIT_SIGNED_IN | VISIT_BODY},
	        {"PATCH", "/passkeys/", rename_one, VISIT_SIGNED_IN | VISIT_BODY},
	        {"DELETE", "/passkeys/", delete_one, VISIT_SIGNED_IN},
	};
	visit_serve(s, r, rows, sizeof rows / sizeof *rows);
}

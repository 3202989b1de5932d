/* Bearer tokens of service accounts, and of users who have signed in.
 *
 * A token proves itself: "stw_" and the base64url of a version, the ids of the account, of the secret that it was
 * issued for (for a user: of the session) and of itself, its expiry and an HMAC over all that. So issuing one writes
 * nothing. Whether it is still valid (not revoked; its secret and account exist) is read from the store once, and again
 * when the store says that identities have changed; in between the loop's own cache answers, without a lock or a
 * signature. The expiry is checked on each use. */
#include "base/base64.h"
#include "base/clock.h"
#include "base/fair.h"
#include "base/log.h"
#include "identity/identity.h"
#include "identity/sessions.h"

#include <errno.h>
#include <jansson.h>
#include <openssl/crypto.h>

#define PREFIX "stw_"
#define VERSION 1
#define RAW_ID ((size_t)ID_LEN / 2)
#define PAYLOAD (1 + 3 * RAW_ID + 8)
#define RAW (PAYLOAD + 32)
#define TEXT (sizeof PREFIX - 1 + BASE64_TEXT(RAW) - 1)

#define SLOTS 2048
#define WAYS 8

struct token_slot {
	struct principal *caller; /* NULL: empty */
	int64_t expires_ms;
	uint64_t generation;
	char text[TEXT];
};

/* Callers whose credentials another host has seen. */
#define KNOWN 256

struct known_slot {
	struct principal *caller; /* NULL: empty */
	uint64_t generation;
};

struct token_cache {
	struct known_slot known[KNOWN];
	struct key_cache *keys;
	unsigned turn; /* which slot of a full set is replaced next */
	struct token_slot slots[SLOTS];
};

struct token_cache *token_cache_new(void)
{
	struct token_cache *t = must_calloc(1, sizeof *t);
	t->keys = key_cache_new();
	return t;
}

void token_cache_free(struct token_cache *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		principal_unref(t->slots[i].caller);
	for (size_t i = 0; i < KNOWN; i++)
		principal_unref(t->known[i].caller);
	key_cache_free(t->keys);
	OPENSSL_cleanse(t->slots, sizeof t->slots);
	free(t);
}

struct key_cache *token_cache_keys(struct token_cache *t)
{
	return t->keys;
}

static bool id_pack(struct str id, unsigned char raw[RAW_ID])
{
	if (!id_is_valid(id))
		return false;
	for (size_t i = 0; i < RAW_ID; i++) {
		unsigned high = (unsigned char)id.p[2 * i], low = (unsigned char)id.p[2 * i + 1];
		raw[i] = (unsigned char)((high <= '9' ? high - '0' : high - 'a' + 10) << 4 |
		                         (low <= '9' ? low - '0' : low - 'a' + 10));
	}
	return true;
}

struct str token_issue(struct arena *a, struct str account_id, struct str secret_id, int64_t expires_ms)
{
	unsigned char raw[RAW] = {VERSION}, *p = raw + 1;
	struct id unique = id_new();
	if (!id_pack(account_id, p) || !id_pack(secret_id, p + RAW_ID) || !id_pack(id_str(&unique), p + 2 * RAW_ID))
		return STR_NONE;
	for (int i = 0; i < 8; i++)
		raw[1 + 3 * RAW_ID + i] = (unsigned char)((uint64_t)expires_ms >> (56 - 8 * i));
	seal_mac("token", (struct str){(const char *)raw, PAYLOAD}, raw + PAYLOAD);
	char *text = arena_alloc(a, TEXT + 1);
	memcpy(text, PREFIX, sizeof PREFIX - 1);
	base64url_encode(raw, RAW, text + sizeof PREFIX - 1);
	return (struct str){text, TEXT};
}

bool token_parse(struct str text, struct token *ret_token)
{
	unsigned char raw[RAW];
	if (text.n != TEXT || !str_starts(text, STR(PREFIX)))
		return false;
	text = (struct str){text.p + sizeof PREFIX - 1, text.n - (sizeof PREFIX - 1)};
	if (base64_decode(text, raw, sizeof raw) != RAW || raw[0] != VERSION)
		return false;
	if (!seal_mac_is("token", (struct str){(const char *)raw, PAYLOAD}, raw + PAYLOAD, 32))
		return false;
	uint64_t expires = 0;
	for (int i = 0; i < 8; i++)
		expires = expires << 8 | raw[1 + 3 * RAW_ID + i];
	hex_encode(raw + 1, RAW_ID, ret_token->account_id.z);
	hex_encode(raw + 1 + RAW_ID, RAW_ID, ret_token->secret_id.z);
	hex_encode(raw + 1 + 2 * RAW_ID, RAW_ID, ret_token->unique.z);
	ret_token->expires_ms = (int64_t)expires;
	return true;
}

bool secret_in_force(const struct doc *secret, int64_t *ret_ms)
{
	int64_t ms = INT64_MAX;
	json_t *body = json_loadb(secret->body.p, secret->body.n, 0, NULL);
	const json_t *expires = json_object_get(body, "expiresAt");
	struct str text = {json_string_value(expires), json_string_length(expires)};
	bool known = body && (!expires || json_is_null(expires) || clock_parse(text, &ms));
	json_decref(body);
	if (!known)
		log_error("the secret %.*s has no readable expiry and is refused", STR_ARG(secret->id));
	if (!known || ms <= clock_now_ms())
		return false;
	*ret_ms = ms;
	return true;
}

/* The first slot of the token's set. Only verified tokens are ever put into the table, and their last characters belong
 * to a signature: they are evenly distributed without a hash. */
static struct token_slot *slots_of(struct token_cache *t, struct str text)
{
	uint64_t tail;
	memcpy(&tail, text.p + TEXT - 8, sizeof tail);
	tail *= 0x9e3779b97f4a7c15u;
	return &t->slots[(tail >> 32) % (SLOTS / WAYS) * WAYS];
}

static struct token_slot *slot_find(struct token_cache *t, struct str text)
{
	struct token_slot *s = slots_of(t, text);
	for (size_t i = 0; i < WAYS; i++)
		if (s[i].caller && CRYPTO_memcmp(s[i].text, text.p, TEXT) == 0)
			return &s[i];
	return NULL;
}

static void slot_drop(struct token_slot *s)
{
	principal_unref(s->caller);
	s->caller = NULL;
}

static void slot_put(struct token_cache *t, struct str text, struct principal *caller, int64_t expires_ms,
                     uint64_t generation)
{
	struct token_slot *s = slots_of(t, text), *to = &s[t->turn++ % WAYS];
	for (size_t i = 0; i < WAYS; i++)
		if (!s[i].caller || s[i].generation != generation)
			to = &s[i];
	slot_drop(to);
	*to = (struct token_slot){.caller = principal_ref(caller), .expires_ms = expires_ms, .generation = generation};
	memcpy(to->text, text.p, TEXT);
}

/* Checks what only the store knows about a token whose signature and time are right. Shortens *expires_ms to the expiry
 * of the secret. The caller follows from the secret or session that the token was issued for. */
static int token_check(struct tx *tx, struct arena *a, const struct token *token, int64_t *expires_ms,
                       enum principal_kind *ret_kind)
{
	struct doc doc;
	int64_t secret_ms;
	int r = tx_get(tx, a, "token_revoked", id_str(&token->unique), &doc);
	if (r != -ENOENT)
		return r < 0 ? r : -EACCES;
	r = tx_get(tx, a, "sa_secret", id_str(&token->secret_id), &doc);
	*ret_kind = r == -ENOENT ? PRINCIPAL_USER : PRINCIPAL_SERVICE_ACCOUNT;
	if (r == -ENOENT) {
		r = tx_get(tx, a, "user_session", id_str(&token->secret_id), &doc);
		if (r == 0)
			r = session_stamps_check(tx, a, &doc);
	}
	if (r < 0)
		return r == -ENOENT ? -EACCES : r;
	if (!str_eq(doc.parent, id_str(&token->account_id)) || !secret_in_force(&doc, &secret_ms))
		return -EACCES;
	if (secret_ms < *expires_ms)
		*expires_ms = secret_ms;
	return 0;
}

int token_caller(struct service *s, struct token_cache *t, struct tx *tx, struct str text,
                 struct principal **ret_caller)
{
	if (text.n != TEXT)
		return -EACCES;
	/* Read the generation before the store: a change after this makes the entry stale, never the other way round.
	 * The snapshot that is read may be older than the newest generation. */
	uint64_t generation = store_identity_generation(s->store), shown = tx_identity_generation(tx);
	int64_t now = clock_now_ms();
	struct token_slot *slot = slot_find(t, text);
	if (slot && slot->generation == generation && slot->expires_ms > now) {
		*ret_caller = principal_ref(slot->caller);
		return 0;
	}
	if (slot)
		slot_drop(slot);
	struct token token;
	if (!token_parse(text, &token) || token.expires_ms <= now)
		return -EACCES;
	struct arena *a = arena_new();
	struct principal *caller = NULL;
	int64_t expires_ms = token.expires_ms;
	enum principal_kind kind;
	int r = token_check(tx, a, &token, &expires_ms, &kind);
	arena_free(a);
	if (r == 0)
		r = principal_load(tx, kind, id_str(&token.account_id), &caller);
	if (r < 0)
		return r == -ENOENT ? -EACCES : r;
	slot_put(t, text, caller, expires_ms, shown);
	*ret_caller = caller;
	return 0;
}

int known_caller(struct service *s, struct token_cache *t, struct tx *tx, enum principal_kind kind, struct str id,
                 struct principal **ret_caller)
{
	uint64_t generation = store_identity_generation(s->store), shown = tx_identity_generation(tx);
	struct known_slot *slot = &t->known[fair_key(id) % KNOWN];
	struct principal *caller = slot->caller;
	if (caller && slot->generation == generation && caller->kind == kind && str_is(id, caller->id)) {
		*ret_caller = principal_ref(caller);
		return 0;
	}
	int r = principal_load(tx, kind, id, &caller);
	if (r < 0)
		return r;
	principal_unref(slot->caller);
	*slot = (struct known_slot){principal_ref(caller), shown};
	*ret_caller = caller;
	return 0;
}

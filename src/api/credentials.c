/* Making credentials. A private key is kept as the two digest hashes it is checked by, sealed; a secret as its SHA-256,
 * which is enough because it is 40 random characters. */
#include "api/credentials.h"

#include "api/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "gate/authenticate.h"

#include <errno.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZ" LOWER "0123456789"
#define CLIENT_PREFIX "mdb_sa_id_"
#define SECRET_PREFIX "mdb_sa_sk_"

static struct str new_id(struct arena *a)
{
	struct id id = id_new();
	return arena_dup(a, id_str(&id));
}

static void drop(void *value)
{
	json_decref(value);
}

static json_t *owned(struct arena *a, json_t *value)
{
	arena_defer(a, drop, value);
	return value;
}

static json_t *time_json(int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	return json_string_nocheck(text);
}

static json_t *str_json(struct str s)
{
	return json_stringn(s.p, s.n);
}

static struct str new_private_key(struct arena *a)
{
	char hex[33];
	unsigned char raw[16];
	random_bytes(raw, sizeof raw);
	hex_encode(raw, sizeof raw, hex);
	return arena_printf(a, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

static struct str key_secret(struct arena *a, const struct new_key *key)
{
	char md5[65], sha256[65];
	digest_ha1(false, key->public_key, key->private_key, md5);
	digest_ha1(true, key->public_key, key->private_key, sha256);
	struct str plain = arena_printf(a, "{\"md5\":\"%s\",\"sha256\":\"%s\"}", md5, sha256);
	return seal(a, plain, arena_printf(a, "api_key/%.*s", STR_ARG(key->id)));
}

int credential_add_key(struct tx *tx, struct arena *a, struct str org_id, struct str description, json_t *roles,
		       struct new_key *key)
{
	if (!key->id.n)
		key->id = new_id(a);
	if (!key->public_key.n) {
		char text[9];
		random_text(text, 8, LOWER);
		key->public_key = arena_dup(a, str_of(text));
	}
	if (!key->private_key.n)
		key->private_key = new_private_key(a);
	json_t *body = owned(a, json_pack("{s:o, s:o, s:o, s:O}", "id", str_json(key->id), "desc", str_json(description),
					  "publicKey", str_json(key->public_key), "roles", roles));
	if (!body)
		return -EINVAL;
	key->body = json_text(a, body);
	struct doc d = {.kind = STR("api_key"), .id = key->id, .parent = org_id, .created_ms = clock_now_ms(),
			.body = key->body, .secret = key_secret(a, key)};
	int result = tx_insert(tx, &d);
	if (result == 0)
		result = tx_ref_put(tx, "api_key_public", key->public_key, key->id);
	tx_touch_identity(tx);
	return result;
}

static int add_secret(struct tx *tx, struct arena *a, int64_t hours, struct new_account *account)
{
	char text[41], hash[65];
	int64_t now = clock_now_ms();
	if (!account->secret_id.n)
		account->secret_id = new_id(a);
	if (!account->secret.n) {
		random_text(text, 40, ALNUM);
		account->secret = arena_printf(a, SECRET_PREFIX "%s", text);
	}
	struct str masked = arena_printf(a, SECRET_PREFIX "****%.4s", account->secret.p + account->secret.n - 4);
	json_t *body = owned(a, json_pack("{s:o, s:o, s:o, s:o}", "id", str_json(account->secret_id), "createdAt",
					  time_json(now), "expiresAt", time_json(now + hours * 3600 * 1000),
					  "maskedSecretValue", str_json(masked)));
	account->secret_body = json_text(a, body);
	sha256_hex(account->secret, hash);
	struct doc d = {.kind = STR("sa_secret"), .id = account->secret_id, .parent = account->id, .created_ms = now,
			.body = account->secret_body, .secret = str_of(hash)};
	return tx_insert(tx, &d);
}

int credential_add_account(struct tx *tx, struct arena *a, struct str org_id, struct str name, struct str description,
			   json_t *roles, json_t *grants, int64_t secret_hours, struct new_account *account)
{
	if (!account->id.n)
		account->id = new_id(a);
	if (!account->client_id.n)
		account->client_id = arena_printf(a, CLIENT_PREFIX "%.*s", STR_ARG(account->id));
	json_t *body = owned(a, json_pack("{s:o, s:o, s:o, s:o, s:O}", "clientId", str_json(account->client_id), "name",
					  str_json(name), "description", str_json(description), "createdAt",
					  time_json(clock_now_ms()), "roles", roles));
	if (!body)
		return -EINVAL;
	if (grants)
		json_object_set(body, "grants", grants);
	account->body = json_text(a, body);
	struct doc d = {.kind = STR("service_account"), .id = account->id, .parent = org_id, .created_ms = clock_now_ms(),
			.body = account->body};
	int result = tx_insert(tx, &d);
	if (result == 0)
		result = tx_ref_put(tx, "service_account_client", account->client_id, account->id);
	if (result == 0)
		result = add_secret(tx, a, secret_hours, account);
	tx_touch_identity(tx);
	return result;
}

int credential_add_access(struct tx *tx, struct arena *a, struct str owner_id, const struct cidr *network)
{
	char text[IP_TEXT];
	cidr_format(network, text);
	json_t *body = owned(a, json_pack("{s:s, s:o, s:i}", "cidrBlock", text, "created", time_json(clock_now_ms()), "count", 0));
	struct doc d = {.kind = STR("api_access"), .id = new_id(a), .parent = owner_id, .name = arena_dup(a, str_of(text)),
			.created_ms = clock_now_ms(), .body = json_text(a, body)};
	tx_touch_identity(tx);
	return tx_insert(tx, &d);
}

int credential_grant(struct tx *tx, struct arena *a, const struct principal *p, const char *scope_field, struct str scope_id,
		     const char *role)
{
	static const char *const kinds[] = {"api_key", "service_account", "user"};
	struct doc d;
	int result = tx_get(tx, a, kinds[p->kind], str_of(p->id), &d);
	if (result < 0)
		return result;
	json_t *body = doc_json(a, d.body);
	const char *field = p->kind == PRINCIPAL_SERVICE_ACCOUNT ? "grants" : "roles";
	json_t *list = json_object_get(body, field);
	if (!list) {
		json_object_set_new(body, field, json_array());
		list = json_object_get(body, field);
	}
	json_array_append_new(list, json_pack("{s:o, s:s}", scope_field, str_json(scope_id), "roleName", role));
	d.body = json_text(a, body);
	tx_touch_identity(tx);
	return tx_update(tx, &d);
}

static int delete_list(struct tx *tx, struct arena *a, const char *kind, struct str parent)
{
	struct doc *docs;
	size_t count = 1;
	int result = 0;
	while (result == 0 && count) {
		result = tx_list(tx, a, kind, parent, 0, 500, &docs, &count);
		for (size_t i = 0; result == 0 && i < count; i++)
			result = tx_delete(tx, kind, docs[i].id);
	}
	return result;
}

static int delete_owner(struct tx *tx, struct arena *a, const char *kind, const char *ref, const char *ref_field,
			const struct doc *d)
{
	json_t *value = json_object_get(doc_json(a, d->body), ref_field);
	int result = tx_ref_delete(tx, ref, (struct str){json_string_value(value), json_string_length(value)});
	if (result == 0 || result == -ENOENT)
		result = delete_list(tx, a, "api_access", d->id);
	if (result == 0)
		result = delete_list(tx, a, "sa_secret", d->id);
	return result < 0 ? result : tx_delete(tx, kind, d->id);
}

int credential_delete_all(struct tx *tx, struct arena *a, struct str org_id)
{
	static const char *const rows[][3] = {{"api_key", "api_key_public", "publicKey"},
					      {"service_account", "service_account_client", "clientId"}};
	int result = 0;
	tx_touch_identity(tx);
	for (size_t k = 0; k < 2; k++)
		for (size_t count = 1; result == 0 && count;) {
			struct doc *docs;
			result = tx_list(tx, a, rows[k][0], org_id, 0, 500, &docs, &count);
			for (size_t i = 0; result == 0 && i < count; i++)
				result = delete_owner(tx, a, rows[k][0], rows[k][1], rows[k][2], &docs[i]);
		}
	return result;
}

json_t *credential_account_json(struct arena *a, const struct new_account *fresh)
{
	json_t *body = doc_json(a, fresh->body), *secret = doc_json(a, fresh->secret_body);
	json_object_del(body, "grants");
	json_object_set_new(secret, "secret", str_json(fresh->secret));
	json_object_set_new(body, "secrets", json_pack("[O]", secret));
	return body;
}

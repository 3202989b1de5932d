/* Making credentials. A private key is kept as the two digest hashes it is checked by, sealed; a secret as its SHA-256,
 * which is enough because it is 40 random characters. */
#include "api/credentials.h"

#include "api/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "gate/authenticate.h"
#include "gate/gifts.h"

#include <errno.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZ" LOWER "0123456789"
#define CLIENT_PREFIX "mdb_sa_id_"
#define SECRET_PREFIX "mdb_sa_sk_"
#define SECRET_HOURS_LEAST 8

extern const struct resource resource_org_settings;

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

/* What a key shows of its private key after the first time: the last four characters. */
static struct str masked(struct arena *a, struct str private_key)
{
	char *text = arena_z(a, private_key);
	for (size_t i = 0; i + 4 < private_key.n; i++)
		if (text[i] != '-')
			text[i] = '*';
	return (struct str){text, private_key.n};
}

/* Eight letters are few enough that one may be taken. */
static int new_public_key(struct tx *tx, struct arena *a, struct str *ret_key)
{
	char text[9];
	struct str taken;
	for (;;) {
		random_text(text, 8, LOWER);
		int result = tx_ref_get(tx, a, "api_key_public", str_of(text), &taken);
		if (result == -ENOENT) {
			*ret_key = arena_dup(a, str_of(text));
			return 0;
		}
		if (result < 0)
			return result;
	}
}

static struct str key_secret(struct arena *a, const struct new_key *key)
{
	char md5[65], sha256[65];
	digest_ha1(false, key->public_key, key->private_key, md5);
	digest_ha1(true, key->public_key, key->private_key, sha256);
	struct str plain = arena_printf(a, "{\"md5\":\"%s\",\"sha256\":\"%s\"}", md5, sha256);
	return seal(a, plain, arena_printf(a, "api_key/%.*s", STR_ARG(key->id)));
}

static int grants_add(struct tx *tx, struct arena *a, enum grantee who, struct str id, const struct grant_row *grants,
                      size_t count)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < count; i++)
		result = grant_set(tx, a, who, id, grants[i].in_org, grants[i].id, grants[i].roles);
	return result;
}

int credential_add_key(struct tx *tx, struct arena *a, struct str org_id, struct str description,
                       const struct grant_row *grants, size_t grant_count, struct new_key *key)
{
	if (!key->id.n)
		key->id = new_id(a);
	int result = key->public_key.n ? 0 : new_public_key(tx, a, &key->public_key);
	if (result < 0)
		return result;
	if (!key->private_key.n)
		key->private_key = new_private_key(a);
	result = gift_secret(tx, key->id);
	if (result < 0)
		return result;
	json_t *body = owned(a, json_pack("{s:o, s:o, s:o, s:o}", "id", str_json(key->id), "desc",
	                                  str_json(description), "privateKey", str_json(masked(a, key->private_key)),
	                                  "publicKey", str_json(key->public_key)));
	key->body = json_text(a, body);
	struct doc d = {.kind = STR("api_key"),
	                .id = key->id,
	                .parent = org_id,
	                .created_ms = clock_now_ms(),
	                .body = key->body,
	                .secret = key_secret(a, key)};
	result = tx_insert(tx, &d);
	if (result == 0)
		result = tx_ref_put(tx, "api_key_public", key->public_key, key->id);
	if (result == 0)
		result = grants_add(tx, a, GRANTEE_KEY, key->id, grants, grant_count);
	tx_touch_identity(tx);
	return result;
}

int credential_add_secret(struct tx *tx, struct arena *a, int64_t hours, struct new_account *account)
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
	int result = gift_secret(tx, account->id);
	if (result < 0)
		return result;
	sha256_hex(account->secret, hash);
	struct doc d = {.kind = STR("sa_secret"),
	                .id = account->secret_id,
	                .parent = account->id,
	                .created_ms = now,
	                .body = account->secret_body,
	                .secret = str_of(hash)};
	return tx_insert(tx, &d);
}

int credential_secret_hours(struct call *c, struct str org_id, const json_t *from, const char *path, int64_t *ret_hours)
{
	int64_t hours = json_integer_value(json_object_get(from, "secretExpiresAfterHours"));
	struct doc settings;
	json_int_t most = 0;
	int result = tx_get(c->tx, c->arena, "org_settings", org_id, &settings);
	if (result < 0 && result != -ENOENT)
		return result;
	if (result == 0)
		most = json_integer_value(
		        json_object_get(doc_json(c->arena, settings.body), "maxServiceAccountSecretValidityInHours"));
	if (!most) {
		const json_t *standard = doc_json(c->arena, str_of(resource_org_settings.defaults));
		most = json_integer_value(json_object_get(standard, "maxServiceAccountSecretValidityInHours"));
	}
	if (hours < SECRET_HOURS_LEAST || hours > most) {
		struct faults faults = {.count = 0};
		faults_add(&faults, c->arena, arena_printf(c->arena, "%ssecretExpiresAfterHours", path),
		           "must be from %d to %lld, which is the most that the organization permits, not %lld",
		           SECRET_HOURS_LEAST, (long long)most, (long long)hours);
		return call_fail_faults(c, &faults);
	}
	*ret_hours = hours;
	return 0;
}

int credential_check_ours(struct call *c, struct str id, const char *code, const char *what)
{
	struct grant_row *rows;
	size_t count;
	if (!c->group.id.n || c->roles & role_bit("ORG_OWNER"))
		return 0;
	int result = grants_of(c->tx, c->arena, id, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		bool harmless =
		        rows[i].in_org ? rows[i].roles == role_bit("ORG_MEMBER") : str_eq(rows[i].id, c->group.id);
		if (!harmless) {
			call_fail(c, 403, code,
			          "%s has roles outside of this project: its organization's owners manage it.", what);
			return call_fail_param(c, rows[i].id);
		}
	}
	return result;
}

int credential_add_account(struct tx *tx, struct arena *a, struct str org_id, struct str name, struct str description,
                           const struct grant_row *grants, size_t grant_count, int64_t secret_hours,
                           struct new_account *account)
{
	if (!account->id.n)
		account->id = new_id(a);
	if (!account->client_id.n)
		account->client_id = arena_printf(a, CLIENT_PREFIX "%.*s", STR_ARG(account->id));
	json_t *body = owned(a, json_pack("{s:o, s:o, s:o, s:o}", "clientId", str_json(account->client_id), "name",
	                                  str_json(name), "description", str_json(description), "createdAt",
	                                  time_json(clock_now_ms())));
	account->body = json_text(a, body);
	struct doc d = {.kind = STR("service_account"),
	                .id = account->id,
	                .parent = org_id,
	                .created_ms = clock_now_ms(),
	                .body = account->body};
	int result = tx_insert(tx, &d);
	if (result == 0)
		result = tx_ref_put(tx, "service_account_client", account->client_id, account->id);
	if (result == 0)
		result = credential_add_secret(tx, a, secret_hours, account);
	if (result == 0)
		result = grants_add(tx, a, GRANTEE_ACCOUNT, account->id, grants, grant_count);
	tx_touch_identity(tx);
	return result;
}

int credential_add_access(struct tx *tx, struct arena *a, struct str owner_id, const struct cidr *network)
{
	char text[IP_TEXT];
	cidr_format(network, text);
	json_t *body = owned(
	        a, json_pack("{s:s, s:o, s:i}", "cidrBlock", text, "created", time_json(clock_now_ms()), "count", 0));
	struct doc d = {.kind = STR("api_access"),
	                .id = new_id(a),
	                .parent = owner_id,
	                .name = arena_dup(a, str_of(text)),
	                .created_ms = clock_now_ms(),
	                .body = json_text(a, body)};
	tx_touch_identity(tx);
	return tx_insert(tx, &d);
}

int credential_grant(struct tx *tx, struct arena *a, const struct principal *p, bool in_org, struct str scope_id,
                     const char *role)
{
	static const enum grantee grantees[] = {[PRINCIPAL_API_KEY] = GRANTEE_KEY,
	                                        [PRINCIPAL_SERVICE_ACCOUNT] = GRANTEE_ACCOUNT,
	                                        [PRINCIPAL_USER] = GRANTEE_USER};
	role_mask roles;
	int result = grant_get(tx, a, str_of(p->id), scope_id, &roles);
	if (result < 0)
		return result;
	return grant_set(tx, a, grantees[p->kind], str_of(p->id), in_org, scope_id, roles | role_bit(role));
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

int credential_delete(struct tx *tx, struct arena *a, enum grantee who, const struct doc *d)
{
	bool key = who == GRANTEE_KEY;
	json_t *value = json_object_get(doc_json(a, d->body), key ? "publicKey" : "clientId");
	int result = tx_ref_delete(tx, key ? "api_key_public" : "service_account_client",
	                           (struct str){json_string_value(value), json_string_length(value)});
	if (result == 0 || result == -ENOENT)
		result = delete_list(tx, a, "api_access", d->id);
	if (result == 0)
		result = delete_list(tx, a, "sa_secret", d->id);
	if (result == 0)
		result = delete_list(tx, a, "credential_holder", d->id);
	if (result == 0)
		result = grants_delete_grantee(tx, a, who, d->id);
	tx_touch_identity(tx);
	return result < 0 ? result : tx_delete(tx, key ? "api_key" : "service_account", d->id);
}

int credential_delete_all(struct tx *tx, struct arena *a, struct str org_id)
{
	static const char *const kinds[] = {[GRANTEE_KEY] = "api_key", [GRANTEE_ACCOUNT] = "service_account"};
	int result = 0;
	for (int who = GRANTEE_KEY; who <= GRANTEE_ACCOUNT; who++)
		for (size_t count = 1; result == 0 && count;) {
			struct doc *docs;
			result = tx_list(tx, a, kinds[who], org_id, 0, 500, &docs, &count);
			for (size_t i = 0; result == 0 && i < count; i++)
				result = credential_delete(tx, a, (enum grantee)who, &docs[i]);
		}
	return result;
}

int credential_key_json(struct tx *tx, struct arena *a, struct str body, json_t **ret_key)
{
	json_t *key = doc_json(a, body), *id = json_object_get(key, "id");
	struct grant_row *rows;
	size_t count;
	int result = grants_of(tx, a, (struct str){json_string_value(id), json_string_length(id)}, &rows, &count);
	if (result < 0)
		return result;
	json_object_set_new(key, "roles", assignments_json(rows, count));
	*ret_key = key;
	return 0;
}

int credential_account_json(struct tx *tx, struct arena *a, const struct doc *account, json_t **ret_account)
{
	json_t *body = doc_json(a, account->body), *secrets = owned(a, json_array());
	role_mask roles;
	struct doc *docs;
	size_t count;
	int result = grant_get(tx, a, account->id, account->parent, &roles);
	if (result == 0)
		result = tx_list(tx, a, "sa_secret", account->id, 0, 500, &docs, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		json_array_append(secrets, doc_json(a, docs[i].body));
	json_object_set_new(body, "roles", roles_json(roles));
	json_object_set(body, "secrets", secrets);
	*ret_account = body;
	return 0;
}

/* Making credentials. A private key is kept as the two digest hashes it is checked by, sealed; a secret as its SHA-256,
 * which is enough because it is 40 random characters. */
#include "api/credentials/credentials.h"

#include "base/clock.h"
#include "base/id.h"
#include "identity/gifts.h"
#include "identity/identity.h"

#include <errno.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZ" LOWER "0123456789"
#define CLIENT_PREFIX "mdb_sa_id_"
#define SECRET_PREFIX "mdb_sa_sk_"
#define SECRET_HOURS_LEAST 8

static struct str new_id(struct arena *a)
{
	struct id id = id_new();
	return arena_dup(a, id_str(&id));
}

static void put_time(json_t *object, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	json_put_z(object, name, text);
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
	json_t *body = json_keep(a, json_object());
	json_put_str(body, "id", key->id);
	json_put_str(body, "desc", description);
	json_put_str(body, "privateKey", masked(a, key->private_key));
	json_put_str(body, "publicKey", key->public_key);
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

void credential_secret_fill(struct arena *a, int64_t hours, json_t *document, struct str *secret)
{
	char text[41];
	int64_t now = clock_now_ms();
	if (!secret->n) {
		random_text(text, 40, ALNUM);
		*secret = arena_printf(a, SECRET_PREFIX "%s", text);
	}
	put_time(document, "createdAt", now);
	put_time(document, "expiresAt", now + hours * 3600 * 1000);
	json_put_str(document, "maskedSecretValue",
	             arena_printf(a, SECRET_PREFIX "****%.4s", secret->p + secret->n - 4));
}

int credential_secret_insert(struct tx *tx, struct doc *d, struct str secret)
{
	char hash[65];
	sha256_hex(secret, hash);
	d->secret = str_of(hash);
	int result = gift_secret(tx, d->parent);
	if (result == 0)
		result = tx_insert(tx, d);
	d->secret = STR_NONE;
	return result;
}

static int add_first_secret(struct tx *tx, struct arena *a, int64_t hours, struct new_account *account)
{
	json_t *body = json_keep(a, json_object());
	if (!account->secret_id.n)
		account->secret_id = new_id(a);
	json_put_str(body, "id", account->secret_id);
	credential_secret_fill(a, hours, body, &account->secret);
	struct doc d = {.kind = STR("sa_secret"),
	                .id = account->secret_id,
	                .parent = account->id,
	                .created_ms = clock_now_ms(),
	                .body = json_text(a, body)};
	return credential_secret_insert(tx, &d, account->secret);
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

int credential_add_account(struct tx *tx, struct arena *a, struct str org_id, struct str name, struct str description,
                           const struct grant_row *grants, size_t grant_count, int64_t secret_hours,
                           struct new_account *account)
{
	if (!account->id.n)
		account->id = new_id(a);
	if (!account->client_id.n)
		account->client_id = arena_printf(a, CLIENT_PREFIX "%.*s", STR_ARG(account->id));
	json_t *body = json_keep(a, json_object());
	json_put_str(body, "clientId", account->client_id);
	json_put_str(body, "name", name);
	json_put_str(body, "description", description);
	put_time(body, "createdAt", clock_now_ms());
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
		result = add_first_secret(tx, a, secret_hours, account);
	if (result == 0)
		result = grants_add(tx, a, GRANTEE_ACCOUNT, account->id, grants, grant_count);
	tx_touch_identity(tx);
	return result;
}

int credential_add_access(struct tx *tx, struct arena *a, struct str owner_id, const struct cidr *network)
{
	char text[IP_TEXT];
	cidr_format(network, text);
	json_t *body = json_keep(a, json_object());
	json_put_z(body, "cidrBlock", text);
	put_time(body, "created", clock_now_ms());
	json_put(body, "count", json_integer(0));
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

int credential_key_roles(struct tx *tx, struct arena *a, struct str id, struct str group_id, json_t *key)
{
	struct grant_row *rows;
	size_t count, kept = 0;
	int result = grants_of(tx, a, id, &rows, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		if (!group_id.n || rows[i].in_org || str_eq(rows[i].id, group_id))
			rows[kept++] = rows[i];
	json_put(key, "roles", assignments_json(rows, kept));
	return 0;
}

int credential_key_json(struct tx *tx, struct arena *a, struct str body, json_t **ret_key)
{
	json_t *key = doc_json(a, body);
	int result = credential_key_roles(tx, a, json_field(key, "id"), STR_NONE, key);
	if (result == 0)
		*ret_key = key;
	return result;
}

int credential_account_more(struct tx *tx, struct arena *a, struct str id, struct str scope, json_t *account)
{
	role_mask roles;
	struct doc *docs;
	size_t count;
	int result = grant_get(tx, a, id, scope, &roles);
	if (result == 0)
		result = tx_list_all(tx, a, "sa_secret", id, &docs, &count);
	if (result < 0)
		return result;
	json_t *secrets = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append(secrets, doc_json(a, docs[i].body));
	json_put(account, "roles", roles_json(roles));
	json_put(account, "secrets", secrets);
	return 0;
}

int credential_account_json(struct tx *tx, struct arena *a, const struct doc *account, json_t **ret_account)
{
	json_t *body = doc_json(a, account->body);
	int result = credential_account_more(tx, a, account->id, account->parent, body);
	if (result == 0)
		*ret_account = body;
	return result;
}

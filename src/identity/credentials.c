/* Making credentials. A private key is kept as the two digest hashes it is checked by, sealed; a secret as its SHA-256,
 * which is enough because it is 40 random characters. */
#include "identity/credentials.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "identity/gifts.h"
#include "identity/identity.h"

#include <errno.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZ" LOWER "0123456789"
#define CLIENT_PREFIX "mdb_sa_id_"
#define SECRET_PREFIX "mdb_sa_sk_"

/* A document with the id that is given, or else a new one, which is given back. */
static struct doc doc_with_id(struct arena *a, const char *kind, struct str parent, struct str *id)
{
	struct doc d = doc_new(a, kind, parent, STR_NONE, STR_NONE);
	if (id->n)
		d.id = *id;
	*id = d.id;
	return d;
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
	struct doc d = doc_with_id(a, "api_key", org_id, &key->id);
	int result = key->public_key.n ? 0 : new_public_key(tx, a, &key->public_key);
	if (result < 0)
		return result;
	if (!key->private_key.n)
		key->private_key = new_private_key(a);
	result = gift_secret(tx, key->id);
	if (result < 0)
		return result;
	json_t *body = json_new(a);
	json_put_str(body, "id", key->id);
	json_put_str(body, "desc", description);
	json_put_str(body, "privateKey", masked(a, key->private_key));
	json_put_str(body, "publicKey", key->public_key);
	d.body = key->body = json_text(a, body);
	d.secret = key_secret(a, key);
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
	json_put_time(document, "createdAt", now);
	json_put_time(document, "expiresAt", now + hours * 3600 * 1000);
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
	struct doc d = doc_with_id(a, "sa_secret", account->id, &account->secret_id);
	json_t *body = json_new(a);
	json_put_str(body, "id", d.id);
	credential_secret_fill(a, hours, body, &account->secret);
	d.body = json_text(a, body);
	return credential_secret_insert(tx, &d, account->secret);
}

int credential_add_account(struct tx *tx, struct arena *a, struct str org_id, struct str name, struct str description,
                           const struct grant_row *grants, size_t grant_count, int64_t secret_hours,
                           struct new_account *account)
{
	struct doc d = doc_with_id(a, "service_account", org_id, &account->id);
	if (!account->client_id.n)
		account->client_id = arena_printf(a, CLIENT_PREFIX "%.*s", STR_ARG(account->id));
	json_t *body = json_new(a);
	json_put_str(body, "clientId", account->client_id);
	json_put_str(body, "name", name);
	json_put_str(body, "description", description);
	json_put_time(body, "createdAt", d.created_ms);
	d.body = account->body = json_text(a, body);
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
	json_t *body = json_new(a);
	json_put_z(body, "cidrBlock", text);
	json_put_time(body, "created", clock_now_ms());
	json_put(body, "count", json_integer(0));
	struct doc d = doc_new(a, "api_access", owner_id, arena_dup(a, str_of(text)), json_text(a, body));
	tx_touch_identity(tx);
	return tx_insert(tx, &d);
}

int credential_grant(struct tx *tx, struct arena *a, const struct principal *p, bool in_org, struct str scope_id,
                     const char *role)
{
	static const enum grantee grantees[] = {[PRINCIPAL_API_KEY] = GRANTEE_KEY,
	                                        [PRINCIPAL_SERVICE_ACCOUNT] = GRANTEE_ACCOUNT,
	                                        [PRINCIPAL_USER] = GRANTEE_USER};
	return grant_add(tx, a, grantees[p->kind], str_of(p->id), in_org, scope_id, role_bit(role));
}

int credential_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	bool key = str_is(d->kind, "api_key");
	struct str public_name = document_text(a, d->body, key ? STR("publicKey") : STR("clientId"));
	struct doc *holders;
	size_t count = 0;
	int result = tx_ref_delete(tx, key ? "api_key_public" : "service_account_client", public_name);
	if (result == 0 || result == -ENOENT)
		result = tx_list_all(tx, a, "credential_holder", d->id, &holders, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = tx_delete(tx, "credential_holder", holders[i].id);
	if (result == 0)
		result = grants_delete_grantee(tx, a, key ? GRANTEE_KEY : GRANTEE_ACCOUNT, d->id);
	tx_touch_identity(tx);
	return result;
}

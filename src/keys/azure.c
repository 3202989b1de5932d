/* Azure Key Vault: wrapkey and unwrapkey with an RSA key. The vault is reached below Azure's own domain, whatever else
 * the identifier says; or at the operator's address. */
#include "base/json.h"
#include "keys/services.h"

#include "base/base64.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define ALGORITHM "RSA-OAEP-256"
#define API "7.4"

static const struct environment {
	const char *name, *domain, *login;
} environments[] = {{"AZURE", "vault.azure.net", "https://login.microsoftonline.com"},
                    {"AZURE_CHINA", "vault.azure.cn", "https://login.chinacloudapi.cn"},
                    {"AZURE_US_GOVERNMENT", "vault.usgovcloudapi.net", "https://login.microsoftonline.us"}};

static const struct environment *environment_of(const struct key_place *p)
{
	for (size_t i = 0; i < sizeof environments / sizeof *environments; i++)
		if (str_is(p->environment, environments[i].name))
			return &environments[i];
	return &environments[0];
}

/* The path of a key's version in https://VAULT.DOMAIN/keys/NAME/VERSION; STR_NONE: it is something else. */
static struct str path_of(const struct key_place *p)
{
	struct str rest = p->key, host, path, keys, name, version;
	char wanted[160];
	if (!str_starts(rest, STR("https://")))
		return STR_NONE;
	rest = (struct str){rest.p + 8, rest.n - 8};
	snprintf(wanted, sizeof wanted, "%.*s.%s", (int)(p->vault.n < 100 ? p->vault.n : 100), p->vault.p,
	         environment_of(p)->domain);
	if (!str_cut(rest, '/', &host, &path) || !str_ieq(host, str_of(wanted)) || !str_cut(path, '/', &keys, &rest) ||
	    !str_is(keys, "keys") || !str_cut(rest, '/', &name, &version) || !name.n || !version.n || name.n > 127 ||
	    version.n > 64 || !text_is_plain(name, "-") || !text_is_plain(version, ""))
		return STR_NONE;
	return path;
}

const char *azure_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field)
{
	*ret_field = "keyVaultName";
	if (p->vault.n < 3 || p->vault.n > 24 || !text_is_plain(p->vault, "-"))
		return "is required: from 3 to 24 letters, digits and hyphens";
	*ret_field = "keyIdentifier";
	if (!path_of(p).n)
		return "must be the identifier of a key's version in that vault: "
		       "https://VAULT.vault.azure.net/keys/NAME/VERSION";
	*ret_field = "tenantID";
	if (!p->role && !p->tenant.n)
		return "is required, or roleId";
	*ret_field = "clientID";
	if (!p->role && !p->client.n)
		return "is required beside tenantID";
	*ret_field = "secret";
	return p->role || p->secret.n ? NULL : "is required beside clientID";
}

static int token_get(struct keys *k, const struct key_place *p, struct provider_credentials *ret_token, char *why)
{
	const struct environment *e = environment_of(p);
	char scope[80];
	int64_t lasts;
	snprintf(scope, sizeof scope, "https://%s/.default", e->domain);
	if (p->role) {
		struct provider_role role = *p->role;
		role.scope = str_of(scope);
		return provider_credentials_get(k->providers, &role, ret_token, why);
	}
	char *secret = text_copy(p->secret);
	struct azure_client client = {.endpoint = k->azure_login ? k->azure_login : e->login,
	                              .secret = secret,
	                              .tenant = p->tenant,
	                              .app_id = p->client,
	                              .scope = str_of(scope)};
	int r = azure_token(k->providers, &client, ret_token, &lasts, why);
	provider_wipe(secret);
	return r == -EKEYREJECTED ? -EACCES : r; /* the client is the tenant's */
}

static int ask(struct keys *k, const struct key_place *p, const char *what, struct str value, const char *payload,
               json_t **ret_answer, char *why)
{
	struct provider_credentials c = {.token = NULL};
	struct buf url = {0}, body = {0};
	struct str path = path_of(p);
	int r = token_get(k, p, &c, why);
	if (r < 0)
		return r;
	if (k->azure)
		buf_printf(&url, "%s/%.*s/%s?api-version=" API "%c", k->azure, STR_ARG(path), what, 0);
	else
		buf_printf(&url, "https://%.*s.%s/%.*s/%s?api-version=" API "%c", STR_ARG(p->vault),
		           environment_of(p)->domain, STR_ARG(path), what, 0);
	buf_reserve(&body, 16384);
	json_open(&body, '{');
	json_pair_str(&body, "alg", STR(ALGORITHM));
	json_pair_str(&body, "value", value);
	json_close(&body, '}');
	struct key_question q = {.service = "Key Vault",
	                         .code = "code",
	                         .what = what,
	                         .payload = payload,
	                         .url = url.p,
	                         .own = k->azure,
	                         .body = body,
	                         .by = c};
	return answer_get(k, &q, ret_answer, why);
}

static int wrap(struct keys *k, struct arena *a, const struct key_place *p, const unsigned char *plain,
                struct key_wrap *ret_wrap, char *why)
{
	char text[BASE64_TEXT(DATA_KEY_BYTES)];
	static const struct key_words wrapped = {"wrapkey", "value", "kid", 512, ":/-."};
	json_t *answer = NULL;
	base64url_encode(plain, DATA_KEY_BYTES, text);
	int r = ask(k, p, "wrapkey", str_of(text), text, &answer, why);
	if (r == 0)
		r = answer_wrap(a, answer, &wrapped, text, ret_wrap, why);
	OPENSSL_cleanse(text, sizeof text);
	return r;
}

static int unwrap(struct keys *k, const struct key_place *p, struct str bytes, unsigned char *ret_plain, char *why)
{
	static const struct key_words plain = {.what = "unwrapkey", .bytes = "value"};
	json_t *answer = NULL;
	int r = ask(k, p, "unwrapkey", bytes, NULL, &answer, why);
	return r < 0 ? r : answer_unwrap(answer, &plain, ret_plain, why);
}

const struct key_service azure_keys = {wrap, unwrap};

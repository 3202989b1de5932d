/* Google Cloud KMS: encrypt with a version of a key, decrypt with the key, which knows its versions; the project's id
 * is authenticated with it. A key of an account says where its tokens come from: that is not believed. */
#include "base/json.h"
#include "keys/services.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define VERSIONS "/cryptoKeyVersions/"
#define TOKEN_URL "https://oauth2.googleapis.com/token"

/* projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/V */
static bool is_version(struct str key)
{
	static const char *const names[] = {"projects", "locations", "keyRings", "cryptoKeys", "cryptoKeyVersions"};
	struct str rest = key, part;
	if (key.n > 1024)
		return false;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!str_cut(rest, '/', &part, &rest) || !str_is(part, names[i]))
			return false;
		bool last = i + 1 == sizeof names / sizeof *names;
		if (last)
			part = rest;
		else if (!str_cut(rest, '/', &part, &rest))
			return false;
		if (!part.n || part.p[0] == '.' || !text_is_plain(part, last ? "" : "-_.:"))
			return false;
	}
	return true;
}

/* The key file of an account. Its texts are borrowed from *ret_file, which is owned. */
static bool account_read(struct str text, json_t **ret_file, struct google_signer *ret_signer)
{
	json_t *file = json_loadb(text.p ? text.p : "", text.n, 0, NULL);
	struct str email = json_field(file, "client_email"), id = json_field(file, "private_key_id"),
	           pem = json_field(file, "private_key");
	*ret_file = file;
	*ret_signer = (struct google_signer){.email = email.p, .key_id = id.p};
	if (email.n && email.n < 256 && id.n && id.n < 256)
		ret_signer->key = google_key_parse(pem);
	if (pem.n)
		OPENSSL_cleanse((char *)(uintptr_t)pem.p, pem.n);
	return ret_signer->key;
}

const char *google_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field)
{
	struct google_signer signer;
	json_t *file;
	*ret_field = "keyVersionResourceID";
	if (!is_version(p->key))
		return "must be projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/V";
	*ret_field = "serviceAccountKey";
	if (p->role)
		return NULL;
	if (!p->secret.n)
		return "is required, or roleId";
	bool good = account_read(p->secret, &file, &signer);
	EVP_PKEY_free(signer.key);
	json_decref(file);
	return good ? NULL : "is no key (JSON) of a service account: private_key (RSA), private_key_id, client_email";
}

static int token_get(struct keys *k, const struct key_place *p, struct provider_credentials *ret_token, char *why)
{
	struct google_signer signer;
	struct buf url = {0};
	json_t *file;
	int64_t lasts;
	int r = -EACCES;
	if (p->role)
		return provider_credentials_get(k->providers, p->role, ret_token, why);
	buf_printf(&url, "%s%s%c", k->google ? k->google : TOKEN_URL, k->google ? "/token" : "", 0);
	if (account_read(p->secret, &file, &signer)) {
		signer.token_url = url.p;
		r = google_token(k->providers, &signer, ret_token, &lasts, why);
	} else
		snprintf(why, KEY_WHY, "the account's key cannot be read");
	EVP_PKEY_free(signer.key);
	json_decref(file);
	buf_free(&url);
	return r == -EKEYREJECTED ? -EACCES : r; /* the account is the tenant's */
}

static int ask(struct keys *k, const struct key_place *p, const char *what, struct str name, const char *field,
               struct str value, const char *payload, json_t **ret_answer, char *why)
{
	struct provider_credentials c = {.token = NULL};
	struct buf url = {0}, body = {0};
	char context[64] = "";
	int r = token_get(k, p, &c, why);
	if (r < 0)
		return r;
	buf_printf(&url, "%s/v1/%.*s:%s%c", k->google ? k->google : "https://cloudkms.googleapis.com", STR_ARG(name),
	           what, 0);
	if (p->group_id.n < 40)
		base64_padded(p->group_id.p, p->group_id.n, context);
	buf_reserve(&body, 16384);
	json_open(&body, '{');
	json_pair_str(&body, field, value);
	json_pair_str(&body, "additionalAuthenticatedData", str_of(context));
	json_close(&body, '}');
	struct key_question q = {.service = "Cloud KMS",
	                         .code = "status",
	                         .what = what,
	                         .payload = payload,
	                         .url = url.p,
	                         .own = k->google,
	                         .body = body,
	                         .by = c};
	return answer_get(k, &q, ret_answer, why);
}

static int wrap(struct keys *k, struct arena *a, const struct key_place *p, const unsigned char *plain,
                struct key_wrap *ret_wrap, char *why)
{
	static const struct key_words wrapped = {"encrypt", "ciphertext", "name", 1024, "/-_.:"};
	char text[PLAIN_TEXT];
	json_t *answer = NULL;
	base64_padded(plain, DATA_KEY_BYTES, text);
	int r = ask(k, p, "encrypt", p->key, "plaintext", str_of(text), text, &answer, why);
	if (r == 0)
		r = answer_wrap(a, answer, &wrapped, text, ret_wrap, why);
	OPENSSL_cleanse(text, sizeof text);
	return r;
}

static int unwrap(struct keys *k, const struct key_place *p, struct str bytes, unsigned char *ret_plain, char *why)
{
	const char *version = memmem(p->key.p, p->key.n, VERSIONS, strlen(VERSIONS));
	struct str name = {p->key.p, version ? (size_t)(version - p->key.p) : p->key.n};
	static const struct key_words plain = {.what = "decrypt", .bytes = "plaintext"};
	json_t *answer = NULL;
	int r = ask(k, p, "decrypt", name, "ciphertext", bytes, NULL, &answer, why);
	return r < 0 ? r : answer_unwrap(answer, &plain, ret_plain, why);
}

const struct key_service google_keys = {wrap, unwrap};

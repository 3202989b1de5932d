/* From a place to its service; and data keys as such. */
#include "keys/keys.h"

#include "base/id.h"
#include "base/option.h"
#include "keys/services.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PROOF_OF "steward data key 1"

/* Settings. */

static int endpoint_take(const char *option, const char *url, char **ret_copy)
{
	if (!url)
		return 0;
	int r = provider_endpoint_check(option, url);
	if (r == 0)
		*ret_copy = provider_endpoint_copy(url);
	return r;
}

static int local_take(struct keys *k, const char *dir)
{
	struct stat st;
	if (!dir)
		return 0;
	if (stat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return option_refuse("--keys-local: %s is no directory", dir);
	char *real = realpath(dir, NULL);
	k->local = must_strdup(real ? real : dir);
	free(real);
	return 0;
}

int keys_open(const struct key_settings *s, struct providers *p, struct keys **ret_keys)
{
	struct keys *k = must_calloc(1, sizeof *k);
	k->providers = p;
	pthread_mutex_init(&k->lock, NULL);
	int r = endpoint_take("--keys-aws-endpoint", s->aws_endpoint, &k->aws);
	if (r == 0)
		r = endpoint_take("--keys-azure-endpoint", s->azure_endpoint, &k->azure);
	if (r == 0)
		r = endpoint_take("--keys-google-endpoint", s->google_endpoint, &k->google);
	if (r == 0)
		r = endpoint_take("--provider-azure-endpoint", s->azure_login, &k->azure_login);
	if (r == 0)
		r = local_take(k, s->local);
	if (r == 0)
		r = token_open(s, &k->token);
	if (r < 0) {
		keys_close(k);
		return r;
	}
	*ret_keys = k;
	return 0;
}

void keys_close(struct keys *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->kept_count; i++)
		data_key_free(&k->kept[i].key);
	free(k->kept);
	free(k->known);
	free(k->aws);
	free(k->azure);
	free(k->google);
	free(k->azure_login);
	free(k->local);
	token_close(k->token);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

/* Services. */

bool key_is_local(struct str key)
{
	return str_starts(key, STR("local/"));
}

static bool key_is_on_token(struct str key)
{
	return str_starts(key, STR("pkcs11/"));
}

static const struct key_service *service_of(const struct key_place *p)
{
	static const struct key_service *const by_provider[PROVIDERS] = {&aws_keys, &azure_keys, &google_keys};
	if (p->provider == PROVIDER_AWS && key_is_local(p->key))
		return &local_keys;
	return p->provider == PROVIDER_AWS && key_is_on_token(p->key) ? &token_keys : by_provider[p->provider];
}

const char *key_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field)
{
	switch (p->provider) {
	case PROVIDER_AWS:
		return key_is_local(p->key)      ? local_place_fault(k, p, ret_field)
		       : key_is_on_token(p->key) ? token_place_fault(k, p, ret_field)
		                                 : aws_place_fault(k, p, ret_field);
	case PROVIDER_AZURE: return azure_place_fault(k, p, ret_field);
	case PROVIDER_GCP: return google_place_fault(k, p, ret_field);
	}
	return NULL;
}

int key_wrap(struct keys *k, struct arena *a, const struct key_place *p, const struct data_key *key,
             struct key_wrap *ret_wrap, char ret_why[KEY_WHY])
{
	*ret_wrap = (struct key_wrap){.bytes = STR_NONE};
	return service_of(p)->wrap(k, a, p, key->bytes, ret_wrap, ret_why);
}

int key_unwrap(struct keys *k, const struct key_place *p, struct str bytes, struct data_key *ret_key,
               char ret_why[KEY_WHY])
{
	data_key_make(ret_key);
	int r = service_of(p)->unwrap(k, p, bytes, ret_key->bytes, ret_why);
	if (r < 0)
		data_key_free(ret_key);
	return r;
}

int key_prove(struct keys *k, struct arena *a, const struct key_place *p, const struct data_key *key,
              struct key_wrap *ret_wrap, char ret_why[KEY_WHY])
{
	struct data_key back;
	int r = key_wrap(k, a, p, key, ret_wrap, ret_why);
	if (r == 0)
		r = key_unwrap(k, p, ret_wrap->bytes, &back, ret_why);
	if (r < 0)
		return r;
	bool same = CRYPTO_memcmp(back.bytes, key->bytes, DATA_KEY_BYTES) == 0;
	data_key_free(&back);
	if (same)
		return 0;
	snprintf(ret_why, KEY_WHY, "the key service gave back another key than it was given");
	return -EBADMSG;
}

struct str key_remedy(struct arena *a, const struct key_place *p)
{
	switch (p->provider) {
	case PROVIDER_AWS:
		if (key_is_local(p->key))
			return STR("The key lies in the operator's directory: only its operator can mend this.");
		if (key_is_on_token(p->key))
			return STR("The key is on the operator's token: only its operator can mend this.");
		return arena_printf(a,
		                    "Give %s this policy, and let the key's own policy allow it: "
		                    "{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Action\":["
		                    "\"kms:Encrypt\",\"kms:Decrypt\"],\"Resource\":\"%.*s\"}]}",
		                    p->role ? "the role" : "the access key's user",
		                    (int)(str_starts(p->key, STR("arn:")) ? p->key.n : 1),
		                    str_starts(p->key, STR("arn:")) ? p->key.p : "*");
	case PROVIDER_AZURE:
		return arena_printf(
		        a,
		        "Run: az role assignment create --role \"Key Vault Crypto Service Encryption User\" "
		        "--assignee %.*s --scope THE_VAULT; and see that the key is enabled and of type RSA.",
		        STR_ARG(p->role ? p->role->principal : p->client));
	case PROVIDER_GCP:
		return arena_printf(
		        a,
		        "Run: gcloud kms keys add-iam-policy-binding THE_KEY --member=serviceAccount:%.*s "
		        "--role=roles/cloudkms.cryptoKeyEncrypterDecrypter; and see that the version is enabled.",
		        (int)(p->role ? p->role->account.n : 11), p->role ? p->role->account.p : "THE_ACCOUNT");
	}
	return STR_NONE;
}

/* Data keys. */

void data_key_new(struct data_key *ret_key)
{
	struct id id = id_new();
	data_key_make(ret_key);
	memcpy(ret_key->id, id.z, sizeof ret_key->id);
	random_bytes(ret_key->bytes, DATA_KEY_BYTES);
}

void data_key_proof(const struct data_key *key, char ret_proof[65])
{
	unsigned char mac[32];
	unsigned n = sizeof mac;
	HMAC(EVP_sha256(), key->bytes, DATA_KEY_BYTES, (const unsigned char *)PROOF_OF, strlen(PROOF_OF), mac, &n);
	hex_encode(mac, sizeof mac, ret_proof);
	OPENSSL_cleanse(mac, sizeof mac);
}

/* OpenSSL and zstd as this folder uses them. Making a context or setting a key costs more than a small chunk does, so
 * each thread keeps its contexts, with the keys that they had last. */
#include "repository/crypt.h"

#include "base/arena.h"
#include "repository/common.h"
#include "repository/format.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#define PIECE ((size_t)1 << 30) /* OpenSSL counts in int */

struct keyed_mac {
	EVP_MAC_CTX *context;
	unsigned char key[REPO_KEY_BYTES];
	bool keyed;
};
struct keyed_cipher {
	EVP_CIPHER_CTX *context;
	unsigned char key[REPO_KEY_BYTES];
	bool keyed;
};
struct tools {
	struct keyed_mac mac, derive;
	struct keyed_cipher seal, open;
	ZSTD_CCtx *compress;
	ZSTD_DCtx *expand;
};

static EVP_MAC *hmac_method;
static EVP_CIPHER *gcm_method;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;

/* These libraries fail here only when memory has run out or their installation is broken. */
static void must(bool ok)
{
	if (ok)
		return;
	fprintf(stderr, "steward: the cryptography or compression library failed\n");
	abort();
}

static void tools_free(void *arg)
{
	struct tools *t = arg;
	EVP_MAC_CTX_free(t->mac.context);
	EVP_MAC_CTX_free(t->derive.context);
	EVP_CIPHER_CTX_free(t->seal.context);
	EVP_CIPHER_CTX_free(t->open.context);
	ZSTD_freeCCtx(t->compress);
	ZSTD_freeDCtx(t->expand);
	OPENSSL_cleanse(t, sizeof(*t));
	free(t);
}

static void setup(void)
{
	hmac_method = EVP_MAC_fetch(NULL, "HMAC", NULL);
	gcm_method = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
	must(hmac_method && gcm_method && pthread_key_create(&thread_key, tools_free) == 0);
}

static struct tools *tools(void)
{
	pthread_once(&once, setup);
	struct tools *t = pthread_getspecific(thread_key);
	if (t)
		return t;
	t = must_calloc(1, sizeof(*t));
	t->mac.context = EVP_MAC_CTX_new(hmac_method);
	t->derive.context = EVP_MAC_CTX_new(hmac_method);
	t->seal.context = EVP_CIPHER_CTX_new();
	t->open.context = EVP_CIPHER_CTX_new();
	t->compress = ZSTD_createCCtx();
	t->expand = ZSTD_createDCtx();
	must(t->mac.context && t->derive.context && t->seal.context && t->open.context && t->compress && t->expand &&
	     pthread_setspecific(thread_key, t) == 0);
	return t;
}

static void mac_run(struct keyed_mac *m, const unsigned char *key, struct str a, struct str b,
                    unsigned char ret_mac[HASH_BYTES])
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	                       OSSL_PARAM_construct_end()};
	size_t n = 0;
	bool same = m->keyed && memcmp(m->key, key, REPO_KEY_BYTES) == 0;
	/* Without a key argument: begins again with the key that it has. */
	must(same ? EVP_MAC_init(m->context, NULL, 0, NULL) : EVP_MAC_init(m->context, key, REPO_KEY_BYTES, params));
	memcpy(m->key, key, REPO_KEY_BYTES);
	m->keyed = true;
	must((!a.n || EVP_MAC_update(m->context, (const unsigned char *)a.p, a.n)) &&
	     (!b.n || EVP_MAC_update(m->context, (const unsigned char *)b.p, b.n)) &&
	     EVP_MAC_final(m->context, ret_mac, &n, HASH_BYTES) && n == HASH_BYTES);
}

void crypt_mac(const unsigned char key[REPO_KEY_BYTES], const void *bytes, size_t n, unsigned char ret_mac[HASH_BYTES])
{
	mac_run(&tools()->mac, key, (struct str){bytes, n}, STR_NONE, ret_mac);
}

/* The salts here are at most 32 bytes long; HMAC fills a shorter key with zeros, so that this is the RFC's extract. */
void crypt_derive(const unsigned char key[REPO_KEY_BYTES], const void *salt, size_t salt_n, const char *info,
                  unsigned char ret_key[REPO_KEY_BYTES])
{
	struct keyed_mac *m = &tools()->derive;
	unsigned char padded[REPO_KEY_BYTES] = {0}, extracted[HASH_BYTES];
	assert(salt_n <= sizeof padded);
	if (salt_n)
		memcpy(padded, salt, salt_n);
	mac_run(m, padded, (struct str){(const char *)key, REPO_KEY_BYTES}, STR_NONE, extracted);
	mac_run(m, extracted, str_of(info), STR("\001"), ret_key);
	OPENSSL_cleanse(extracted, sizeof extracted);
}

static EVP_CIPHER_CTX *cipher_begin(struct keyed_cipher *c, bool encrypt, const unsigned char *key,
                                    const unsigned char *nonce, struct str aad)
{
	int n = 0;
	bool same = c->keyed && memcmp(c->key, key, REPO_KEY_BYTES) == 0;
	must(EVP_CipherInit_ex2(c->context, same ? NULL : gcm_method, same ? NULL : key, nonce, encrypt, NULL));
	memcpy(c->key, key, REPO_KEY_BYTES);
	c->keyed = true;
	must(EVP_CipherUpdate(c->context, NULL, &n, (const unsigned char *)aad.p, (int)aad.n));
	return c->context;
}

static bool cipher_bytes(EVP_CIPHER_CTX *c, const unsigned char *in, size_t n, unsigned char *out)
{
	for (size_t at = 0, some; at < n; at += some) {
		int done = 0;
		some = n - at < PIECE ? n - at : PIECE;
		if (!EVP_CipherUpdate(c, out + at, &done, in + at, (int)some) || (size_t)done != some)
			return false;
	}
	return true;
}

void crypt_seal(const unsigned char key[REPO_KEY_BYTES], const unsigned char nonce[NONCE_BYTES], struct str aad,
                const void *plain, size_t n, unsigned char *out)
{
	int last = 0;
	EVP_CIPHER_CTX *c = cipher_begin(&tools()->seal, true, key, nonce, aad);
	must(cipher_bytes(c, plain, n, out) && EVP_CipherFinal_ex(c, out + n, &last) && last == 0 &&
	     EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, out + n));
}

int crypt_open(const unsigned char key[REPO_KEY_BYTES], const unsigned char nonce[NONCE_BYTES], struct str aad,
               const void *sealed, size_t n, unsigned char *out)
{
	int last = 0;
	const unsigned char *in = sealed;
	unsigned char tag[TAG_BYTES], none[TAG_BYTES];
	EVP_CIPHER_CTX *c = cipher_begin(&tools()->open, false, key, nonce, aad);
	memcpy(tag, in + n, TAG_BYTES);
	if (cipher_bytes(c, in, n, out) && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) &&
	    EVP_CipherFinal_ex(c, none, &last))
		return 0;
	return -EBADMSG;
}

void crypt_prove_begin(struct crypt_proof *p, const unsigned char key[REPO_KEY_BYTES],
                       const unsigned char nonce[NONCE_BYTES], struct str aad)
{
	*p = (struct crypt_proof){.n = 0};
	cipher_begin(&tools()->open, false, key, nonce, aad);
}

static void prove_bytes(struct crypt_proof *p, const unsigned char *bytes, size_t n)
{
	unsigned char plain[4096];
	for (size_t at = 0, some; at < n && !p->broken; at += some) {
		some = n - at < sizeof plain ? n - at : sizeof plain;
		p->broken = !cipher_bytes(tools()->open.context, bytes + at, some, plain);
	}
	OPENSSL_cleanse(plain, sizeof plain);
}

void crypt_prove_add(struct crypt_proof *p, const void *bytes, size_t n)
{
	const unsigned char *in = bytes;
	size_t over = p->n + n > TAG_BYTES ? p->n + n - TAG_BYTES : 0, old = over < p->n ? over : p->n;
	/* What can no longer be the tag: first of what was held, then of what is new. */
	prove_bytes(p, p->held, old);
	prove_bytes(p, in, over - old);
	memmove(p->held, p->held + old, p->n - old);
	memcpy(p->held + (p->n - old), in + (over - old), n - (over - old));
	p->n += n - over;
}

int crypt_prove_end(struct crypt_proof *p)
{
	int last = 0;
	unsigned char none[TAG_BYTES];
	EVP_CIPHER_CTX *c = tools()->open.context;
	bool proven = !p->broken && p->n == TAG_BYTES &&
	              EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, p->held) &&
	              EVP_CipherFinal_ex(c, none, &last);
	return proven ? 0 : -EBADMSG;
}

size_t crypt_compress(int level, const void *plain, size_t n, void *out, size_t room)
{
	size_t got = ZSTD_compressCCtx(tools()->compress, out, room, plain, n, level);
	return ZSTD_isError(got) ? 0 : got;
}

int crypt_expand(const void *bytes, size_t packed, void *out, size_t n)
{
	size_t got = ZSTD_decompressDCtx(tools()->expand, out, n, bytes, packed);
	return ZSTD_isError(got) || got != n ? -EBADMSG : 0;
}

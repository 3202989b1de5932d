/* A stream of bytes under the project's data key: AES-256-GCM in segments, so that neither who writes nor who reads has
 * to hold all of it. docs/exports.md tells the bytes. The number of a segment, and whether it is the last, are its
 * nonce: segments that were cut off, exchanged or repeated do not open. */
#include "api/exports/seal.h"

#include "base/arena.h"
#include "base/data_key.h"
#include "base/id.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#define MAGIC "SWX1"
#define HEADER 48
#define SALT_AT 8
#define SALT 16
#define KEY_ID_AT 24
#define SEGMENT 65536
#define TAG 16
#define NONCE 12

struct export_seal {
	struct data_key key;
	EVP_CIPHER_CTX *cipher;
	export_seal_out *out;
	void *ctx;
	unsigned char header[HEADER], plain[SEGMENT], sealed[SEGMENT + TAG];
	size_t n;
	uint32_t number;
};

/* HKDF-SHA256 of RFC 5869, one block of output. */
static void derive(const unsigned char key[DATA_KEY_BYTES], const void *salt, size_t salt_n, const char *info,
                   unsigned char ret_key[DATA_KEY_BYTES])
{
	unsigned char extracted[32], text[32];
	unsigned length = 32;
	size_t n = strlen(info);
	HMAC(EVP_sha256(), salt, (int)salt_n, key, DATA_KEY_BYTES, extracted, &length);
	memcpy(text, info, n);
	text[n] = 1;
	HMAC(EVP_sha256(), extracted, 32, text, n + 1, ret_key, &length);
	OPENSSL_cleanse(extracted, sizeof extracted);
}

static void number_put(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

int export_seal_begin(const struct data_key *key, struct str group, export_seal_out *out, void *ctx,
                      struct export_seal **ret_seal)
{
	struct export_seal *s = must_calloc(1, sizeof *s);
	s->out = out;
	s->ctx = ctx;
	memcpy(s->header, MAGIC, 4);
	number_put(s->header + 4, SEGMENT);
	random_bytes(s->header + SALT_AT, SALT);
	for (size_t i = 0; i < DATA_KEY_ID / 2; i++)
		s->header[KEY_ID_AT + i] =
		        (unsigned char)(hex_value(key->id[2 * i]) << 4 | hex_value(key->id[2 * i + 1]));
	data_key_make(&s->key);
	derive(key->bytes, group.p, group.n, "exports", s->key.bytes);
	derive(s->key.bytes, s->header + SALT_AT, SALT, "object", s->key.bytes);
	s->cipher = EVP_CIPHER_CTX_new();
	bool ready = s->cipher && EVP_EncryptInit_ex(s->cipher, EVP_aes_256_gcm(), NULL, s->key.bytes, NULL) == 1;
	if (!ready) {
		export_seal_free(s);
		return -ENOMEM;
	}
	*ret_seal = s;
	return 0;
}

static int segment_put(struct export_seal *s, bool last)
{
	unsigned char nonce[NONCE] = {0};
	int n = 0, more = 0;
	number_put(nonce, s->number);
	nonce[4] = last;
	if (s->number == UINT32_MAX)
		return -EFBIG;
	if (EVP_EncryptInit_ex(s->cipher, NULL, NULL, NULL, nonce) != 1 ||
	    EVP_EncryptUpdate(s->cipher, NULL, &n, s->header, HEADER) != 1 ||
	    EVP_EncryptUpdate(s->cipher, s->sealed, &n, s->plain, (int)s->n) != 1 ||
	    EVP_EncryptFinal_ex(s->cipher, s->sealed + n, &more) != 1 ||
	    EVP_CIPHER_CTX_ctrl(s->cipher, EVP_CTRL_GCM_GET_TAG, TAG, s->sealed + s->n) != 1)
		return -ENOMEM;
	int r = s->number == 0 ? s->out(s->ctx, s->header, HEADER) : 0;
	r = r < 0 ? r : s->out(s->ctx, s->sealed, s->n + TAG);
	s->number++;
	s->n = 0;
	return r;
}

/* A full segment waits for more: it may be the last. */
int export_seal_write(struct export_seal *s, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	int r = 0;
	while (n && r == 0) {
		if (s->n == SEGMENT)
			r = segment_put(s, false);
		size_t some = n < SEGMENT - s->n ? n : SEGMENT - s->n;
		memcpy(s->plain + s->n, at, some);
		s->n += some;
		at += some;
		n -= some;
	}
	return r;
}

int export_seal_end(struct export_seal *s)
{
	return segment_put(s, true);
}

void export_seal_free(struct export_seal *s)
{
	if (!s)
		return;
	EVP_CIPHER_CTX_free(s->cipher);
	data_key_free(&s->key);
	OPENSSL_cleanse(s->plain, sizeof s->plain);
	free(s);
}

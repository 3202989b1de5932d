/* A stream of bytes under the project's data key: AES-256-GCM in segments, so that neither who writes nor who reads has
 * to hold all of it. docs/exports.md tells the bytes. The number of a segment, and whether it is the last, are its
 * nonce: segments that were cut off, exchanged or repeated do not open. */
#include "objects/seal.h"

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

struct object_seal {
	struct data_key key;
	EVP_CIPHER_CTX *cipher;
	objects_write *out;
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

static void keys_derive(const struct data_key *key, struct str group, const char *purpose, const unsigned char *header,
                        unsigned char ret_key[DATA_KEY_BYTES])
{
	derive(key->bytes, group.p, group.n, purpose, ret_key);
	derive(ret_key, header + SALT_AT, SALT, "object", ret_key);
}

static void number_put(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

int object_seal_begin(const struct data_key *key, struct str group, const char *purpose, objects_write *out, void *ctx,
                      struct object_seal **ret_seal)
{
	struct object_seal *s = must_calloc(1, sizeof *s);
	s->out = out;
	s->ctx = ctx;
	memcpy(s->header, MAGIC, 4);
	number_put(s->header + 4, SEGMENT);
	random_bytes(s->header + SALT_AT, SALT);
	for (size_t i = 0; i < DATA_KEY_ID / 2; i++)
		s->header[KEY_ID_AT + i] =
		        (unsigned char)(hex_value(key->id[2 * i]) << 4 | hex_value(key->id[2 * i + 1]));
	data_key_make(&s->key);
	keys_derive(key, group, purpose, s->header, s->key.bytes);
	s->cipher = EVP_CIPHER_CTX_new();
	bool ready = s->cipher && EVP_EncryptInit_ex(s->cipher, EVP_aes_256_gcm(), NULL, s->key.bytes, NULL) == 1;
	if (!ready) {
		object_seal_free(s);
		return -ENOMEM;
	}
	*ret_seal = s;
	return 0;
}

static void nonce_make(uint32_t number, bool last, unsigned char nonce[NONCE])
{
	memset(nonce, 0, NONCE);
	number_put(nonce, number);
	nonce[4] = last;
}

static int segment_put(struct object_seal *s, bool last)
{
	unsigned char nonce[NONCE];
	int n = 0, more = 0;
	nonce_make(s->number, last, nonce);
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
int object_seal_write(struct object_seal *s, const void *bytes, size_t n)
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

int object_seal_end(struct object_seal *s)
{
	return segment_put(s, true);
}

void object_seal_free(struct object_seal *s)
{
	if (!s)
		return;
	EVP_CIPHER_CTX_free(s->cipher);
	data_key_free(&s->key);
	OPENSSL_cleanse(s->plain, sizeof s->plain);
	free(s);
}

/* --- opening */

struct object_opening {
	struct str group;
	const char *purpose;
	object_key_get *get;
	void *get_ctx;
	objects_write *out;
	void *ctx;
	struct data_key key; /* without bytes until the header was read */
	EVP_CIPHER_CTX *cipher;
	unsigned char header[HEADER], sealed[SEGMENT + TAG], plain[SEGMENT];
	size_t header_n, n;
	uint32_t number;
};

struct object_opening *object_open_begin(struct str group, const char *purpose, object_key_get *get, void *get_ctx,
                                         objects_write *out, void *ctx)
{
	struct object_opening *o = must_calloc(1, sizeof *o);
	o->group = group;
	o->purpose = purpose;
	o->get = get;
	o->get_ctx = get_ctx;
	o->out = out;
	o->ctx = ctx;
	return o;
}

static int header_read(struct object_opening *o)
{
	unsigned char segment[4];
	char id[DATA_KEY_ID + 1];
	struct data_key key;
	number_put(segment, SEGMENT);
	if (memcmp(o->header, MAGIC, 4) != 0 || memcmp(o->header + 4, segment, 4) != 0)
		return -EBADMSG;
	hex_encode(o->header + KEY_ID_AT, DATA_KEY_ID / 2, id);
	int r = o->get(o->get_ctx, id, &key);
	if (r < 0)
		return r;
	data_key_make(&o->key);
	keys_derive(&key, o->group, o->purpose, o->header, o->key.bytes);
	data_key_free(&key);
	o->cipher = EVP_CIPHER_CTX_new();
	return o->cipher && EVP_DecryptInit_ex(o->cipher, EVP_aes_256_gcm(), NULL, o->key.bytes, NULL) == 1 ? 0
	                                                                                                    : -ENOMEM;
}

static int segment_open(struct object_opening *o, bool last)
{
	unsigned char nonce[NONCE];
	int n = 0, more = 0;
	if (o->n < TAG || o->number == UINT32_MAX)
		return -EBADMSG;
	nonce_make(o->number, last, nonce);
	if (EVP_DecryptInit_ex(o->cipher, NULL, NULL, NULL, nonce) != 1 ||
	    EVP_DecryptUpdate(o->cipher, NULL, &n, o->header, HEADER) != 1 ||
	    EVP_DecryptUpdate(o->cipher, o->plain, &n, o->sealed, (int)(o->n - TAG)) != 1 ||
	    EVP_CIPHER_CTX_ctrl(o->cipher, EVP_CTRL_GCM_SET_TAG, TAG, o->sealed + o->n - TAG) != 1 ||
	    EVP_DecryptFinal_ex(o->cipher, o->plain + n, &more) != 1)
		return -EBADMSG;
	int r = o->n > TAG ? o->out(o->ctx, o->plain, o->n - TAG) : 0;
	o->number++;
	o->n = 0;
	return r;
}

/* A full segment waits for more, as it does where it is sealed. */
int object_open_write(void *opening, const void *bytes, size_t n)
{
	struct object_opening *o = opening;
	const unsigned char *at = bytes;
	int r = 0;
	while (n && r == 0) {
		bool head = o->header_n < HEADER;
		if (!head && o->n == sizeof o->sealed)
			r = segment_open(o, false);
		size_t room = head ? HEADER - o->header_n : sizeof o->sealed - o->n, some = n < room ? n : room;
		memcpy(head ? o->header + o->header_n : o->sealed + o->n, at, some);
		*(head ? &o->header_n : &o->n) += some;
		at += some;
		n -= some;
		if (head && o->header_n == HEADER)
			r = header_read(o);
	}
	return r;
}

int object_open_end(struct object_opening *o)
{
	return o->header_n < HEADER ? -EBADMSG : segment_open(o, true);
}

void object_open_free(struct object_opening *o)
{
	if (!o)
		return;
	EVP_CIPHER_CTX_free(o->cipher);
	data_key_free(&o->key);
	OPENSSL_cleanse(o->plain, sizeof o->plain);
	free(o);
}

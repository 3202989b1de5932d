/* Objects that are sealed as a whole: manifests, indexes, WAL, keys, leases. Each has a key of its own, derived from
 * 16 random bytes in its header, so that a nonce is never used twice; header and name are authenticated with it, so
 * that an object under another's name does not open.
 *
 *   0  4  "SWB1"
 *   4  1  kind
 *   5  1  1: compressed
 *   6  2  0
 *   8  8  length of the plain bytes
 *  16 16  random
 *  32     sealed bytes, tag of 16
 *
 * With a project's own data key the magic is "SWB2", and the header 16 bytes longer:
 *
 *  32 12  the key's id
 *  44  4  0
 *  48     sealed bytes, tag of 16 */
#include "repository/sealed.h"

#include "base/arena.h"
#include "base/id.h"
#include "repository/common.h"
#include "repository/crypt.h"
#include "repository/format.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/why.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#define MAGIC "SWB1"
#define MAGIC_PROJECT "SWB2"
#define LEVEL 1 /* the log, a segment at a time, is larger and slower at 2 */
#define SALT_AT 16
#define SALT_BYTES 16
#define KEY_ID_AT 32
#define KEY_ID_BYTES (DATA_KEY_ID / 2)

#define UNPROVEN_MAX ((size_t)64 << 20) /* of an object that is held before it is known to be ours */

static const unsigned char no_nonce[NONCE_BYTES];

static size_t header_length(const unsigned char *header)
{
	return memcmp(header, MAGIC_PROJECT, 4) == 0 ? SEALED_HEADER_MAX : SEALED_HEADER;
}

/* The id of the key; empty: the first. */
static void header_key(const unsigned char *header, char ret_id[DATA_KEY_ID + 1])
{
	ret_id[0] = 0;
	if (header_length(header) == SEALED_HEADER_MAX)
		hex_encode(header + KEY_ID_AT, KEY_ID_BYTES, ret_id);
}

static void header_name_key(unsigned char *header, const char *id)
{
	memcpy(header, id[0] ? MAGIC_PROJECT : MAGIC, 4);
	for (size_t i = 0; i < KEY_ID_BYTES && id[0]; i++)
		header[KEY_ID_AT + i] = (unsigned char)(hex_value(id[2 * i]) << 4 | hex_value(id[2 * i + 1]));
}

/* The header, then the name. */
static struct str sealed_aad(const unsigned char *header, const char *name, char buf[SEALED_HEADER_MAX + OBJECT_NAME])
{
	size_t n = strlen(name), head = header_length(header);
	n = n < OBJECT_NAME ? n : OBJECT_NAME;
	memcpy(buf, header, head);
	memcpy(buf + head, name, n);
	return (struct str){buf, head + n};
}

void sealed_make(const struct repo_key *key, enum sealed_kind kind, const char *name, const void *plain, size_t n,
                 struct buf *out)
{
	char aad[SEALED_HEADER_MAX + OBJECT_NAME];
	unsigned char own[REPO_KEY_BYTES], header[SEALED_HEADER_MAX] = {0};
	char *packed = must_malloc(n + 1);
	/* What does not become smaller is stored as it is. */
	size_t stored = kind == SEALED_INDEX ? 0 : crypt_compress(LEVEL, plain, n, packed, n);
	header_name_key(header, key->id);
	header[4] = (unsigned char)kind;
	header[5] = stored > 0;
	put_u64(header + 8, n);
	random_bytes(header + SALT_AT, SALT_BYTES);
	crypt_derive(key->data, header + SALT_AT, SALT_BYTES, "object", own);
	const void *source = stored ? packed : plain;
	stored = stored ? stored : n;
	buf_reserve(out, stored + SEALED_EXTRA);
	buf_add(out, header, header_length(header));
	crypt_seal(own, no_nonce, sealed_aad(header, name, aad), source, stored, (unsigned char *)out->p + out->n);
	out->n += stored + TAG_BYTES;
	OPENSSL_cleanse(own, sizeof own);
	free(packed);
}

static int sealed_expand(const unsigned char *header, char *bytes, size_t n, char **ret_plain, size_t *ret_n)
{
	size_t length = get_u64(header + 8);
	if (!header[5]) {
		if (n != length)
			return -EBADMSG;
		bytes[n] = 0;
		*ret_plain = bytes;
		*ret_n = n;
		return 0;
	}
	char *plain = must_malloc(length + 1);
	if (crypt_expand(bytes, n, plain, length) < 0) {
		free(plain);
		return -EBADMSG;
	}
	plain[length] = 0;
	free(bytes);
	*ret_plain = plain;
	*ret_n = length;
	return 0;
}

/* As far as it can be told without a key. */
static int header_check(enum sealed_kind kind, const char *name, const unsigned char *header, size_t n, size_t max)
{
	if (n < SEALED_LEAST || n < header_length(header) + TAG_BYTES)
		return repo_fail(-EBADMSG, "%s: is cut off: it has %zu bytes", name, n);
	if ((memcmp(header, MAGIC, 4) != 0 && memcmp(header, MAGIC_PROJECT, 4) != 0) || header[4] != kind ||
	    header[5] > 1)
		return repo_fail(-EBADMSG, "%s: is damaged, or something else: it does not begin as it should", name);
	if (get_u64(header + 8) > max)
		return repo_fail(-EBADMSG, "%s: is damaged: its length cannot be", name);
	return 0;
}

int sealed_open(const struct repo_key *key, enum sealed_kind kind, const char *name, const void *bytes, size_t n,
                size_t max, char **ret_plain, size_t *ret_n)
{
	const unsigned char *header = bytes;
	char aad[SEALED_HEADER_MAX + OBJECT_NAME];
	unsigned char own[REPO_KEY_BYTES];
	int result = header_check(kind, name, header, n, max);
	if (result < 0)
		return result;
	crypt_derive(key->data, header + SALT_AT, SALT_BYTES, "object", own);
	size_t head = header_length(header), stored = n - head - TAG_BYTES;
	char *opened = must_malloc(stored + 1);
	result = crypt_open(own, no_nonce, sealed_aad(header, name, aad), header + head, stored,
	                    (unsigned char *)opened);
	OPENSSL_cleanse(own, sizeof own);
	if (result == 0)
		result = sealed_expand(header, opened, stored, ret_plain, ret_n);
	if (result < 0) {
		free(opened);
		return repo_fail(result,
		                 "%s: its bytes are not what was written: it is damaged, cut off or another object's, "
		                 "or the key is not the one that sealed it",
		                 name);
	}
	return 0;
}

int sealed_open_any(struct repository *r, enum sealed_kind kind, const char *name, const void *bytes, size_t n,
                    size_t max, char **ret_plain, size_t *ret_n, const struct repo_key **ret_key)
{
	const struct repo_key *key;
	char id[DATA_KEY_ID + 1];
	int result = header_check(kind, name, bytes, n, max);
	if (result < 0)
		return result;
	header_key(bytes, id);
	result = repo_key_find(r, id, &key);
	result = result < 0 ? result : sealed_open(key, kind, name, bytes, n, max, ret_plain, ret_n);
	if (result == 0 && ret_key)
		*ret_key = key;
	return result;
}

const char *object_place(const struct repository *r, const char *name, char *buf)
{
	snprintf(buf, OBJECT_NAME, "%s%s", r->place, name);
	return buf;
}

/* The name that is authenticated has no region: a repository may be moved. */
static const char *bound_name(const struct repository *r, const char *name, char *buf)
{
	snprintf(buf, OBJECT_NAME, "%s/%s", r->group, name);
	return buf;
}

int object_put(struct repository *r, enum sealed_kind kind, const char *name, const void *plain, size_t n,
               uint64_t *ret_stored)
{
	return object_put_as(r, repo_key_current(r), kind, name, plain, n, ret_stored);
}

int object_put_as(struct repository *r, const struct repo_key *key, enum sealed_kind kind, const char *name,
                  const void *plain, size_t n, uint64_t *ret_stored)
{
	struct buf out = {0};
	char place[OBJECT_NAME], bound[OBJECT_NAME];
	sealed_make(key, kind, bound_name(r, name, bound), plain, n, &out);
	int result = objects_put_bytes(r->objects, object_place(r, name, place), out.p, out.n);
	if (ret_stored)
		*ret_stored = out.n;
	buf_free(&out);
	return result < 0 ? repo_fail_object(result, place) : 0;
}

/* An object that is read to see whether it is ours. */
struct proving {
	struct repository *r;
	const char *bound;
	unsigned char header[SEALED_HEADER_MAX];
	size_t n, max;
	struct crypt_proof proof;
};

/* Once its header is there. */
static int prove_begin(struct proving *p)
{
	char aad[SEALED_HEADER_MAX + OBJECT_NAME], id[DATA_KEY_ID + 1];
	unsigned char own[REPO_KEY_BYTES];
	const struct repo_key *key;
	header_key(p->header, id);
	int result = repo_key_find(p->r, id, &key);
	if (result < 0)
		return result;
	crypt_derive(key->data, p->header + SALT_AT, SALT_BYTES, "object", own);
	crypt_prove_begin(&p->proof, own, no_nonce, sealed_aad(p->header, p->bound, aad));
	OPENSSL_cleanse(own, sizeof own);
	return 0;
}

static int prove_write(void *ctx, const void *bytes, size_t n)
{
	struct proving *p = ctx;
	const unsigned char *in = bytes;
	if (n > p->max - p->n)
		return -EFBIG;
	/* The first bytes tell how long the header is. */
	while (n && p->n < SEALED_HEADER_MAX && (p->n < SEALED_HEADER || p->n < header_length(p->header))) {
		p->header[p->n++] = *in++;
		n--;
		int result = p->n >= SEALED_HEADER && p->n == header_length(p->header) ? prove_begin(p) : 0;
		if (result < 0)
			return result;
	}
	p->n += n;
	crypt_prove_add(&p->proof, in, n);
	return 0;
}

/* A large one is authenticated while it is read past, and then read again: who can write to the store, and has no key,
 * does not decide what we hold in memory. */
static int object_prove(struct repository *r, const char *place, const char *bound, size_t max, size_t *ret_n)
{
	struct proving p = {.r = r, .bound = bound, .max = max};
	int result = objects_get(r->objects, place, 0, 0, prove_write, &p);
	*ret_n = p.n;
	if (result < 0)
		return result;
	return p.n >= header_length(p.header) + TAG_BYTES ? crypt_prove_end(&p.proof) : -EBADMSG;
}

int object_get(struct repository *r, enum sealed_kind kind, const char *name, size_t max, char **ret_plain,
               size_t *ret_n)
{
	return object_get_key(r, kind, name, max, ret_plain, ret_n, NULL);
}

int object_get_key(struct repository *r, enum sealed_kind kind, const char *name, size_t max, char **ret_plain,
                   size_t *ret_n, const struct repo_key **ret_key)
{
	char place[OBJECT_NAME], bound[OBJECT_NAME], *bytes = NULL;
	size_t n = 0, most = max + SEALED_EXTRA;
	object_place(r, name, place);
	bound_name(r, name, bound);
	int result = objects_get_bytes(r->objects, place, most < UNPROVEN_MAX ? most : UNPROVEN_MAX, &bytes, &n);
	if (result == -EFBIG && most > UNPROVEN_MAX) {
		result = object_prove(r, place, bound, most, &n);
		if (result == -EBADMSG)
			return repo_fail(result, "%s: its bytes are not what was written: it is damaged or another's",
			                 place);
		if (result == 0)
			result = objects_get_bytes(r->objects, place, n, &bytes, &n);
	}
	if (result == -EFBIG)
		return repo_fail(-EBADMSG, "%s: is longer than it can be", place);
	if (result < 0)
		return repo_fail_object(result, place);
	result = sealed_open_any(r, kind, bound, bytes, n, max, ret_plain, ret_n, ret_key);
	free(bytes);
	return result;
}

int object_delete(struct repository *r, const char *name)
{
	char place[OBJECT_NAME];
	int result = objects_delete(r->objects, object_place(r, name, place));
	return result < 0 ? repo_fail_object(result, place) : 0;
}

int object_size(struct repository *r, const char *name, uint64_t *ret_size)
{
	char place[OBJECT_NAME];
	int result = objects_size(r->objects, object_place(r, name, place), ret_size);
	return result < 0 ? repo_fail_object(result, place) : 0;
}

struct listing {
	size_t skip;
	objects_visit *visit;
	void *ctx;
	bool refused;
};

static int listing_visit(void *ctx, const struct object_info *info)
{
	struct listing *l = ctx;
	struct object_info below = *info;
	below.name += l->skip;
	int result = l->visit(l->ctx, &below);
	l->refused = result < 0;
	return result;
}

int object_list(struct repository *r, const char *prefix, objects_visit *visit, void *ctx)
{
	char place[OBJECT_NAME];
	struct listing l = {strlen(r->place), visit, ctx, false};
	int result = objects_list(r->objects, object_place(r, prefix, place), listing_visit, &l);
	return result < 0 && !l.refused ? repo_fail_object(result, place) : result;
}

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
 *  32     sealed bytes, tag of 16 */
#include "base/arena.h"
#include "base/id.h"
#include "repository/internal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#define MAGIC "SWB1"
#define LEVEL 1 /* the log, a segment at a time, is larger and slower at 2 */
#define SALT_AT 16
#define SALT_BYTES 16

#define UNPROVEN_MAX ((size_t)64 << 20) /* of an object that is held before it is known to be ours */

static const unsigned char no_nonce[NONCE_BYTES];

/* The header, then the name. */
static struct str sealed_aad(const unsigned char *header, const char *name, char buf[SEALED_HEADER + OBJECT_NAME])
{
	size_t n = strlen(name);
	n = n < OBJECT_NAME ? n : OBJECT_NAME;
	memcpy(buf, header, SEALED_HEADER);
	memcpy(buf + SEALED_HEADER, name, n);
	return (struct str){buf, SEALED_HEADER + n};
}

void sealed_make(const unsigned char key[REPO_KEY_BYTES], enum sealed_kind kind, const char *name, const void *plain,
                 size_t n, struct buf *out)
{
	char aad[SEALED_HEADER + OBJECT_NAME];
	unsigned char own[REPO_KEY_BYTES], header[SEALED_HEADER] = MAGIC;
	char *packed = must_malloc(n + 1);
	/* What does not become smaller is stored as it is. */
	size_t stored = kind == SEALED_INDEX ? 0 : crypt_compress(LEVEL, plain, n, packed, n);
	header[4] = (unsigned char)kind;
	header[5] = stored > 0;
	put_u64(header + 8, n);
	random_bytes(header + SALT_AT, SALT_BYTES);
	crypt_derive(key, header + SALT_AT, SALT_BYTES, "object", own);
	const void *source = stored ? packed : plain;
	stored = stored ? stored : n;
	buf_reserve(out, stored + SEALED_EXTRA);
	buf_add(out, header, sizeof header);
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

int sealed_open(const unsigned char key[REPO_KEY_BYTES], enum sealed_kind kind, const char *name, const void *bytes,
                size_t n, size_t max, char **ret_plain, size_t *ret_n)
{
	const unsigned char *header = bytes;
	char aad[SEALED_HEADER + OBJECT_NAME];
	unsigned char own[REPO_KEY_BYTES];
	if (n < SEALED_EXTRA)
		return repo_fail(-EBADMSG, "%s: is cut off: it has %zu bytes", name, n);
	if (memcmp(header, MAGIC, 4) != 0 || header[4] != kind || header[5] > 1)
		return repo_fail(-EBADMSG, "%s: is damaged, or something else: it does not begin as it should", name);
	if (get_u64(header + 8) > max)
		return repo_fail(-EBADMSG, "%s: is damaged: its length cannot be", name);
	crypt_derive(key, header + SALT_AT, SALT_BYTES, "object", own);
	size_t stored = n - SEALED_EXTRA;
	char *opened = must_malloc(stored + 1);
	int result = crypt_open(own, no_nonce, sealed_aad(header, name, aad), header + SEALED_HEADER, stored,
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
	struct buf out = {0};
	char place[OBJECT_NAME], bound[OBJECT_NAME];
	sealed_make(r->data_key, kind, bound_name(r, name, bound), plain, n, &out);
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
	unsigned char header[SEALED_HEADER];
	size_t n, max;
	struct crypt_proof proof;
};

static int prove_write(void *ctx, const void *bytes, size_t n)
{
	struct proving *p = ctx;
	const unsigned char *in = bytes;
	size_t head = p->n < SEALED_HEADER ? SEALED_HEADER - p->n : 0;
	head = head < n ? head : n;
	if (n > p->max - p->n)
		return -EFBIG;
	memcpy(p->header + (p->n < SEALED_HEADER ? p->n : 0), in, head);
	p->n += n;
	if (head && p->n >= SEALED_HEADER) {
		char aad[SEALED_HEADER + OBJECT_NAME];
		unsigned char own[REPO_KEY_BYTES];
		crypt_derive(p->r->data_key, p->header + SALT_AT, SALT_BYTES, "object", own);
		crypt_prove_begin(&p->proof, own, no_nonce, sealed_aad(p->header, p->bound, aad));
		OPENSSL_cleanse(own, sizeof own);
	}
	crypt_prove_add(&p->proof, in + head, n - head);
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
	return p.n >= SEALED_EXTRA ? crypt_prove_end(&p.proof) : -EBADMSG;
}

int object_get(struct repository *r, enum sealed_kind kind, const char *name, size_t max, char **ret_plain,
               size_t *ret_n)
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
	result = sealed_open(r->data_key, kind, bound, bytes, n, max, ret_plain, ret_n);
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

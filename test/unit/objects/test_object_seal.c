/* Streams under a project's data key: what opens is what was sealed, and nothing else opens. */
#include "objects/seal.h"

#include "base/buf.h"
#include "base/data_key.h"

#include "check.h"

#include <errno.h>
#include <stdlib.h>

#define GROUP STR("6740a1b2c3d4e5f601234567")
#define KEY "6740a1b2c3d4e5f60123000a"
#define SEGMENT 65536
#define MOST 300000

static char noise[MOST];

static struct data_key key_of(unsigned char byte)
{
	struct data_key key;
	data_key_make(&key);
	memset(key.bytes, byte, DATA_KEY_BYTES);
	memcpy(key.id, KEY, sizeof key.id);
	return key;
}

static int keep(void *ctx, const void *bytes, size_t n)
{
	buf_add(ctx, bytes, n);
	return 0;
}

static struct buf sealed_of(size_t n, size_t step)
{
	struct buf out = {0};
	struct object_seal *s = NULL;
	struct data_key key = key_of(5);
	CHECK(object_seal_begin(&key, GROUP, "archives", keep, &out, &s) == 0);
	for (size_t at = 0; at < n; at += step)
		CHECK(object_seal_write(s, noise + at, n - at < step ? n - at : step) == 0);
	CHECK(object_seal_end(s) == 0);
	object_seal_free(s);
	data_key_free(&key);
	return out;
}

/* `ctx`: the key's byte; 0: there is none. */
static int key_get(void *ctx, const char *id, struct data_key *ret_key)
{
	unsigned char byte = *(unsigned char *)ctx;
	if (!byte || strcmp(id, KEY) != 0)
		return -EKEYREVOKED;
	*ret_key = key_of(byte);
	return 0;
}

static int open_as(const char *purpose, unsigned char byte, const char *bytes, size_t n, size_t step, struct buf *out)
{
	struct object_opening *o = object_open_begin(GROUP, purpose, key_get, &byte, keep, out);
	int r = 0;
	out->n = 0;
	for (size_t at = 0; r == 0 && at < n; at += step)
		r = object_open_write(o, bytes + at, n - at < step ? n - at : step);
	r = r < 0 ? r : object_open_end(o);
	object_open_free(o);
	return r;
}

static bool is_open(const struct buf *sealed, size_t n, size_t step, struct buf *out)
{
	return open_as("archives", 5, sealed->p, sealed->n, step, out) == 0 && out->n == n &&
	       (n == 0 || memcmp(out->p, noise, n) == 0);
}

static void test_back(void)
{
	static const size_t sizes[] = {0, 1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT, MOST};
	struct buf out = {0};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct buf sealed = sealed_of(sizes[i], 10007);
		CHECK(is_open(&sealed, sizes[i], 4096, &out) && is_open(&sealed, sizes[i], MOST * 2, &out));
		CHECK(is_open(&sealed, sizes[i], 7, &out));
		buf_free(&sealed);
	}
	buf_free(&out);
}

static void test_others(void)
{
	struct buf sealed = sealed_of(MOST, MOST), out = {0};
	CHECK(open_as("exports", 5, sealed.p, sealed.n, MOST, &out) == -EBADMSG && out.n == 0);
	CHECK(open_as("archives", 6, sealed.p, sealed.n, MOST, &out) == -EBADMSG && out.n == 0);
	CHECK(open_as("archives", 0, sealed.p, sealed.n, MOST, &out) == -EKEYREVOKED && out.n == 0);
	/* Cut off at every kind of place; at a segment's end, too. */
	static const size_t lengths[] = {0, 1, 47, 48, 60, 48 + SEGMENT, 48 + SEGMENT + 16, 48 + 2 * (SEGMENT + 16)};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		CHECK(open_as("archives", 5, sealed.p, lengths[i], 1000, &out) == -EBADMSG);
	for (size_t at = 0; at < sealed.n; at += at < 48 ? 1 : 9973) {
		sealed.p[at] ^= 1;
		int r = open_as("archives", 5, sealed.p, sealed.n, MOST * 2, &out);
		CHECK(r == -EBADMSG || (at >= 24 && at < 36 && r == -EKEYREVOKED));
		sealed.p[at] ^= 1;
	}
	/* More behind it, and segments that were exchanged. */
	buf_add(&sealed, "x", 1);
	CHECK(open_as("archives", 5, sealed.p, sealed.n, MOST, &out) == -EBADMSG);
	sealed.n--;
	char *first = sealed.p + 48, *second = first + SEGMENT + 16, *some = malloc(SEGMENT + 16);
	memcpy(some, first, SEGMENT + 16);
	memcpy(first, second, SEGMENT + 16);
	memcpy(second, some, SEGMENT + 16);
	CHECK(open_as("archives", 5, sealed.p, sealed.n, MOST, &out) == -EBADMSG && out.n == 0);
	free(some);
	buf_free(&sealed);
	buf_free(&out);
}

int main(void)
{
	for (size_t i = 0; i < MOST; i++)
		noise[i] = (char)(rand() >> 7);
	test_back();
	test_others();
	return CHECK_DONE();
}

/* One object of an export: what comes out of the bucket is what went in, nothing is left of one that was broken off,
 * and parts of names are safe whatever the text. */
#include "api/exports/put.h"

#include "base/arena.h"
#include "base/data_key.h"
#include "check.h"
#include "objects/seal.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#define LINES 50000
#define NO_GROUP ((struct str){"", 0})
#define GROUP STR("6740a1b2c3d4e5f601234567")
#define SEGMENT 65536

static struct objects *bucket;

static void size_is(const char *name, uint64_t wanted)
{
	uint64_t size = 0;
	CHECK(objects_size(bucket, name, &size) == 0);
	CHECK(size == wanted);
}

static void test_bytes(void)
{
	struct export_put *p;
	struct export_stored stored;
	char line[64], why[200], *bytes;
	size_t n, total = 0;
	CHECK(export_put_begin(bucket, "a/b.json.gz", NULL, NO_GROUP, &p) == 0);
	for (int i = 0; i < LINES; i++) {
		int more = snprintf(line, sizeof line, "{\"id\":%d,\"hash\":%u}\n", i, (unsigned)i * 2654435761u);
		CHECK(export_put_write(p, line, (size_t)more) == 0);
		total += (size_t)more;
	}
	CHECK(export_put_end(p, &stored, why, sizeof why) == 0);
	CHECK(stored.bytes == total && stored.stored < total && strlen(stored.sha256) == 64);
	size_is("a/b.json.gz", stored.stored);
	CHECK(objects_get_bytes(bucket, "a/b.json.gz", 64 << 20, &bytes, &n) == 0);
	char *back = malloc(total + 1);
	z_stream z = {.next_in = (unsigned char *)bytes,
	              .avail_in = (uInt)n,
	              .next_out = (unsigned char *)back,
	              .avail_out = (uInt)total};
	CHECK(inflateInit2(&z, 15 + 16) == Z_OK);
	CHECK(inflate(&z, Z_FINISH) == Z_STREAM_END);
	CHECK(z.total_out == total);
	inflateEnd(&z);
	CHECK(strncmp(back, "{\"id\":0,\"hash\":0}\n{\"id\":1,", 26) == 0);
	free(back);
	free(bytes);
}

static void test_empty(void)
{
	struct export_put *p;
	struct export_stored stored;
	char why[200];
	CHECK(export_put_begin(bucket, "empty.json.gz", NULL, NO_GROUP, &p) == 0);
	CHECK(export_put_end(p, &stored, why, sizeof why) == 0);
	CHECK(stored.bytes == 0 && stored.stored == 20);
	size_is("empty.json.gz", 20);
}

static void test_broken_off(void)
{
	struct export_put *p;
	uint64_t size;
	CHECK(export_put_begin(bucket, "broken.json.gz", NULL, NO_GROUP, &p) == 0);
	CHECK(export_put_write(p, "x\n", 2) == 0);
	export_put_abort(p);
	export_put_abort(NULL);
	CHECK(objects_size(bucket, "broken.json.gz", &size) == -ENOENT);
}

/* A bucket that takes nothing is told to who writes, also to one who waits for room. */
static void test_refused(void)
{
	struct export_put *p;
	struct export_stored stored;
	char why[200] = "", noise[4096];
	int r = 0;
	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (char)(rand() & 127);
	CHECK(export_put_begin(bucket, "../out", NULL, NO_GROUP, &p) == 0);
	for (int i = 0; r == 0 && i < 10000; i++)
		r = export_put_write(p, noise, sizeof noise);
	CHECK(r < 0);
	CHECK(export_put_end(p, &stored, why, sizeof why) < 0);
	CHECK(why[0]);
}

/* --- sealed: opened here as docs/exports.md says */

static void hkdf(const void *key, struct str salt, struct str info, unsigned char ret_key[32])
{
	unsigned char first[32], text[16];
	unsigned n = 32;
	HMAC(EVP_sha256(), salt.p, (int)salt.n, key, 32, first, &n);
	memcpy(text, info.p, info.n);
	text[info.n] = 1;
	HMAC(EVP_sha256(), first, 32, text, info.n + 1, ret_key, &n);
}

/* The plain bytes of a segment, or negative. */
static int segment_open(const unsigned char *key, const char *object, unsigned number, bool last, char *at, size_t n,
                        char *out)
{
	unsigned char nonce[12] = {(unsigned char)number, (unsigned char)(number >> 8), 0, 0, last};
	int got = 0, more = 0;
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	bool good = EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
	            EVP_DecryptUpdate(c, NULL, &got, (const unsigned char *)object, 48) == 1 &&
	            EVP_DecryptUpdate(c, (unsigned char *)out, &got, (unsigned char *)at, (int)n - 16) == 1 &&
	            EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, 16, at + n - 16) == 1 &&
	            EVP_DecryptFinal_ex(c, (unsigned char *)out + got, &more) == 1;
	EVP_CIPHER_CTX_free(c);
	return good ? got : -1;
}

/* -1: it does not open. */
static long sealed_open(const struct data_key *key, char *object, size_t size, char *out)
{
	unsigned char project[32], own[32];
	long total = 0;
	hkdf(key->bytes, GROUP, STR("exports"), project);
	hkdf(project, (struct str){object + 8, 16}, STR("object"), own);
	CHECK(memcmp(object, "SWX1\0\0\1\0", 8) == 0);
	unsigned number = 0;
	for (size_t at = 48; at < size; number++) {
		size_t n = size - at < SEGMENT + 16 ? size - at : SEGMENT + 16;
		int got = segment_open(own, object, number, at + n == size, object + at, n, out + total);
		if (got < 0)
			return -1;
		total += got;
		at += n;
	}
	return number ? total : -1;
}

static void test_sealed(void)
{
	static const size_t sizes[] = {0, 300000};
	struct data_key key;
	data_key_make(&key);
	memset(key.bytes, 5, DATA_KEY_BYTES);
	memcpy(key.id, "6740a1b2c3d4e5f60123000a", sizeof key.id);
	char *noise = malloc(300000), *out = malloc(600000);
	for (size_t i = 0; i < 300000; i++)
		noise[i] = (char)(rand() >> 7);
	for (size_t i = 0; i < 2; i++) {
		struct export_put *p;
		struct export_stored stored;
		char why[200], *bytes;
		size_t n;
		CHECK(export_put_begin(bucket, "sealed.gz", &key, GROUP, &p) == 0);
		CHECK(export_put_write(p, noise, sizes[i]) == 0);
		CHECK(export_put_end(p, &stored, why, sizeof why) == 0);
		size_is("sealed.gz", stored.stored);
		CHECK(objects_get_bytes(bucket, "sealed.gz", 64 << 20, &bytes, &n) == 0);
		long got = sealed_open(&key, bytes, n, out);
		CHECK(got > 0 && memcmp(out, "\x1f\x8b", 2) == 0);
		CHECK(n == 48 + (size_t)got + 16 * ((size_t)got / SEGMENT + 1));
		/* Cut at a segment's end, or changed anywhere. */
		if (sizes[i])
			CHECK(sealed_open(&key, bytes, 48 + SEGMENT + 16, out) < 0);
		bytes[n / 2] ^= 1;
		CHECK(sealed_open(&key, bytes, n, out) < 0);
		bytes[n / 2] ^= 1;
		bytes[30] ^= 1;
		CHECK(sealed_open(&key, bytes, n, out) < 0);
		free(bytes);
	}
	free(noise);
	free(out);
	data_key_free(&key);
}

static void test_parts(void)
{
	struct arena *a = arena_new();
	char text[400];
	CHECK(str_is(export_part(a, STR("orders_2-x")), "orders_2-x"));
	CHECK(str_is(export_part(a, STR("a.b/c=\xc3\xa9")), "a=2Eb=2Fc=3D=C3=A9"));
	CHECK(str_is(export_part(a, STR("..")), "=2E=2E"));
	CHECK(str_is(export_part(a, STR("")), "="));
	memset(text, 'x', sizeof text);
	struct str one = export_part(a, (struct str){text, 399});
	text[398] = 'y';
	struct str other = export_part(a, (struct str){text, 399});
	CHECK(one.n <= 80 && one.n == other.n && !str_eq(one, other));
	arena_free(a);
}

int main(void)
{
	char dir[] = "/tmp/steward-export-XXXXXX", command[64];
	CHECK(mkdtemp(dir) != NULL);
	struct objects_options o = {.url = dir};
	CHECK(objects_open(&o, &bucket) == 0);
	test_bytes();
	test_empty();
	test_broken_off();
	test_refused();
	test_sealed();
	test_parts();
	objects_close(bucket);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	CHECK(system(command) == 0);
	return CHECK_DONE();
}

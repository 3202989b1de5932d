/* One object of an export: what comes out of the bucket is what went in, nothing is left of one that was broken off,
 * and parts of names are safe whatever the text. */
#include "api/backups/exports.h"

#include "base/arena.h"
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#define LINES 50000

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
	CHECK(export_put_begin(bucket, "a/b.json.gz", &p) == 0);
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
	CHECK(export_put_begin(bucket, "empty.json.gz", &p) == 0);
	CHECK(export_put_end(p, &stored, why, sizeof why) == 0);
	CHECK(stored.bytes == 0 && stored.stored == 20);
	size_is("empty.json.gz", 20);
}

static void test_broken_off(void)
{
	struct export_put *p;
	uint64_t size;
	CHECK(export_put_begin(bucket, "broken.json.gz", &p) == 0);
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
	CHECK(export_put_begin(bucket, "../out", &p) == 0);
	for (int i = 0; r == 0 && i < 10000; i++)
		r = export_put_write(p, noise, sizeof noise);
	CHECK(r < 0);
	CHECK(export_put_end(p, &stored, why, sizeof why) < 0);
	CHECK(why[0]);
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
	test_parts();
	objects_close(bucket);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	CHECK(system(command) == 0);
	return CHECK_DONE();
}

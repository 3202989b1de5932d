/* What a server says while it copies a table out, in pieces of every size. */
#include "base/buf.h"
#include "check.h"
#include "engine/postgres/sql/copy_stream.h"

#include <errno.h>

static void message_add(struct buf *b, char type, const char *body, size_t n)
{
	size_t length = n + 4;
	buf_c(b, type);
	for (int shift = 24; shift >= 0; shift -= 8)
		buf_c(b, (char)(length >> shift & 0xff));
	buf_add(b, body, n);
}

#define MESSAGE(b, type, body) message_add(b, type, body, sizeof(body) - 1)

static int rows_take(void *ctx, const void *bytes, size_t n)
{
	buf_add(ctx, bytes, n);
	return 0;
}

static int rows_refuse(void *ctx, const void *bytes, size_t n)
{
	return -ENOSPC;
}

/* As a socket would: what was left before comes again, with `size` bytes more. The last result below 0. */
static ssize_t copy_read(struct pg_copy *s, const struct buf *said, size_t size)
{
	size_t used = 0;
	for (size_t end = 0; end < said->n && !s->over;) {
		end = end + size < said->n ? end + size : said->n;
		ssize_t r = pg_copy_take(s, said->p + used, end - used);
		if (r < 0)
			return r;
		used += (size_t)r;
		CHECK(s->over || end - used < 8);
	}
	return (ssize_t)used;
}

static void test_rows(void)
{
	static const char lines[] = "{\"a\":1}\n{\"a\":\"\u00e9\u20ac\U0001F600\"}\n";
	struct buf said = {0};
	MESSAGE(&said, 'S', "a\0b");
	MESSAGE(&said, 'H', "\0\0\1\0\0");
	MESSAGE(&said, 'd', "{\"a\":1}\n");
	MESSAGE(&said, 'd', "{\"a\":\"\u00e9\u20ac\U0001F600\"}\n");
	MESSAGE(&said, 'c', "");
	MESSAGE(&said, 'C', "COPY 2");
	MESSAGE(&said, 'Z', "I");
	for (size_t size = 1; size <= said.n; size++) {
		struct buf rows = {0};
		struct pg_copy s = {.write = rows_take, .ctx = &rows};
		char refusal[32];
		ssize_t used = copy_read(&s, &said, size);
		CHECK(used == (ssize_t)said.n && s.over && s.copied && s.rows == 2);
		CHECK(rows.n == sizeof lines - 1 && memcmp(rows.p, lines, rows.n) == 0);
		pg_copy_refusal(&s, refusal, sizeof refusal);
		CHECK(!*refusal);
		buf_free(&rows);
	}
	struct pg_copy full = {.write = rows_refuse};
	CHECK(copy_read(&full, &said, said.n) == -ENOSPC && full.unwritten);
	buf_free(&said);
}

/* Bytes that are no text: passed on as they are, and counted by what the server says at the end. */
static void test_binary(void)
{
	static const char bytes[] = "PGCOPY\n\377\r\n\0\n\n\xfe\xe2";
	struct buf said = {0};
	MESSAGE(&said, 'd', bytes);
	MESSAGE(&said, 'd', "\n");
	MESSAGE(&said, 'C', "COPY 12345678901\0");
	MESSAGE(&said, 'Z', "T");
	for (size_t size = 1; size <= said.n; size++) {
		struct buf rows = {0};
		struct pg_copy s = {.write = rows_take, .ctx = &rows, .binary = true};
		ssize_t used = copy_read(&s, &said, size);
		CHECK(used == (ssize_t)said.n && s.over && s.copied && s.rows == 12345678901);
		CHECK(rows.n == sizeof bytes && memcmp(rows.p, bytes, sizeof bytes - 1) == 0);
		buf_free(&rows);
	}
	buf_free(&said);
}

/* How many rows there were decides whether they are kept: where it is not said, the copy is not whole. */
static void count_check(const char *words, size_t n)
{
	struct buf said = {0};
	struct pg_copy s = {.write = rows_take, .binary = true};
	message_add(&said, 'C', words, n);
	MESSAGE(&said, 'Z', "T");
	ssize_t used = copy_read(&s, &said, said.n);
	CHECK(used == (ssize_t)said.n && s.over && !s.copied && s.rows == 0);
	buf_free(&said);
}

static void test_count(void)
{
	count_check("", 0);
	count_check("COPY", 4);
	count_check("COPY ", 6);
	count_check("COPY -1", 8);
	count_check("COPY 1x", 8);
	count_check("SELECT 1", 9);
	count_check("COPY 99999999999999999999", 26);
	count_check("COPY 1                                   ", 42);
}

static void fault_check(const char *row, size_t n, bool left_out)
{
	struct buf said = {0};
	message_add(&said, 'd', row, n);
	for (size_t size = 1; size <= said.n; size++) {
		struct buf rows = {0};
		struct pg_copy s = {.write = rows_take, .ctx = &rows};
		CHECK(copy_read(&s, &said, size) == -EBADMSG && s.left_out == left_out && !s.unwritten);
		buf_free(&rows);
	}
	buf_free(&said);
}

static void test_faults(void)
{
	struct buf said = {0};
	struct pg_copy s = {.write = rows_take};
	fault_check("{}\n\n", 4, true);
	fault_check("{\"a\":\"\xfe\"}\n", 10, false);
	fault_check("{\"a\":\"\xe2\x82", 8, false); /* the rest of a character is not in another message */
	buf_add(&said, "d\0\0\0\3", 5);
	CHECK(copy_read(&s, &said, said.n) == -EPROTO);
	buf_free(&said);
	said = (struct buf){0};
	s = (struct pg_copy){.write = rows_take};
	buf_add(&said, "d\x7f\xff\xff\xff", 5);
	CHECK(copy_read(&s, &said, said.n) == -EPROTO);
	buf_free(&said);
}

static void test_refusal(void)
{
	char long_text[3000], refusal[64];
	struct buf said = {0}, body = {0};
	struct pg_copy s = {.write = rows_take};
	MESSAGE(&said, 'N', "SNOTICE\0Mby the way\0");
	MESSAGE(&said, 'E', "SERROR\0VERROR\0C42501\0Mpermission denied\0");
	MESSAGE(&said, 'Z', "I");
	ssize_t used = copy_read(&s, &said, 7);
	CHECK(used == (ssize_t)said.n && s.over && !s.copied);
	pg_copy_refusal(&s, refusal, sizeof refusal);
	CHECK(strcmp(refusal, "permission denied") == 0);
	buf_free(&said);
	/* One that is longer than what is kept of it. */
	memset(long_text, 'x', sizeof long_text);
	said = (struct buf){0};
	buf_c(&body, 'M');
	buf_add(&body, long_text, sizeof long_text);
	message_add(&said, 'E', body.p, body.n);
	s = (struct pg_copy){.write = rows_take};
	used = copy_read(&s, &said, 1000);
	CHECK(used == (ssize_t)said.n && !s.over);
	pg_copy_refusal(&s, refusal, sizeof refusal);
	CHECK(strlen(refusal) == sizeof refusal - 1 && refusal[0] == 'x');
	buf_free(&said);
	buf_free(&body);
}

int main(void)
{
	test_rows();
	test_binary();
	test_count();
	test_faults();
	test_refusal();
	return CHECK_DONE();
}

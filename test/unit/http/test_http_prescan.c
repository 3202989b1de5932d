/* The strict reading of header blocks and chunked bodies. */
#include "http/chunked.h"
#include "http/prescan.h"

#include "check.h"

#include <errno.h>

static struct prescan scan_n(const char *p, size_t n)
{
	struct prescan s;
	prescan((struct str){p, n}, 100, &s);
	return s;
}

static struct prescan scan(const char *block)
{
	return scan_n(block, strlen(block));
}

static void accepts(void)
{
	struct prescan s = scan("GET /a?b=c HTTP/1.1\r\nHost: localhost:8443\r\nAccept: */*\r\n\r\n");
	CHECK(s.status == 0);
	CHECK(str_is(s.method, "GET"));
	CHECK(str_is(s.target, "/a?b=c"));
	CHECK(s.version == 11 && s.keep_alive && !s.chunked && !s.has_length && s.header_count == 2);
	s = scan("POST / HTTP/1.1\r\nHOST: [::1]:8443\r\ncontent-length:  12 \r\nExpect: 100-continue\r\n\r\n");
	CHECK(s.status == 0 && s.has_length && s.content_length == 12 && s.expect_continue);
	s = scan("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\nConnection: Foo , Close\r\n\r\n");
	CHECK(s.status == 0 && s.chunked && !s.keep_alive);
	s = scan("GET / HTTP/1.0\r\n\r\n");
	CHECK(s.status == 0 && s.version == 10 && !s.keep_alive);
	s = scan("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	CHECK(s.status == 0 && s.keep_alive);
	CHECK(scan("GET https://localhost/x HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 0);
	CHECK(scan("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 0);
	CHECK(scan("GET / HTTP/1.1\r\nHost: a\r\nX: caf\xc3\xa9\r\nEmpty:\r\n\r\n").status == 0);
}

static void refuses_smuggling(void)
{
#define LINES "POST / HTTP/1.1\r\nHost: a\r\n"
	static const char *const bad[] = {
	        "GET / HTTP/1.1\nHost: a\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a\r\n\n",
	        "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
	        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
	        LINES "X: a\r\n b\r\n\r\n",
	        LINES "X: a\r\n\tb\r\n\r\n",
	        LINES "Content-Length : 5\r\n\r\n",
	        LINES "Content-Length\t: 5\r\n\r\n",
	        LINES "Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
	        LINES "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
	        LINES "Content-Length: 5, 5\r\n\r\n",
	        LINES "Content-Length: +5\r\n\r\n",
	        LINES "Content-Length: -5\r\n\r\n",
	        LINES "Content-Length: 0x5\r\n\r\n",
	        LINES "Content-Length: 5 5\r\n\r\n",
	        LINES "Content-Length:\r\n\r\n",
	        LINES "Content-Length: 99999999999999999999\r\n\r\n",
	        LINES "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
	        LINES "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
	        LINES "Transfer-Encoding: gzip, chunked\r\n\r\n",
	        LINES "Transfer-Encoding: chunked, chunked\r\n\r\n",
	        LINES "Transfer-Encoding: xchunked\r\n\r\n",
	        LINES "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
	        LINES "Transfer-Encoding: identity\r\n\r\n",
	        LINES "Transfer-Encoding:\r\n\r\n",
	        LINES "Transfer-Encoding: \x0b"
	              "chunked\r\n\r\n",
	        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
	        "GET / HTTP/1.1\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
	        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
	        LINES ": b\r\n\r\n",
	        LINES "nocolon\r\n\r\n",
	        LINES "na me: b\r\n\r\n",
	        LINES "n\xc3\xa9: b\r\n\r\n",
	        LINES "x: \x01\r\n\r\n",
	        LINES "x: \x7f\r\n\r\n",
	        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET / x HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET /\r\nHost: a\r\n\r\n",
	        "GET\r\n\r\n",
	        "GET / http/1.1\r\nHost: a\r\n\r\n",
	        "GET / HTTP/1.1x\r\nHost: a\r\n\r\n",
	        "GET x HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
	        "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
	        "G\x01T / HTTP/1.1\r\nHost: a\r\n\r\n",
	        " / HTTP/1.1\r\nHost: a\r\n\r\n",
	        "\r\n",
	        "",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct prescan s = scan(bad[i]);
		CHECK(s.status == 400);
		if (s.status != 400)
			fprintf(stderr, "case %zu: %d\n", i, s.status);
		CHECK(s.code && s.detail);
	}
	static const char nul[] = "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n";
	CHECK(scan_n(nul, sizeof nul - 1).status == 400);
}

/* A value is checked many bytes at a time, so each byte must be refused or taken wherever it stands. */
static void checks_each_byte_of_a_value(void)
{
	char line[3 + 70];
	for (size_t n = 1; n <= 70; n++)
		for (size_t at = 0; at < n; at++)
			for (int c = 0; c < 256; c++) {
				bool good = (c >= 0x20 && c != 0x7f) || c == '\t';
				memcpy(line, "x: ", 3);
				memset(line + 3, 'v', n);
				line[3 + at] = (char)c;
				if (prescan_field_ok((struct str){line, 3 + n}) != good)
					fprintf(stderr, "byte %d at %zu of %zu\n", c, at, n);
				CHECK(prescan_field_ok((struct str){line, 3 + n}) == good);
			}
}

static void refuses_others(void)
{
	CHECK(scan("GET / HTTP/2.0\r\nHost: a\r\n\r\n").status == 505);
	CHECK(scan("GET / HTTP/1.2\r\nHost: a\r\n\r\n").status == 505);
	CHECK(scan("GET / HTTP/0.9\r\nHost: a\r\n\r\n").status == 505);
	CHECK(scan("PRI * HTTP/2.0\r\n\r\n").status == 505);
	CHECK(scan("BREW / HTTP/1.1\r\nHost: a\r\n\r\n").status == 501);
	CHECK(scan("get / HTTP/1.1\r\nHost: a\r\n\r\n").status == 501);
	CHECK(scan("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n").status == 501);
	CHECK(scan("GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n").status == 417);
	struct buf b = {0};
	buf_z(&b, "GET /");
	for (unsigned i = 0; i < TARGET_MAX; i++)
		buf_c(&b, 'x');
	buf_z(&b, " HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(scan_n(b.p, b.n).status == 414);
	b.n = 0;
	buf_z(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
	for (int i = 0; i < 100; i++)
		buf_printf(&b, "X-%d: y\r\n", i);
	buf_z(&b, "\r\n");
	CHECK(scan_n(b.p, b.n).status == 431);
	buf_free(&b);
}

static void finds_the_end(void)
{
	static const char block[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
	size_t whole = sizeof block - 1 - 4;
	CHECK(prescan_end(block, sizeof block - 1, 0) == (ssize_t)whole);
	for (size_t n = 0; n < whole; n++)
		for (size_t from = 0; from <= n; from++)
			CHECK(prescan_end(block, n, from) == 0);
	for (size_t from = 0; from < whole; from++)
		CHECK(prescan_end(block, whole, from) == (ssize_t)whole);
	CHECK(prescan_end("GET /\nHost", 10, 0) == -EBADMSG);
	CHECK(prescan_end("\n", 1, 0) == -EBADMSG);
}

/* Decoding at once and byte by byte must agree. */
static int decode(const char *text, size_t limit, struct buf *body)
{
	struct chunked d = {0}, slow = {0};
	struct buf again = {0};
	size_t n = strlen(text), used, i = 0;
	int r = chunked_decode(&d, (struct str){text, n}, limit, body, &used), r2 = 0;
	while (r2 == 0 && i < n) {
		size_t one;
		r2 = chunked_decode(&slow, (struct str){text + i, 1}, limit, &again, &one);
		i += one;
	}
	CHECK(r == r2 && i == used && str_eq(buf_view(body), buf_view(&again)));
	chunked_free(&d);
	chunked_free(&slow);
	buf_free(&again);
	return r;
}

static void chunks(void)
{
	static const struct {
		const char *text, *body;
		int result;
	} cases[] = {
	        {"5\r\nhello\r\n0\r\n\r\n", "hello", 1},
	        {"5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nX: y\r\n\r\nGET", "hello!", 1},
	        {"00A\r\n0123456789\r\n0\r\n\r\n", "0123456789", 1},
	        {"5\r\nhel", "hel", 0},
	        {"5\nhello\r\n0\r\n\r\n", "", -EBADMSG},
	        {"5\rXhello\r\n0\r\n\r\n", "", -EBADMSG},
	        {"5 \r\nhello\r\n0\r\n\r\n", "", -EBADMSG},
	        {"5;a\nb\r\nhello\r\n0\r\n\r\n", "", -EBADMSG},
	        {"5\r\nhelloXX0\r\n\r\n", "hello", -EBADMSG},
	        {"5\r\nhello\n0\r\n\r\n", "hello", -EBADMSG},
	        {"-5\r\n", "", -EBADMSG},
	        {"0x5\r\n", "", -EBADMSG},
	        {"\r\n", "", -EBADMSG},
	        {"ffffffffffffffff\r\n", "", -EBADMSG},
	        {"fffffffffffffff\r\n", "", -EFBIG},
	        {"65\r\n", "", -EFBIG},
	        {"5\r\nhello\r\n60\r\n", "hello", -EFBIG},
	        {"0\r\nbad\r\n\r\n", "", -EBADMSG},
	        {"0\r\n\rX", "", -EBADMSG},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buf body = {0};
		CHECK(decode(cases[i].text, 100, &body) == cases[i].result);
		CHECK(str_is(buf_view(&body), cases[i].body));
		buf_free(&body);
	}
}

int main(void)
{
	accepts();
	refuses_smuggling();
	checks_each_byte_of_a_value();
	refuses_others();
	finds_the_end();
	chunks();
	return CHECK_DONE();
}

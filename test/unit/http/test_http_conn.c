/* HTTP/1 and HTTP/2 on a connection without a socket: order, framing, limits, deadlines, back-pressure, lifetimes. */
#include "http/conn.h"

#include "base/clock.h"

#include "check.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>

static struct request *held[64];
static size_t held_count, handled, done_count, closed_count;
static char last_target[256];
static int last_version, last_status;
static size_t last_body;
static char large[1 << 20];

struct drip {
	size_t left;
	bool blocked, fails;
};

static ssize_t drip_read(void *ctx, char *to, size_t n)
{
	struct drip *d = ctx;
	if (d->blocked)
		return -EAGAIN;
	if (d->fails)
		return -EIO;
	if (n > d->left)
		n = d->left;
	memset(to, 'd', n);
	d->left -= n;
	return (ssize_t)n;
}

static void drip_close(void *ctx)
{
	closed_count++;
}

static struct drip drip;

static size_t body_limit(void *ctx, const struct request *r)
{
	return 1000;
}

static void handle(void *ctx, struct request *r)
{
	handled++;
	snprintf(last_target, sizeof last_target, "%.*s", STR_ARG(r->target));
	last_version = r->http_version;
	last_body = r->body.n;
	r->response.status = 200;
	response_header(&r->response, "Content-Type", STR("text/plain"));
	if (str_is(r->path, "/hold")) {
		held[held_count++] = r;
		return;
	}
	if (str_is(r->path, "/large"))
		r->response.body = (struct str){large, sizeof large};
	else if (str_is(r->path, "/stream"))
		r->response.stream = (struct body_stream){drip_read, drip_close, &drip, false};
	else if (str_is(r->path, "/listen"))
		r->response.stream = (struct body_stream){drip_read, drip_close, &drip, true};
	else if (str_is(r->path, "/count"))
		response_header(&r->response, "ratelimit-remaining",
		                arena_printf(r->arena, "%zu", 900000000 - handled));
	else if (str_is(r->path, "/none"))
		r->response.status = 204;
	else if (str_is(r->path, "/inject"))
		response_header(&r->response, "X-Evil", STR("a\r\nSet-Cookie: b"));
	else
		r->response.body = r->target;
	http_respond(r);
}

static void done(void *ctx, struct request *r, size_t bytes_sent)
{
	done_count++;
	last_status = r->response.status;
}

static unsigned begun;

/* Called before a body is read. */
static void begin(void *ctx, struct request *r)
{
	begun++;
	if (str_is(r->path, "/later")) {
		held[held_count++] = r;
	} else if (str_is(r->path, "/no")) {
		r->response.status = 401;
		r->response.body = STR("no");
		http_respond(r);
	} else {
		http_body_take(r);
	}
}

static const struct http_app app = {.body_limit = body_limit, .handle = handle, .done = done};
static const struct http_app asking = {.body_limit = body_limit, .begin = begin, .handle = handle, .done = done};
static struct conn_env *env;
static struct conn *conn;

static void start_with(const struct http_app *with, enum conn_protocol protocol)
{
	struct ip peer = {{0}};
	struct http_options o = {.streams_max = 10, .resets_max = 20};
	env = conn_env_new(with, &o, 0);
	conn = conn_new(env, protocol, &peer, env->now_us);
	held_count = handled = done_count = closed_count = begun = 0;
	last_status = 0;
}

static void start(enum conn_protocol protocol)
{
	start_with(&app, protocol);
}

static void stop(void)
{
	conn_free(conn);
	CHECK(env->live == 0);
	conn_env_free(env);
}

static void feed(const char *text)
{
	conn_input(conn, str_of(text));
}

/* All pending output, as text. The next call frees the result. */
static const char *output(void)
{
	static struct buf b;
	b.n = 0;
	for (struct str out; (out = conn_output(conn)).n; conn_sent(conn, out.n))
		buf_str(&b, out);
	buf_c(&b, '\0');
	return b.p;
}

static size_t occurrences(const char *text, const char *what)
{
	size_t n = 0;
	for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
		n++;
	return n;
}

static void answers(void)
{
	start(CONN_HTTP1);
	feed("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
	const char *out = output();
	CHECK(strncmp(out, "HTTP/1.1 200 OK\r\nDate: ", 23) == 0);
	CHECK(strstr(out, "\r\nX-Request-Id: ") && strstr(out, "\r\nStrict-Transport-Security: "));
	CHECK(strstr(out, "\r\nX-Content-Type-Options: nosniff\r\n") && strstr(out, "\r\nCache-Control: no-store\r\n"));
	CHECK(strstr(out, "\r\nReferrer-Policy: no-referrer\r\n") && strstr(out, "Content-Length: 2\r\n\r\n/a"));
	CHECK(!conn_is_closing(conn) && done_count == 1);
	feed("HEAD /abc HTTP/1.1\r\nHost: a\r\n\r\n");
	out = output();
	CHECK(strstr(out, "Content-Length: 4\r\n\r\n") && out[strlen(out) - 1] == '\n');
	feed("GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
	out = output();
	CHECK(strstr(out, "HTTP/1.1 204 No Content") && !strstr(out, "Content-Length"));
	feed("GET /inject HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(!strstr(output(), "\nSet-Cookie"));
	feed("\r\nGET https://b:1?x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	CHECK(strstr(output(), "Connection: close") && conn_is_closing(conn));
	CHECK(!strcmp(last_target, "/?x"));
	stop();
	start(CONN_HTTP1);
	feed("GET /a HTTP/1.0\r\n\r\n");
	CHECK(strstr(output(), "Connection: close") && conn_is_closing(conn) && last_version == 10);
	stop();
}

static void methods_and_upgrades(void)
{
	static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"};
	start(CONN_HTTP1);
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		char text[128];
		snprintf(text, sizeof text, "%s /m HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", methods[i]);
		feed(text);
	}
	feed("POST /u HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nab");
	feed("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(occurrences(output(), "HTTP/1.1 200 OK") == 9 && handled == 9 && !conn_is_closing(conn));
	stop();
}

static void bytewise(void)
{
	static const char text[] =
	        "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
	        "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
	        "GET /c HTTP/1.1\r\nHost: a\r\n\r\n";
	start(CONN_HTTP1);
	for (size_t i = 0; i < sizeof text - 1; i++)
		conn_input(conn, (struct str){text + i, 1});
	CHECK(handled == 3 && occurrences(output(), "HTTP/1.1 200") == 3 && !conn_is_closing(conn));
	stop();
}

static void pipelines(void)
{
	start(CONN_HTTP1);
	feed("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: "
	     "a\r\n\r\nGET /4");
	CHECK(handled == 2 && occurrences(output(), "HTTP/1.1 200") == 1);
	feed(" HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(handled == 2 && held_count == 1);
	held[0]->response.body = STR("/2");
	http_respond(held[0]);
	const char *out = output();
	const char *two = strstr(out, "\r\n\r\n/2"), *three = strstr(out, "\r\n\r\n/3"),
	           *four = strstr(out, "\r\n\r\n/4");
	CHECK(handled == 4 && two && three && four && two < three && three < four);
	stop();
}

static void refusals(void)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {
	        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x",
	         400},
	        {"GET / HTTP/1.1\nHost: a\n\n", 400},
	        {"GET / HTTP/1.1\r\n\r\n", 400},
	        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413},
	        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", 413},
	        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
	        {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505},
	        {"FOO / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
	        {"GET https://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
	        {"\x16\x03\x01 garbage", 400},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		start(CONN_HTTP1);
		feed(cases[i].text);
		feed("GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
		char want[32];
		snprintf(want, sizeof want, "HTTP/1.1 %d ", cases[i].status);
		const char *out = output();
		CHECK(strncmp(out, want, strlen(want)) == 0);
		CHECK(occurrences(out, "HTTP/1.1 ") == 1 && strstr(out, "\r\nConnection: close\r\n"));
		CHECK(strstr(out, "Content-Type: application/json") && strstr(out, "\"errorCode\":\""));
		CHECK(handled == 0 && done_count == 1 && last_status == cases[i].status && conn_is_closing(conn));
		stop();
	}
}

static void oversize(void)
{
	start(CONN_HTTP1);
	feed("GET /");
	for (int i = 0; i < 900; i++)
		feed("0123456789");
	CHECK(!strncmp(output(), "HTTP/1.1 414 ", 13));
	stop();
	start(CONN_HTTP1);
	feed("GET / HTTP/1.1\r\nHost: a\r\n");
	for (int i = 0; i < 400; i++)
		feed("X-Long: "
		     "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567\r\n");
	CHECK(!strncmp(output(), "HTTP/1.1 431 ", 13));
	stop();
}

static void expects(void)
{
	start(CONN_HTTP1);
	feed("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
	CHECK(!strcmp(output(), "HTTP/1.1 100 Continue\r\n\r\n"));
	feed("hello");
	CHECK(!strncmp(output(), "HTTP/1.1 200 ", 13) && last_body == 5);
	stop();
}

static void back_pressure(void)
{
	start(CONN_HTTP1);
	feed("GET /large HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n");
	size_t total = 0, most = 0;
	CHECK(handled == 1 && !conn_wants_input(conn));
	for (struct str out; (out = conn_output(conn)).n;) {
		if (out.n > most)
			most = out.n;
		size_t n = out.n < 10000 ? out.n : 10000;
		total += n;
		conn_sent(conn, n);
	}
	CHECK(most < CONN_OUT_MAX + 20000 && total > sizeof large && handled == 2 && conn_wants_input(conn));
	stop();
}

static void streams(void)
{
	start(CONN_HTTP1);
	drip = (struct drip){.left = 100000};
	feed("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	const char *out = output();
	CHECK(strstr(out, "Transfer-Encoding: chunked\r\n\r\n4000\r\ndddd") &&
	      !strcmp(out + strlen(out) - 5, "0\r\n\r\n"));
	CHECK(closed_count == 1 && done_count == 1 && !conn_is_closing(conn));
	stop();
	start(CONN_HTTP1);
	drip = (struct drip){.left = 10, .blocked = true};
	feed("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(!strstr(output(), "dddd") && done_count == 0);
	conn_free(conn); /* the client goes while the stream waits */
	CHECK(closed_count == 1 && done_count == 1 && env->live == 0);
	conn_env_free(env);
	start(CONN_HTTP1);
	drip = (struct drip){.fails = true};
	feed("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(conn_is_broken(conn));
	stop();
}

static void half_closed(void)
{
	start(CONN_HTTP1);
	feed("GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /par");
	conn_input_end(conn);
	CHECK(!conn_is_closing(conn) && !conn_wants_input(conn));
	http_respond_from_thread(held[0]);
	CHECK(occurrences(output(), "HTTP/1.1 200") == 2 && conn_is_closing(conn));
	stop();
	/* A client that has asked for a body and closed its side still gets it; one that listens has left. */
	start(CONN_HTTP1);
	drip = (struct drip){.left = 10, .blocked = true};
	feed("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	conn_input_end(conn);
	CHECK(!conn_is_broken(conn) && !conn_is_closing(conn));
	stop();
	start(CONN_HTTP1);
	feed("GET /listen HTTP/1.1\r\nHost: a\r\n\r\n");
	output();
	CHECK(!conn_is_broken(conn) && closed_count == 0);
	conn_input_end(conn);
	CHECK(conn_is_broken(conn));
	stop();
	CHECK(closed_count == 1);
}

static void gone_client(void)
{
	start(CONN_HTTP1);
	feed("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	conn_free(conn);
	CHECK(env->live == 1 && done_count == 0);
	CHECK(str_is(held[0]->path, "/hold"));
	http_respond_from_thread(held[0]);
	CHECK(env->live == 0 && done_count == 1);
	conn_env_free(env);
}

static void deadlines(void)
{
	start(CONN_HTTP1);
	feed("GET / HT");
	conn_tick(conn, env->now_us + 9000000);
	CHECK(!conn_is_closing(conn));
	conn_tick(conn, env->now_us + 2000000);
	CHECK(conn_is_closing(conn) && !strncmp(output(), "HTTP/1.1 408 ", 13));
	stop();
	start(CONN_HTTP1);
	feed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nh");
	conn_tick(conn, env->now_us + 29000000);
	feed("e");
	CHECK(!conn_is_closing(conn));
	conn_tick(conn, env->now_us + 2000000);
	CHECK(conn_is_closing(conn) && !strncmp(output(), "HTTP/1.1 408 ", 13));
	stop();
	start(CONN_HTTP1);
	feed("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	output();
	conn_tick(conn, env->now_us + 76000000);
	CHECK(conn_is_closing(conn) && !conn_output(conn).n);
	stop();
	start(CONN_HTTP1);
	feed("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
	conn_tick(conn, env->now_us + 31000000);
	CHECK(conn_is_broken(conn));
	stop();
}

/* A client's side of HTTP/2, from nghttp2. */
static nghttp2_session *client;
static int client_status;
static uint32_t goaway_error, reset_error;
static size_t client_bytes, client_answers, client_block;
static const char *client_expects; /* the bytes that come, or NULL */

static int client_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t name_n,
                         const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	uint64_t v;
	if (name_n == 7 && !memcmp(name, ":status", 7) &&
	    str_to_u64((struct str){(const char *)value, value_n}, 999, &v))
		client_status = (int)v;
	return 0;
}

static int client_frame(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
	if (f->hd.type == NGHTTP2_HEADERS)
		client_block = f->hd.length;
	if (f->hd.type == NGHTTP2_GOAWAY)
		goaway_error = f->goaway.error_code;
	if (f->hd.type == NGHTTP2_RST_STREAM)
		reset_error = f->rst_stream.error_code;
	if ((f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) && (f->hd.flags & NGHTTP2_FLAG_END_STREAM))
		client_answers++;
	return 0;
}

static int client_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *user)
{
	if (client_expects)
		CHECK(memcmp(client_expects + client_bytes, p, n) == 0);
	client_bytes += n;
	return 0;
}

static void client_start(void)
{
	nghttp2_session_callbacks *cb;
	start(CONN_HTTP2);
	nghttp2_session_callbacks_new(&cb);
	nghttp2_session_callbacks_set_on_header_callback(cb, client_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, client_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, client_data);
	nghttp2_session_client_new(&client, cb, NULL);
	nghttp2_session_callbacks_del(cb);
	nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, NULL, 0);
	client_status = 0;
	goaway_error = reset_error = 0;
	client_bytes = client_answers = 0;
}

static void client_stop(void)
{
	nghttp2_session_del(client);
	stop();
}

/* Exchanges data until neither side has more to send. */
static void converse(void)
{
	for (bool more = true; more;) {
		const uint8_t *p;
		more = false;
		for (ssize_t n; (n = nghttp2_session_mem_send(client, &p)) > 0; more = true)
			conn_input(conn, (struct str){(const char *)p, (size_t)n});
		for (struct str out; (out = conn_output(conn)).n; more = true) {
			CHECK(nghttp2_session_mem_recv(client, (const uint8_t *)out.p, out.n) == (ssize_t)out.n);
			conn_sent(conn, out.n);
		}
	}
}

#define NV(name, value)                                                                       \
	{                                                                                     \
		(uint8_t[]){name}, (uint8_t[]){value}, sizeof(name) - 1, sizeof(value) - 1, 0 \
	}

static ssize_t upload(nghttp2_session *s, int32_t id, uint8_t *to, size_t n, uint32_t *flags, nghttp2_data_source *src,
                      void *user)
{
	size_t *left = src->ptr;
	if (n > *left)
		n = *left;
	memset(to, 'u', n);
	*left -= n;
	if (*left == 0)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static int32_t ask(const char *method, const char *path, size_t *body)
{
	nghttp2_nv nv[] = {NV(":method", "GET"), NV(":scheme", "https"), NV(":authority", "a"), NV(":path", "/")};
	nghttp2_data_provider provider = {.source.ptr = body, .read_callback = upload};
	nv[0].value = (uint8_t *)(uintptr_t)method;
	nv[0].valuelen = strlen(method);
	nv[3].value = (uint8_t *)(uintptr_t)path;
	nv[3].valuelen = strlen(path);
	return nghttp2_submit_request(client, NULL, nv, 4, body ? &provider : NULL, NULL);
}

static void http2_basics(void)
{
	client_start();
	ask("GET", "/a", NULL);
	converse();
	CHECK(client_status == 200 && client_bytes == 2 && handled == 1 && last_version == 20 && done_count == 1);
	size_t body = 900;
	ask("POST", "/b", &body);
	converse();
	CHECK(client_status == 200 && last_body == 900);
	body = 1001;
	ask("POST", "/c", &body);
	converse();
	CHECK(client_status == 413 && handled == 2);
	ask("HEAD", "/a", NULL);
	converse();
	CHECK(client_status == 200);
	client_bytes = 0;
	ask("GET", "/large", NULL);
	drip = (struct drip){.left = 200000};
	ask("GET", "/stream", NULL);
	converse();
	CHECK(client_bytes == sizeof large + 200000 && closed_count == 1);
	ask("BREW", "/", NULL);
	converse();
	CHECK(client_status == 501);
	client_stop();
}

/* Input that arrives at once is processed in parts, which may cut a frame anywhere. */
static void http2_together(void)
{
	struct buf b = {0};
	const uint8_t *p;
	size_t expected = 0;
	char path[400];
	client_start();
	converse();
	for (size_t i = 0; i < 10; i++) {
		memset(path, 'a' + (char)i, sizeof path - 1);
		path[0] = '/';
		path[sizeof path - 1 - 7 * i] = '\0';
		expected += strlen(path);
		ask("GET", path, NULL);
	}
	for (ssize_t n; (n = nghttp2_session_mem_send(client, &p)) > 0;)
		buf_add(&b, p, (size_t)n);
	CHECK(b.n > 2500); /* several parts */
	conn_input(conn, buf_view(&b));
	converse();
	CHECK(client_answers == 10 && client_bytes == expected && handled == 10 && done_count == 10);
	buf_free(&b);
	for (size_t i = 0; i < sizeof large; i++)
		large[i] = (char)(i * 31 >> 4);
	client_bytes = 0;
	client_expects = large;
	ask("GET", "/large", NULL);
	converse();
	CHECK(client_bytes == sizeof large && client_answers == 11);
	client_expects = NULL;
	client_stop();
}

/* Values that change with each answer must not push out the constant ones: answers on a long connection stay short. */
static void http2_header_table(void)
{
	client_start();
	converse();
	ask("GET", "/count", NULL);
	converse();
	size_t first = client_block, longest = 0;
	for (size_t i = 1; i < 600; i++) {
		ask("GET", "/count", NULL);
		converse();
		if (i % 256 > 2 && client_block > longest)
			longest = client_block;
	}
	CHECK(client_answers == 600 && longest * 3 < first);
	client_stop();
}

static void http2_gone(void)
{
	client_start();
	int32_t id = ask("GET", "/hold", NULL);
	ask("GET", "/hold", NULL);
	converse();
	CHECK(held_count == 2);
	nghttp2_submit_rst_stream(client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
	converse();
	CHECK(env->live == 2);
	http_respond_from_thread(held[0]);
	CHECK(env->live == 1);
	conn_free(conn);
	CHECK(env->live == 1);
	http_respond_from_thread(held[1]);
	CHECK(env->live == 0);
	conn_env_free(env);
	nghttp2_session_del(client);
}

static void http2_floods(void)
{
	client_start();
	for (int i = 0; i < 30; i++) {
		int32_t id = ask("GET", "/a", NULL);
		converse();
		/* Opened and reset at once. */
		id = ask("GET", "/hold", NULL);
		nghttp2_session_mem_recv(client, NULL, 0);
		const uint8_t *p;
		for (ssize_t n; (n = nghttp2_session_mem_send(client, &p)) > 0;)
			conn_input(conn, (struct str){(const char *)p, (size_t)n});
		nghttp2_submit_rst_stream(client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
		converse();
		if (conn_is_closing(conn))
			break;
	}
	CHECK(goaway_error == NGHTTP2_ENHANCE_YOUR_CALM && conn_is_closing(conn) && handled < 60);
	for (size_t i = 0; i < held_count; i++)
		http_respond(held[i]);
	client_stop();
	client_start();
	for (int i = 0; i < 1200 && !conn_is_closing(conn); i++) {
		nghttp2_submit_ping(client, NGHTTP2_FLAG_NONE, NULL);
		converse();
	}
	CHECK(goaway_error == NGHTTP2_ENHANCE_YOUR_CALM && conn_is_closing(conn));
	client_stop();
	start(CONN_HTTP2);
	feed("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(conn_is_closing(conn) && handled == 0);
	stop();
}

static void http2_deadlines(void)
{
	client_start();
	size_t body = 100000; /* larger than the window, so it is never sent completely */
	converse();
	nghttp2_nv nv[] = {NV(":method", "POST"), NV(":scheme", "https"), NV(":authority", "a"), NV(":path", "/")};
	nghttp2_submit_headers(client, NGHTTP2_FLAG_NONE, -1, NULL, nv, 4, &body);
	converse();
	conn_tick(conn, env->now_us + 31000000);
	converse();
	CHECK(client_status == 408);
	conn_tick(conn, env->now_us + 2000000);
	converse();
	CHECK(env->live == 0 && !conn_is_closing(conn));
	conn_tick(conn, env->now_us + 80000000);
	CHECK(conn_is_closing(conn));
	client_stop();
	client_start();
	converse();
	ask("GET", "/hold", NULL);
	converse();
	conn_drain(conn);
	converse();
	CHECK(!conn_is_closing(conn));
	http_respond(held[0]);
	converse();
	CHECK(client_status == 200 && conn_is_closing(conn));
	client_stop();
}

static unsigned woken;

static void wake(struct conn *c)
{
	woken++;
}

static void next_turn(void)
{
	env->now_us++;
	conn_continue(conn);
}

/* What one connection has sent at once is answered over several turns of the loop: meanwhile others have theirs. */
static void turns(void)
{
	struct buf b = {0};
	start(CONN_HTTP1);
	env->requests_a_turn = 4;
	env->wake = wake;
	woken = 0;
	for (int i = 0; i < 10; i++)
		buf_str(&b, STR("GET /a HTTP/1.1\r\nHost: a\r\n\r\n"));
	conn_input(conn, buf_view(&b));
	CHECK(handled == 4 && woken && !conn_wants_input(conn));
	conn_continue(conn);
	CHECK(handled == 4 && occurrences(output(), "HTTP/1.1 200") == 4 && handled == 4);
	next_turn();
	CHECK(handled == 8 && !conn_wants_input(conn));
	next_turn();
	CHECK(handled == 10 && conn_wants_input(conn) && occurrences(output(), "HTTP/1.1 200") == 6);
	/* Who closes its side meanwhile gets all answers. */
	env->now_us++;
	conn_input(conn, buf_view(&b));
	CHECK(handled == 14);
	conn_input_end(conn);
	CHECK(handled == 20 && occurrences(output(), "HTTP/1.1 200") == 10 && conn_is_closing(conn));
	buf_free(&b);
	stop();
}

static void http2_turns(void)
{
	struct buf b = {0};
	const uint8_t *p;
	char path[400] = "/";
	memset(path + 1, 'a', sizeof path - 2);
	client_start();
	converse();
	env->requests_a_turn = 2;
	env->wake = wake;
	woken = 0;
	for (char c = 'a'; c < 'a' + 9; c++) {
		path[1] = c; /* a new one each time, which the compression has not seen */
		memset(path + 2, c, sizeof path - 3);
		ask("GET", path, NULL);
	}
	for (ssize_t n; (n = nghttp2_session_mem_send(client, &p)) > 0;)
		buf_str(&b, (struct str){(const char *)p, (size_t)n});
	CHECK(b.n > 2048);
	conn_input(conn, buf_view(&b));
	size_t first = handled;
	CHECK(first >= 2 && first < 9 && woken && !conn_wants_input(conn));
	next_turn();
	CHECK(handled > first);
	for (int i = 0; i < 9; i++)
		next_turn();
	CHECK(handled == 9 && conn_wants_input(conn));
	converse();
	CHECK(client_answers == 9);
	buf_free(&b);
	client_stop();
}

#define POST(path, more) "POST " path " HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n" more "\r\n"

/* The application is asked before a body is read, unless the body came with the headers. */
static void headers_first(void)
{
	start_with(&asking, CONN_HTTP1);
	feed(POST("/yes", "") "0123456789");
	CHECK(begun == 0 && handled == 1 && last_body == 10);
	output();
	feed(POST("/yes", "") "01234");
	CHECK(begun == 1 && handled == 1);
	feed("56789");
	CHECK(handled == 2 && last_body == 10);
	output();
	/* Refused: nothing of the body is kept, and the next request follows it. */
	feed(POST("/no", "") "01");
	CHECK(begun == 2 && handled == 2 && strstr(output(), "HTTP/1.1 401") && conn_wants_input(conn));
	feed("234567");
	feed("89GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
	CHECK(handled == 3 && strcmp(last_target, "/next") == 0 && strstr(output(), "HTTP/1.1 200"));
	/* A client that waits for 100 Continue gets it when the body is wanted. */
	feed(POST("/later", "Expect: 100-continue\r\n"));
	CHECK(begun == 3 && held_count == 1 && conn_output(conn).n == 0 && !conn_wants_input(conn));
	http_body_take(held[0]);
	CHECK(strstr(output(), "100 Continue") && conn_wants_input(conn));
	feed("0123456789");
	CHECK(handled == 4 && strstr(output(), "HTTP/1.1 200"));
	/* When the body is not wanted, nobody knows whether the client sends it. */
	feed(POST("/no", "Expect: 100-continue\r\n"));
	const char *text = output();
	CHECK(strstr(text, "401") && !strstr(text, "100 Continue") && strstr(text, "Connection: close") &&
	      conn_is_closing(conn));
	stop();
	/* The end of a chunked body is not known in advance. */
	start_with(&asking, CONN_HTTP1);
	feed("POST /no HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc");
	CHECK(strstr(output(), "HTTP/1.1 401") && conn_is_closing(conn));
	stop();
	/* The client disconnects while the application decides. */
	start_with(&asking, CONN_HTTP1);
	feed(POST("/later", "") "01");
	CHECK(held_count == 1);
	conn_free(conn);
	http_body_take(held[0]);
	CHECK(env->live == 0 && handled == 0);
	conn_env_free(env);
}

/* An address that has used up its budget is refused; released memory counts again. */
static void bounded_memory(void)
{
	struct budget *b = budget_new(1000 * 1024);
	start_with(&asking, CONN_HTTP1);
	struct ip greedy = {{[0] = 9}};
	env->budget = b;
	budget_move(b, budget_place(b, &greedy), 0, 600 * 1024);
	CHECK(!budget_admits(b, budget_place(b, &greedy), 1) && budget_admits(b, 0, 20000) &&
	      !budget_admits(b, 0, 200000));
	feed("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
	CHECK(handled == 1 && strstr(output(), "HTTP/1.1 200"));
	budget_move(b, budget_place(b, &greedy), 600 * 1024, 1000 * 1024);
	feed("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
	const char *text = output();
	CHECK(handled == 1 && strstr(text, "HTTP/1.1 503") && strstr(text, "Retry-After: 1"));
	CHECK(env->stats.busy == 1);
	stop();
	budget_move(b, budget_place(b, &greedy), 1000 * 1024, 0);
	CHECK(budget_used(b) == 0);
	budget_free(b);
}

int main(void)
{
	headers_first();
	bounded_memory();
	answers();
	methods_and_upgrades();
	bytewise();
	pipelines();
	refusals();
	oversize();
	expects();
	back_pressure();
	streams();
	half_closed();
	gone_client();
	deadlines();
	http2_basics();
	http2_together();
	http2_header_table();
	http2_gone();
	http2_floods();
	http2_deadlines();
	turns();
	http2_turns();
	return CHECK_DONE();
}

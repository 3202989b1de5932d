/* HTTP/1.1 and 1.0. The end of the header block is searched, the block is copied into the request's arena, scanned
 * strictly, then parsed by llhttp; scan and parser must agree on where the request ends. One request at a time: the
 * next is not looked at before the previous one is answered, which keeps the answers in order. After a refusal nothing
 * more is read, since nobody knows where the next request would start. */
#include "http/exchange.h"

#include "base/problem.h"

#include <assert.h>
#include <errno.h>
#include <llhttp.h>

struct parse {
	struct exchange *ex;
	char *block;
	struct header *field; /* the one being parsed */
	size_t max;
	/* The flags of the block. llhttp clears them when a message has no body, because it is then complete. */
	unsigned flags;
	uint64_t content_length;
};

static int on_url(llhttp_t *p, const char *at, size_t n)
{
	struct parse *parse = p->data;
	struct str *t = &parse->ex->r.target;
	*t = (struct str){t->n ? t->p : at, t->n + n};
	return 0;
}

static int on_field(llhttp_t *p, const char *at, size_t n)
{
	struct parse *parse = p->data;
	struct request *r = &parse->ex->r;
	if (!parse->field) {
		if (r->header_count == parse->max)
			return -1;
		parse->field = &r->headers[r->header_count++];
		parse->field->name.p = at;
	}
	parse->field->name.n += n;
	char *c = parse->block + (at - parse->block);
	for (size_t i = 0; i < n; i++)
		if (c[i] >= 'A' && c[i] <= 'Z')
			c[i] |= 0x20;
	return 0;
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
	struct parse *parse = p->data;
	if (!parse->field)
		return -1;
	struct str *v = &parse->field->value;
	*v = (struct str){v->n ? v->p : at, v->n + n};
	return 0;
}

static int on_value_complete(llhttp_t *p)
{
	struct parse *parse = p->data;
	if (!parse->field)
		return -1;
	parse->field->value = str_trim(parse->field->value);
	parse->field = NULL;
	return 0;
}

static int on_headers_complete(llhttp_t *p)
{
	struct parse *parse = p->data;
	parse->flags = p->flags;
	parse->content_length = p->content_length;
	return 0;
}

static const llhttp_settings_t parse_settings = {
        .on_url = on_url,
        .on_header_field = on_field,
        .on_header_value = on_value,
        .on_header_value_complete = on_value_complete,
        .on_headers_complete = on_headers_complete,
};

/* False when llhttp refuses the block or reads it differently from the scan. */
static bool block_parse(struct exchange *ex, char *block, size_t n, const struct prescan *scan)
{
	struct request *r = &ex->r;
	struct parse parse = {.ex = ex, .block = block, .max = scan->header_count};
	llhttp_settings_t settings = parse_settings;
	llhttp_t p;
	llhttp_init(&p, HTTP_REQUEST, &settings);
	p.data = &parse;
	r->headers = scan->header_count ? arena_new_array(r->arena, struct header, scan->header_count) : NULL;
	llhttp_errno_t e = llhttp_execute(&p, block, n);
	/* "Connection: upgrade" makes llhttp stop; upgrades are ignored here. */
	if (e != HPE_OK && e != HPE_PAUSED_UPGRADE)
		return false;
	return r->header_count == scan->header_count && str_eq(r->target, scan->target) &&
	       ((parse.flags & F_CONTENT_LENGTH) != 0) == scan->has_length &&
	       ((parse.flags & F_CHUNKED) != 0) == scan->chunked &&
	       (!scan->has_length || parse.content_length == scan->content_length);
}

static void h1_close(struct conn *c)
{
	c->state = H1_CLOSED;
	c->closing = true;
	c->cur = STR_NONE;
}

static void header_await(struct conn *c)
{
	c->state = H1_HEADER;
	c->idle = true;
	c->served = true;
	c->searched = 0;
	c->deadline_us = conn_after(c, c->env->limits.idle_seconds);
}

static void answer_finished(struct conn *c, struct exchange *ex)
{
	bool keep = ex->keep_alive && !c->env->draining;
	exchange_finish(ex);
	if (!keep) {
		h1_close(c);
		return;
	}
	if (c->discard) {
		c->state = H1_DISCARD;
		c->deadline_us = conn_after(c, c->env->limits.body_seconds);
		return;
	}
	header_await(c);
}

#define CONSTANT_HEADERS                                      \
	"\r\nStrict-Transport-Security: max-age=31536000\r\n" \
	"X-Content-Type-Options: nosniff\r\n"                 \
	"Referrer-Policy: no-referrer\r\n"                    \
	"Cross-Origin-Resource-Policy: same-origin\r\n"

static char *put(char *to, const char *from, size_t n)
{
	memcpy(to, from, n);
	return to + n;
}

#define PUT(to, literal) put((to), (literal), sizeof(literal) - 1)

static char *put_number(char *to, size_t v)
{
	char text[U64_TEXT];
	struct str digits = str_from_u64(v, text);
	return put(to, digits.p, digits.n);
}

/* A line end in a value would start a header of the caller's choice. */
static char *put_value(char *to, struct str v)
{
	for (size_t i = 0; i < v.n; i++)
		*to++ = (char)((unsigned char)v.p[i] < 0x20 && v.p[i] != '\t' ? ' ' : v.p[i]);
	return to;
}

static void write_head(struct conn *c, struct exchange *ex, bool framed_by_chunks)
{
	const struct response *p = &ex->r.response;
	const char *reason = status_reason(p->status);
	size_t room = 512 + strlen(reason), before = conn_pending(c);
	bool cache_control = false;
	for (size_t i = 0; i < p->header_count; i++) {
		room += p->headers[i].name.n + p->headers[i].value.n + 4;
		cache_control |= p->headers[i].name.n == 13 && str_ieq(p->headers[i].name, STR("cache-control"));
	}
	char *to = conn_reserve(c, room), *start = to;
	to = PUT(to, "HTTP/1.1 ");
	to = put_number(to, (size_t)p->status);
	*to++ = ' ';
	to = put(to, reason, strlen(reason));
	to = PUT(to, "\r\nDate: ");
	to = put(to, env_date(c->env).p, DATE_LEN);
	to = PUT(to, CONSTANT_HEADERS);
	if (!cache_control)
		to = PUT(to, "Cache-Control: no-store\r\n");
	to = PUT(to, "X-Request-Id: ");
	to = put(to, ex->r.id, sizeof ex->r.id - 1);
	to = PUT(to, "\r\n");
	for (size_t i = 0; i < p->header_count; i++) {
		to = put_value(to, p->headers[i].name);
		to = PUT(to, ": ");
		to = put_value(to, p->headers[i].value);
		to = PUT(to, "\r\n");
	}
	if (framed_by_chunks) {
		to = PUT(to, "Transfer-Encoding: chunked\r\n");
	} else if (!p->stream.read && !status_is_bare(p->status)) {
		to = PUT(to, "Content-Length: ");
		to = put_number(to, p->body.n);
		to = PUT(to, "\r\n");
	}
	if (!ex->keep_alive || c->env->draining)
		to = PUT(to, "Connection: close\r\n");
	else if (ex->r.http_version == 10)
		to = PUT(to, "Connection: keep-alive\r\n");
	to = PUT(to, "\r\n");
	c->out.n += (size_t)(to - start);
	ex->bytes_sent += conn_pending(c) - before;
}

void h1_answer(struct exchange *ex)
{
	struct conn *c = ex->conn;
	struct response *p = &ex->r.response;
	bool bodiless = ex->is_head || status_is_bare(p->status);
	if (c->state == H1_ASKING) {
		/* Answered before the body: the body is read and dropped. When its length is unknown, or it may not
		 * come at all, the connection closes. */
		ex->keep_alive &= !ex->is_chunked && !ex->expects;
		c->discard = ex->keep_alive ? ex->body_expected : 0;
	}
	if (p->stream.read && !bodiless && ex->r.http_version == 10)
		ex->keep_alive = false;
	write_head(c, ex, p->stream.read && !bodiless && ex->r.http_version == 11);
	if (bodiless) {
		answer_finished(c, ex);
		return;
	}
	c->state = H1_SENDING;
	c->deadline_us = INT64_MAX;
	h1_pump(c);
}

/* A chunk's size is written with a fixed width, so that its data can be read straight into the output. */
#define CHUNK_MAX 16384u
#define CHUNK_HEAD 6u

/* 1: more may follow; 0: nothing now, or nothing at all. */
static int pump_stream(struct conn *c, struct exchange *ex)
{
	struct body_stream *s = &ex->r.response.stream;
	bool chunks = ex->r.http_version == 11;
	size_t head = chunks ? CHUNK_HEAD : 0;
	char *to = conn_reserve(c, CHUNK_HEAD + CHUNK_MAX + 2);
	ssize_t n = s->read(s->ctx, to + head, CHUNK_MAX);
	if (n == -EAGAIN) {
		ex->stream_blocked = true;
		if (!conn_pending(c)) /* it may be long until there is more: other connections can use the buffer */
			buf_return(c->env, &c->out);
		return 0;
	}
	if (n < 0 || n > (ssize_t)CHUNK_MAX) {
		c->broken = true;
		return 0;
	}
	if (chunks && n == 0) {
		conn_add(c, "0\r\n\r\n", 5);
		ex->bytes_sent += 5;
	} else if (chunks) {
		static const char hex[] = "0123456789abcdef";
		for (int i = 0; i < 4; i++)
			to[i] = hex[(n >> (12 - 4 * i)) & 15];
		memcpy(to + 4, "\r\n", 2);
		memcpy(to + head + n, "\r\n", 2);
	}
	if (n == 0) {
		answer_finished(c, ex);
		return 0;
	}
	size_t total = head + (size_t)n + (chunks ? 2 : 0);
	c->out.n += total;
	ex->bytes_sent += total;
	return 1;
}

static void pump_body(struct conn *c, struct exchange *ex)
{
	struct str body = ex->r.response.body;
	size_t left = body.n - ex->body_sent, waits = conn_pending(c);
	size_t most = (conn_admits(c, CONN_OUT_MAX) ? CONN_OUT_MAX : 2 * CONN_OUT_LEAST) + 1;
	size_t room = waits < most ? most - waits : 0, n = left < room ? left : room;
	if (n)
		conn_add(c, body.p + ex->body_sent, n);
	ex->body_sent += n;
	ex->bytes_sent += n;
	if (ex->body_sent == body.n)
		answer_finished(c, ex);
}

void h1_pump(struct conn *c)
{
	struct exchange *ex = c->ex;
	if (c->state != H1_SENDING || c->broken || ex->stream_blocked || conn_out_full(c))
		return;
	if (!ex->r.response.stream.read) {
		pump_body(c, ex);
		return;
	}
	while (!conn_out_full(c) && pump_stream(c, ex) > 0)
		;
}

static void request_refuse(struct conn *c, int status, const char *code, const char *detail)
{
	if (!c->ex)
		c->ex = exchange_new(c);
	exchange_refuse(c->ex, status, code, detail);
	h1_answer(c->ex);
}

static void refuse_busy(struct conn *c)
{
	exchange_refuse_busy(c->ex);
	h1_answer(c->ex);
}

static void malformed(struct conn *c, const char *detail)
{
	request_refuse(c, 400, "MALFORMED_REQUEST", detail);
}

/* "https://host/path" is a path with its own authority, which overrides Host. */
static bool target_reduce(struct exchange *ex)
{
	struct request *r = &ex->r;
	if (r->target.p[0] == '/' || r->target.n == 1)
		return true;
	struct str rest = {r->target.p + 8, r->target.n - 8};
	size_t n = 0;
	while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
		n++;
	r->authority = (struct str){rest.p, n};
	if (!prescan_authority_ok(r->authority))
		return false;
	rest = (struct str){rest.p + n, rest.n - n};
	if (rest.n == 0 || rest.p[0] == '?')
		r->target = arena_printf(r->arena, "/%.*s", STR_ARG(rest));
	else
		r->target = rest;
	return true;
}

/* Fills in what the log says about a refused request. */
static void describe_refused(struct exchange *ex, const struct prescan *scan)
{
	ex->r.method = prescan_method_known(scan->method) ? scan->method : STR("");
	ex->is_head = str_is(ex->r.method, "HEAD");
	if (scan->target.n <= TARGET_MAX && prescan_target_ok(scan->target)) {
		ex->r.target = scan->target;
		exchange_split_target(ex);
	}
}

static void body_begin(struct conn *c, struct exchange *ex, const struct prescan *scan)
{
	const struct http_app *app = c->env->app;
	ex->is_chunked = scan->chunked;
	ex->body_expected = scan->content_length;
	if (!scan->chunked && !scan->content_length)
		return;
	ex->body_limit = app->body_limit ? app->body_limit(app->ctx, &ex->r) : 1 << 20;
	if (scan->content_length > ex->body_limit) {
		request_refuse(c, 413, "BODY_TOO_LARGE", "body: is larger than this operation takes.");
		return;
	}
	ex->expects = scan->expect_continue && c->cur.n == 0;
	/* The body came with the headers, so the application gets the whole request at once. */
	if (!scan->chunked && c->cur.n >= scan->content_length) {
		c->deadline_us = conn_after(c, c->env->limits.body_seconds);
		return;
	}
	c->state = H1_ASKING;
	c->deadline_us = INT64_MAX;
	if (exchange_begin(ex))
		h1_body_take(ex);
	else if (ex->answered)
		h1_answer(ex);
}

void h1_body_take(struct exchange *ex)
{
	struct conn *c = ex->conn;
	if (c->state != H1_ASKING)
		return;
	c->state = H1_BODY;
	c->deadline_us = conn_after(c, c->env->limits.body_seconds);
	if (ex->expects)
		conn_add(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	ex->expects = false;
}

static void request_begin(struct conn *c, size_t n)
{
	struct exchange *ex = c->ex = exchange_new(c);
	struct request *r = &ex->r;
	struct prescan scan;
	char *block = arena_z(r->arena, (struct str){c->cur.p, n});
	exchange_holds(ex, n);
	conn_consume(c, n);
	c->searched = 0;
	prescan((struct str){block, n}, c->env->limits.header_count_max, &scan);
	if (scan.status) {
		describe_refused(ex, &scan);
		request_refuse(c, scan.status, scan.code, scan.detail);
		return;
	}
	r->method = scan.method;
	r->http_version = scan.version;
	ex->keep_alive = scan.keep_alive;
	ex->is_head = str_is(r->method, "HEAD");
	if (!block_parse(ex, block, n, &scan)) {
		malformed(c, "header block: cannot be read as HTTP/1.1.");
		return;
	}
	r->authority = request_header(r, "host");
	if (!target_reduce(ex)) {
		malformed(c, "request target: its authority must be a host name with an optional port.");
		return;
	}
	exchange_split_target(ex);
	c->state = H1_BODY;
	body_begin(c, ex, &scan);
}

/* True when a block was complete and has become a request or a refusal. */
static bool header_step(struct conn *c)
{
	const size_t max = c->env->limits.header_max;
	/* An empty line before the request line is allowed; it is not a request. */
	while (c->idle && c->cur.n >= 2 && c->cur.p[0] == '\r' && c->cur.p[1] == '\n')
		conn_consume(c, 2);
	if (c->cur.n == 0 || (c->idle && c->cur.n == 1 && c->cur.p[0] == '\r'))
		return false;
	if (c->idle && c->served)
		c->deadline_us = conn_after(c, c->env->limits.header_seconds);
	c->idle = false;
	if (c->cur.p[0] < 'A' || c->cur.p[0] > 'z') {
		malformed(c, "request line: must be METHOD SP TARGET SP HTTP/1.1.");
		return true;
	}
	ssize_t end = prescan_end(c->cur.p, c->cur.n, c->searched);
	size_t seen = end > 0 ? (size_t)end : c->cur.n;
	if (end < 0) {
		malformed(c, "header block: lines must end with CR LF.");
	} else if (seen > TARGET_MAX + 64 && !memchr(c->cur.p, '\n', TARGET_MAX + 64)) {
		request_refuse(c, 414, "URI_TOO_LONG", "request target: must be at most 8192 bytes.");
	} else if (seen > max) {
		request_refuse(c, 431, "HEADER_TOO_LARGE", "header block: is too large.");
	} else if (end == 0 && seen > HEADER_LEAST && !conn_admits(c, seen)) {
		c->ex = exchange_new(c);
		refuse_busy(c);
	} else if (end == 0) {
		c->searched = c->cur.n;
		return false;
	} else {
		request_begin(c, (size_t)end);
	}
	return true;
}

static void request_complete(struct conn *c, struct exchange *ex)
{
	c->state = H1_HANDLING;
	c->deadline_us = INT64_MAX;
	exchange_dispatch(ex);
	if (ex->answered)
		h1_answer(ex);
}

static bool body_step_chunked(struct conn *c, struct exchange *ex)
{
	size_t used, cap = ex->body.cap, trailer = ex->chunked.trailer.cap;
	if (cap - ex->body.n < c->cur.n && !conn_admits(c, cap > c->cur.n ? cap : c->cur.n)) {
		refuse_busy(c);
		return true;
	}
	int r = chunked_decode(&ex->chunked, c->cur, ex->body_limit, &ex->body, &used);
	if (used)
		conn_consume(c, used);
	exchange_holds(ex, ex->body.cap - cap + ex->chunked.trailer.cap - trailer);
	conn_account(c);
	if (r == -EFBIG) {
		request_refuse(c, 413, "BODY_TOO_LARGE", "body: is larger than this operation takes.");
	} else if (r < 0) {
		malformed(c, "body: is not well-formed chunks.");
	} else if (r == 1) {
		ex->r.body = buf_view(&ex->body);
		request_complete(c, ex);
	}
	return r != 0;
}

/* True when something is complete. */
static bool body_step(struct conn *c)
{
	struct exchange *ex = c->ex;
	if (ex->is_chunked)
		return body_step_chunked(c, ex);
	size_t want = (size_t)ex->body_expected - ex->body.n;
	if (want && ex->body.n == 0 && c->cur.n >= want) {
		ex->r.body = arena_dup(ex->r.arena, (struct str){c->cur.p, want});
		exchange_holds(ex, want);
		conn_consume(c, want);
	} else if (want) {
		size_t n = want < c->cur.n ? want : c->cur.n;
		if (!exchange_body_add(ex, c->cur.p, n)) {
			refuse_busy(c);
			return true;
		}
		if (n)
			conn_consume(c, n);
		if (n < want)
			return false;
		ex->r.body = buf_view(&ex->body);
	}
	request_complete(c, ex);
	return true;
}

static bool discard_step(struct conn *c)
{
	size_t n = c->discard < c->cur.n ? (size_t)c->discard : c->cur.n;
	if (n)
		conn_consume(c, n);
	c->discard -= n;
	if (c->discard)
		return false;
	header_await(c);
	return true;
}

void h1_run(struct conn *c)
{
	bool more = true;
	while (more && !c->closing && !c->broken) {
		if (c->state == H1_HEADER)
			more = !conn_out_full(c) && !conn_turn_over(c) && header_step(c);
		else if (c->state == H1_BODY)
			more = body_step(c);
		else if (c->state == H1_DISCARD)
			more = discard_step(c);
		else
			return;
	}
	/* A client that has closed its side still gets the answers to what it sent. */
	if (c->input_ended && !c->closing && c->state <= H1_DISCARD && !conn_out_full(c))
		h1_close(c);
}

void h1_input_end(struct conn *c)
{
	if (c->state == H1_SENDING && c->ex->r.response.stream.endless) {
		c->broken = true;
		return;
	}
	c->cur = buf_view(&c->in);
	h1_run(c);
	conn_consume(c, 0);
}

void h1_tick(struct conn *c)
{
	if (c->env->now_us <= c->deadline_us || c->state > H1_DISCARD)
		return;
	ENV_COUNT(c->env, timeouts, 1);
	if (c->state == H1_DISCARD || (c->state == H1_HEADER && c->idle))
		h1_close(c);
	else if (c->state == H1_HEADER)
		request_refuse(c, 408, "REQUEST_TIMEOUT", "header block: did not arrive in time.");
	else
		request_refuse(c, 408, "REQUEST_TIMEOUT", "body: did not arrive in time.");
}

void h1_drain(struct conn *c)
{
	if (c->state == H1_HEADER && c->idle && !c->closing)
		h1_close(c);
}

void h1_refuse_plain(struct conn *c)
{
	request_refuse(c, 400, "HTTPS_ONLY", "HTTPS only: this port speaks TLS, use https:// in the address.");
}

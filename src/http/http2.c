/* HTTP/2 on nghttp2, which handles frames, HPACK, flow control and the rules of HTTP messages. Our part: requests and
 * answers, limits on headers and bodies, deadlines, and the guards against floods (resets, pings, settings, streams
 * that are opened faster than they are answered), each of which ends in GOAWAY with ENHANCE_YOUR_CALM. */
#include "http/exchange.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>

#define WINDOW_US 10000000
/* PING, SETTINGS and PRIORITY frames in one window. */
#define CONTROL_MAX 1000u
/* Limit for all bodies that one connection is sending at the same time. */
#define BODIES_MAX (8u << 20)
/* A client that was answered before its body's end may keep sending for this long before it is reset. Some clients
 * treat an immediate reset as a failure and lose the answer. */
#define GRACE_US 1000000
#define GRACE_BYTES (1u << 20)
#define FRAME_HEAD 9u
/* How much body a client may send before its headers were checked; and once the body is wanted. */
#define WINDOW_FIRST 16384
#define WINDOW_WANTED 65535
/* Input is processed a few requests at a time: their answers are written while they are still in the processor's
 * cache. */
#define STEP ((size_t)1024)

struct h2 {
	nghttp2_session *session;
	int64_t window_us; /* start of the interval in which the guards count */
	unsigned resets, controls;
	int64_t header_since_us;  /* 0: no header block is being received */
	struct exchange *reading; /* the exchange of that header block */
	unsigned answers;
	bool calmed;
};

static void calm(struct conn *c)
{
	if (c->h2->calmed)
		return;
	c->h2->calmed = true;
	ENV_COUNT(c->env, protocol_errors, 1);
	nghttp2_session_terminate_session(c->h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void guard(struct conn *c, unsigned *counter, unsigned max)
{
	struct h2 *h = c->h2;
	if (c->env->now_us - h->window_us > WINDOW_US) {
		h->window_us = c->env->now_us;
		h->resets = h->controls = 0;
	}
	if (++*counter > max)
		calm(c);
}

static struct exchange *exchange_at(nghttp2_session *session, int32_t stream_id)
{
	return nghttp2_session_get_stream_user_data(session, stream_id);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct conn *c = user;
	c->h2->header_since_us = c->env->now_us;
	c->h2->reading = NULL;
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
		c->h2->reading = exchange_at(session, frame->hd.stream_id);
		return 0;
	}
	if (c->exchange_count >= 2 * c->env->limits.streams_max) {
		/* The application still holds exchanges whose streams were reset, so no more are accepted. */
		calm(c);
		return 0;
	}
	/* The address has used up its budget. The connection's first request gets an answer that says so; others are
	 * only reset, which costs little, and may be tried again. */
	if (c->exchange_count && !conn_admits(c, WINDOW_FIRST)) {
		ENV_COUNT(c->env, busy, 1);
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
		return 0;
	}
	struct exchange *ex = exchange_new(c);
	ex->stream_id = frame->hd.stream_id;
	ex->keep_alive = true;
	ex->deadline_us = INT64_MAX;
	nghttp2_session_set_stream_user_data(session, ex->stream_id, ex);
	c->h2->reading = ex;
	return 0;
}

static void pseudo_add(struct exchange *ex, struct str name, struct str value)
{
	struct request *r = &ex->r;
	if (str_is(name, ":method"))
		r->method = arena_dup(r->arena, value);
	else if (str_is(name, ":path"))
		r->target = arena_dup(r->arena, value);
	else if (str_is(name, ":authority"))
		r->authority = arena_dup(r->arena, value);
}

static void header_add(struct exchange *ex, struct str name, struct str value)
{
	struct request *r = &ex->r;
	if (r->header_count == ex->header_cap) {
		size_t cap = ex->header_cap ? ex->header_cap * 2 : 16;
		struct header *more = arena_new_array(r->arena, struct header, cap);
		if (r->header_count)
			memcpy(more, r->headers, r->header_count * sizeof *more);
		r->headers = more;
		ex->header_cap = cap;
	}
	r->headers[r->header_count++] = (struct header){arena_dup(r->arena, name), arena_dup(r->arena, value)};
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                     const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct conn *c = user;
	struct exchange *ex = c->h2->reading;
	struct str k = {(const char *)name, name_n}, v = {(const char *)value, value_n};
	const size_t max = c->env->limits.header_max;
	if (!ex)
		return 0;
	ex->header_bytes += name_n + value_n + 32;
	/* Headers slightly over the limit get an error; four times the limit is an attack. */
	if (ex->header_bytes > 4 * max)
		calm(c);
	if (ex->header_bytes > max || frame->headers.cat != NGHTTP2_HCAT_REQUEST || ex->dispatched)
		return 0;
	/* With compression, a few bytes on the wire can become kilobytes. */
	ex->no_room |= ex->header_bytes > HEADER_LEAST && !conn_admits(c, name_n + value_n);
	if (ex->no_room)
		return 0;
	exchange_holds(ex, name_n + value_n + 2 * sizeof(struct header));
	if (name_n && name[0] == ':')
		pseudo_add(ex, k, v);
	else if (ex->r.header_count < c->env->limits.header_count_max)
		header_add(ex, k, v);
	else
		ex->header_bytes = max + 1;
	return 0;
}

static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                             const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void stream_refuse(struct exchange *ex, int status, const char *code, const char *detail)
{
	exchange_refuse(ex, status, code, detail);
	h2_answer(ex);
}

static void refuse_busy(struct exchange *ex)
{
	exchange_refuse_busy(ex);
	h2_answer(ex);
}

/* The header block is complete. False when it was refused. */
static bool request_check(struct exchange *ex)
{
	struct request *r = &ex->r;
	const struct http_options *limits = &ex->env->limits;
	struct str host = request_header(r, "host");
	if (ex->no_room)
		refuse_busy(ex);
	else if (ex->header_bytes > limits->header_max)
		stream_refuse(ex, 431, "HEADER_TOO_LARGE", "header block: is too large.");
	else if (r->target.n > TARGET_MAX)
		stream_refuse(ex, 414, "URI_TOO_LONG", "request target: must be at most 8192 bytes.");
	else if (!prescan_method_known(r->method))
		stream_refuse(ex, 501, "METHOD_NOT_IMPLEMENTED", "method: is not known here.");
	else if (!prescan_target_ok(r->target))
		stream_refuse(ex, 400, "MALFORMED_REQUEST", "request target: must be a path that starts with '/'.");
	else if (request_header_count(r, "host") > 1 || (r->authority.n && host.n && !str_ieq(host, r->authority)))
		stream_refuse(ex, 400, "MALFORMED_REQUEST", "Host: must occur once and be the same as :authority.");
	else if (!prescan_authority_ok(r->authority.n ? r->authority : host))
		stream_refuse(ex, 400, "MALFORMED_REQUEST", "Host: must be a host name with an optional port.");
	if (ex->finished)
		return false;
	if (!r->authority.n)
		r->authority = host;
	return true;
}

/* Returns flow-control window for body bytes: always to the connection, and to the stream when more of its body is
 * wanted. */
static void window_return(struct conn *c, const struct exchange *ex, size_t n)
{
	if (!n)
		return;
	nghttp2_session_consume_connection(c->h2->session, n);
	if (ex)
		nghttp2_session_consume_stream(c->h2->session, ex->stream_id, n);
}

static void body_wanted(struct exchange *ex)
{
	nghttp2_session *session = ex->conn->h2->session;
	ex->deadline_us = conn_after(ex->conn, ex->env->limits.body_seconds);
	window_return(ex->conn, ex, ex->unconsumed);
	ex->unconsumed = 0;
	uint64_t announced;
	struct str length = request_header(&ex->r, "content-length");
	if (!length.n || !str_to_u64(length, INT64_MAX, &announced) || announced > WINDOW_FIRST)
		nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, ex->stream_id, WINDOW_WANTED);
	if (ex->expects && !ex->body.n) {
		nghttp2_nv nv = {(uint8_t[]){":status"}, (uint8_t[]){"100"}, 7, 3, NGHTTP2_NV_FLAG_NONE};
		nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, ex->stream_id, NULL, &nv, 1, NULL);
	}
}

static void body_begin(struct conn *c, struct exchange *ex)
{
	const struct http_app *app = c->env->app;
	struct request *r = &ex->r;
	ex->body_limit = app->body_limit ? app->body_limit(app->ctx, r) : 1 << 20;
	ex->deadline_us = conn_after(c, c->env->limits.body_seconds);
	uint64_t announced;
	struct str length = request_header(r, "content-length");
	if (length.n && str_to_u64(length, INT64_MAX, &announced) && announced > ex->body_limit) {
		stream_refuse(ex, 413, "BODY_TOO_LARGE", "body: is larger than this operation takes.");
		return;
	}
	ex->expects = str_ieq(request_header(r, "expect"), STR("100-continue"));
	if (!c->env->app->begin)
		body_wanted(ex);
	else if (!exchange_begin(ex) && !ex->answered)
		ex->deadline_us = INT64_MAX;
}

static void request_begin(struct conn *c, struct exchange *ex, bool has_body)
{
	ex->is_head = str_is(ex->r.method, "HEAD");
	if (!request_check(ex))
		return;
	exchange_split_target(ex);
	if (has_body)
		body_begin(c, ex);
}

static void request_complete(struct exchange *ex)
{
	ex->body_ended = true;
	if (ex->finished || ex->dispatched || ex->answered)
		return;
	ex->deadline_us = INT64_MAX;
	ex->r.body = buf_view(&ex->body);
	exchange_dispatch(ex);
	if (ex->finished)
		h2_answer(ex);
}

void h2_body_take(struct exchange *ex)
{
	if (ex->too_large) {
		stream_refuse(ex, 413, "BODY_TOO_LARGE", "body: is larger than this operation takes.");
		return;
	}
	if (ex->no_room) {
		refuse_busy(ex);
		return;
	}
	body_wanted(ex);
	if (ex->body_ended)
		request_complete(ex);
	else if (ex->conn->input_ended)
		nghttp2_submit_rst_stream(ex->conn->h2->session, NGHTTP2_FLAG_NONE, ex->stream_id, NGHTTP2_CANCEL);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct conn *c = user;
	struct exchange *ex;
	bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		ex = c->h2->reading;
		c->h2->header_since_us = 0;
		c->h2->reading = NULL;
		if (!ex || c->h2->calmed)
			return 0;
		if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
			request_begin(c, ex, !ends);
		if (ends)
			request_complete(ex);
		return 0;
	case NGHTTP2_DATA:
		ex = exchange_at(session, frame->hd.stream_id);
		if (ex && ends && !c->h2->calmed)
			request_complete(ex);
		return 0;
	case NGHTTP2_RST_STREAM: guard(c, &c->h2->resets, c->env->limits.resets_max); return 0;
	case NGHTTP2_SETTINGS:
		if (!c->served) {
			c->served = true;
			c->deadline_us = conn_after(c, c->env->limits.idle_seconds);
		}
		guard(c, &c->h2->controls, CONTROL_MAX);
		return 0;
	case NGHTTP2_PING:
	case NGHTTP2_PRIORITY: guard(c, &c->h2->controls, CONTROL_MAX); return 0;
	default: return 0;
	}
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data, size_t n,
                   void *user)
{
	struct conn *c = user;
	struct exchange *ex = exchange_at(session, stream_id);
	if (!ex || ex->finished || ex->answered || (ex->dispatched && !ex->asking)) {
		/* Nobody wants this body. The connection gets its window back for the other streams, this stream does
		 * not. */
		window_return(c, NULL, n);
		if (!ex)
			return 0;
		ex->dropped += n;
		if (ex->dropped > GRACE_BYTES)
			nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_NO_ERROR);
		return 0;
	}
	if (ex->asking) {
		/* begin() has not decided yet. The window limits what the client may send, and only the application may
		 * answer. */
		ex->unconsumed += n;
		if (n > ex->body_limit - ex->body.n)
			ex->too_large = true;
		else if (!exchange_body_add(ex, data, n))
			ex->no_room = true;
		else
			c->body_bytes += n;
		return 0;
	}
	window_return(c, ex, n);
	if (n > ex->body_limit - ex->body.n) {
		stream_refuse(ex, 413, "BODY_TOO_LARGE", "body: is larger than this operation takes.");
		return 0;
	}
	if (c->body_bytes + n > BODIES_MAX && c->body_bytes > ex->body.n) {
		stream_refuse(ex, 503, "TOO_MANY_BODIES", "body: too many are being sent at once on this connection.");
		return 0;
	}
	if (!exchange_body_add(ex, data, n)) {
		refuse_busy(ex);
		return 0;
	}
	c->body_bytes += n;
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t error, void *user)
{
	struct conn *c = user;
	struct exchange *ex = exchange_at(session, stream_id);
	if (!ex)
		return 0;
	nghttp2_session_set_stream_user_data(session, stream_id, NULL);
	window_return(c, NULL, ex->unconsumed);
	ex->unconsumed = 0;
	if (c->h2->reading == ex)
		c->h2->reading = NULL;
	ex->stream_id = 0;
	c->deadline_us = conn_after(c, c->env->limits.idle_seconds);
	if (ex->answered)
		exchange_finish(ex);
	else if (!ex->dispatched)
		exchange_detach(ex);
	return 0; /* an exchange that the application holds still counts against the connection */
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct conn *c = user;
	bool answer = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
	if (answer && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
	    nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0) {
		struct exchange *ex = exchange_at(session, frame->hd.stream_id);
		if (ex) {
			ex->sent_early = true;
			ex->deadline_us = c->env->now_us + GRACE_US;
		}
	}
	/* A reset that the client provokes costs it as little as one that it sends, so both count. */
	if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
		guard(c, &c->h2->resets, c->env->limits.resets_max);
	return 0;
}

static ssize_t body_read(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t n, uint32_t *flags,
                         nghttp2_data_source *source, void *user)
{
	struct conn *c = user;
	struct exchange *ex = source->ptr;
	struct response *p = &ex->r.response;
	ssize_t got;
	if (p->stream.read) {
		got = p->stream.read(p->stream.ctx, (char *)to, n);
		if (got == -EAGAIN) {
			ex->stream_blocked = true;
			return NGHTTP2_ERR_DEFERRED;
		}
		if (got < 0 || (size_t)got > n)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		if (got == 0)
			*flags |= NGHTTP2_DATA_FLAG_EOF;
	} else {
		size_t left = p->body.n - ex->body_sent;
		got = (ssize_t)(left < n ? left : n);
		*flags |= NGHTTP2_DATA_FLAG_NO_COPY; /* body_send() copies it directly */
		if ((size_t)got == left)
			*flags |= NGHTTP2_DATA_FLAG_EOF;
	}
	ex->bytes_sent += (size_t)got;
	ex->deadline_us = conn_after(c, c->env->limits.send_seconds);
	return got;
}

/* Writes one DATA frame, of the length that body_read() returned. */
static int body_send(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                     nghttp2_data_source *source, void *user)
{
	struct conn *c = user;
	struct exchange *ex = source->ptr;
	/* nghttp2 would continue while the client's windows are open, and the client may make them as large as it
	 * likes. */
	if (conn_out_full(c))
		return NGHTTP2_ERR_WOULDBLOCK;
	char *to = conn_reserve(c, FRAME_HEAD + n);
	memcpy(to, head, FRAME_HEAD);
	memcpy(to + FRAME_HEAD, ex->r.response.body.p + ex->body_sent, n);
	c->out.n += FRAME_HEAD + n;
	ex->body_sent += n;
	return 0;
}

#define NV_STATIC (NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE)
#define BYTES(z) ((uint8_t *)(uintptr_t)(z))
#define NV_CONST(name, value)                                                             \
	{                                                                                 \
		BYTES(name), BYTES(value), sizeof(name) - 1, sizeof(value) - 1, NV_STATIC \
	}

static const nghttp2_nv constant_headers[] = {
        NV_CONST("strict-transport-security", "max-age=31536000"),
        NV_CONST("x-content-type-options", "nosniff"),
        NV_CONST("referrer-policy", "no-referrer"),
        NV_CONST("cross-origin-resource-policy", "same-origin"),
};

#define NV_CONSTANTS (sizeof constant_headers / sizeof *constant_headers)
#define NV_MAX (RESPONSE_HEADERS_MAX + NV_CONSTANTS + 5)

/* nghttp2 copies name and value, and lower-cases the name. */
static nghttp2_nv nv_of(struct str name, struct str value, uint8_t flags)
{
	return (nghttp2_nv){BYTES(name.p), BYTES(value.p), name.n, value.n, flags};
}

static struct str value_clean(struct exchange *ex, struct str value)
{
	for (size_t i = 0; i < value.n; i++) {
		if ((unsigned char)value.p[i] >= 0x20 || value.p[i] == '\t')
			continue;
		char *copy = arena_z(ex->r.arena, value);
		for (size_t k = i; k < value.n; k++)
			if ((unsigned char)copy[k] < 0x20)
				copy[k] = ' ';
		return (struct str){copy, value.n};
	}
	return value;
}

/* Values that change with each answer would only push the others out of the compression table. Now and then they are
 * added anyway, so that at least their names are in the table: in two answers in a row, because the first may be a
 * challenge. */
static uint8_t changing(const struct exchange *ex)
{
	return ex->conn->h2->answers % 256 < 2 ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX;
}

static bool is_changing(struct str name)
{
	return str_is(name, "ratelimit-remaining") || str_is(name, "retry-after") || str_is(name, "www-authenticate");
}

static size_t headers_build(struct exchange *ex, char status[3], char length[U64_TEXT], nghttp2_nv *nv)
{
	struct response *p = &ex->r.response;
	bool cache_control = false;
	size_t n = 0;
	for (int i = 2, v = p->status; i >= 0; i--, v /= 10)
		status[i] = (char)('0' + v % 10);
	nv[n++] = nv_of(STR(":status"), (struct str){status, 3}, NGHTTP2_NV_FLAG_NO_COPY_NAME);
	nv[n++] = nv_of(STR("date"), env_date(ex->env), NGHTTP2_NV_FLAG_NO_COPY_NAME);
	memcpy(nv + n, constant_headers, sizeof constant_headers);
	n += NV_CONSTANTS;
	nv[n++] = nv_of(STR("x-request-id"), (struct str){ex->r.id, sizeof ex->r.id - 1},
	                NGHTTP2_NV_FLAG_NO_COPY_NAME | changing(ex));
	for (size_t i = 0; i < p->header_count; i++) {
		nv[n++] = nv_of(p->headers[i].name, value_clean(ex, p->headers[i].value),
		                is_changing(p->headers[i].name) ? changing(ex) : NGHTTP2_NV_FLAG_NONE);
		cache_control |= p->headers[i].name.n == 13 && str_ieq(p->headers[i].name, STR("cache-control"));
		ex->bytes_sent += p->headers[i].name.n + p->headers[i].value.n;
	}
	if (!cache_control)
		nv[n++] = nv_of(STR("cache-control"), STR("no-store"), NV_STATIC);
	if (!p->stream.read && !status_is_bare(p->status))
		nv[n++] = nv_of(STR("content-length"), str_from_u64(p->body.n, length), NGHTTP2_NV_FLAG_NO_COPY_NAME);
	return n;
}

void h2_answer(struct exchange *ex)
{
	if (!ex->stream_id) {
		exchange_finish(ex);
		return;
	}
	struct response *p = &ex->r.response;
	window_return(ex->conn, NULL, ex->unconsumed);
	ex->unconsumed = 0;
	char status[3], length[U64_TEXT];
	nghttp2_nv nv[NV_MAX];
	size_t n = headers_build(ex, status, length, nv);
	ex->conn->h2->answers++;
	bool bodiless = ex->is_head || status_is_bare(p->status) || (!p->stream.read && p->body.n == 0);
	nghttp2_data_provider provider = {.source.ptr = ex, .read_callback = body_read};
	ex->deadline_us = conn_after(ex->conn, ex->env->limits.send_seconds);
	if (nghttp2_submit_response(ex->conn->h2->session, ex->stream_id, nv, n, bodiless ? NULL : &provider) != 0)
		nghttp2_submit_rst_stream(ex->conn->h2->session, NGHTTP2_FLAG_NONE, ex->stream_id,
		                          NGHTTP2_INTERNAL_ERROR);
}

void h2_stream_ready(struct exchange *ex)
{
	if (!ex->stream_id)
		return;
	/* It may have been silent for long: the client's time to read begins now. */
	ex->deadline_us = conn_after(ex->conn, ex->env->limits.send_seconds);
	nghttp2_session_resume_data(ex->conn->h2->session, ex->stream_id);
}

static nghttp2_session_callbacks *callbacks;
static nghttp2_option *options;

/* Runs before main(). Shared by all sessions, read-only afterwards. */
__attribute__((constructor)) static void glue_make(void)
{
	if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&options))
		abort();
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
	nghttp2_session_callbacks_set_send_data_callback(callbacks, body_send);
	nghttp2_option_set_no_closed_streams(options, 1);
	nghttp2_option_set_no_auto_window_update(options, 1);
	nghttp2_option_set_max_settings(options, 16);
	nghttp2_option_set_max_outbound_ack(options, 500);
}

/* The program does not need this; it keeps leak checkers quiet. */
__attribute__((destructor)) static void glue_free(void)
{
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(options);
}

void h2_start(struct conn *c)
{
	const struct http_options *o = &c->env->limits;
	nghttp2_settings_entry settings[] = {
	        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, o->streams_max},
	        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)o->header_max},
	        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_FIRST},
	        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
	};
	c->h2 = must_calloc(1, sizeof *c->h2);
	c->h2->window_us = c->env->now_us;
	if (nghttp2_session_server_new2(&c->h2->session, callbacks, c, options) != 0 ||
	    nghttp2_submit_settings(c->h2->session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings) !=
	            0) {
		c->broken = true;
		return;
	}
	c->busy = true;
	h2_pump(c);
	c->busy = false;
}

void h2_free(struct conn *c)
{
	if (!c->h2)
		return;
	nghttp2_session_del(c->h2->session);
	free(c->h2);
	c->h2 = NULL;
}

void h2_pump(struct conn *c)
{
	nghttp2_session *session = c->h2->session;
	const uint8_t *p;
	while (!c->broken && !conn_out_full(c)) {
		ssize_t n = nghttp2_session_mem_send(session, &p);
		if (n < 0)
			c->broken = true;
		if (n <= 0)
			break;
		conn_add(c, p, (size_t)n);
	}
	bool over = !nghttp2_session_want_read(session) && !nghttp2_session_want_write(session);
	if (over || (c->input_ended && !c->exchanges && !nghttp2_session_want_write(session)))
		c->closing = true;
}

void h2_run(struct conn *c)
{
	if (c->cur.n == 0)
		return;
	ssize_t n = 0;
	while (c->cur.n && n >= 0 && !c->closing && !c->broken && !conn_turn_over(c)) {
		size_t step = c->cur.n < STEP ? c->cur.n : STEP;
		n = nghttp2_session_mem_recv(c->h2->session, (const uint8_t *)c->cur.p, step);
		conn_consume(c, step);
		if (n >= 0)
			h2_pump(c);
	}
	if (n < 0 || c->closing || c->broken)
		c->cur = STR_NONE;
	if (n < 0) {
		/* Not HTTP/2, or a flood that nghttp2 detected: the pending output is sent, then the connection
		 * closes. */
		ENV_COUNT(c->env, protocol_errors, 1);
		nghttp2_session_terminate_session(c->h2->session, n == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM
		                                                                           : NGHTTP2_PROTOCOL_ERROR);
		h2_pump(c);
		c->closing = true;
	}
}

void h2_input_end(struct conn *c)
{
	c->cur = buf_view(&c->in);
	h2_run(c);
	conn_consume(c, 0);
	/* These requests can never become complete, or nobody listens any more. */
	for (struct exchange *ex = c->exchanges, *next; ex; ex = next) {
		next = ex->next;
		bool left = ex->answered && ex->r.response.stream.endless;
		if (((!ex->dispatched && !ex->answered) || left) && ex->stream_id)
			nghttp2_submit_rst_stream(c->h2->session, NGHTTP2_FLAG_NONE, ex->stream_id, NGHTTP2_CANCEL);
	}
	h2_pump(c);
}

static void exchange_tick(struct conn *c, struct exchange *ex)
{
	if (!ex->stream_id || c->env->now_us <= ex->deadline_us || ex->stream_blocked)
		return;
	if (ex->sent_early) {
		nghttp2_submit_rst_stream(c->h2->session, NGHTTP2_FLAG_NONE, ex->stream_id, NGHTTP2_NO_ERROR);
		return;
	}
	ENV_COUNT(c->env, timeouts, 1);
	ex->deadline_us = INT64_MAX;
	if (!ex->dispatched && !ex->answered)
		stream_refuse(ex, 408, "REQUEST_TIMEOUT", "body: did not arrive in time.");
	else if (ex->answered)
		nghttp2_submit_rst_stream(c->h2->session, NGHTTP2_FLAG_NONE, ex->stream_id, NGHTTP2_CANCEL);
}

void h2_tick(struct conn *c)
{
	struct h2 *h = c->h2;
	int64_t now = c->env->now_us, header_us = (int64_t)c->env->limits.header_seconds * 1000000;
	for (struct exchange *ex = c->exchanges, *next; ex; ex = next) {
		next = ex->next;
		exchange_tick(c, ex);
	}
	bool header_late = h->header_since_us && now > h->header_since_us + header_us;
	if (header_late || (!c->exchanges && now > c->deadline_us)) {
		if (header_late || !c->served)
			ENV_COUNT(c->env, timeouts, 1);
		nghttp2_session_terminate_session(h->session, NGHTTP2_NO_ERROR);
	}
	h2_pump(c);
}

void h2_drain(struct conn *c)
{
	nghttp2_session *s = c->h2->session;
	nghttp2_submit_goaway(s, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(s), NGHTTP2_NO_ERROR, NULL,
	                      0);
	h2_pump(c);
}

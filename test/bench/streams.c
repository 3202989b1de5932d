/* A connection of the load client that speaks HTTP/2: as many requests at once as the plan has streams. */
#include "load.h"

#include <nghttp2/nghttp2.h>

#define OUT_MAX 65536

struct stream {
	uint64_t began_us, body_n;
	int status;
	char body[BODY_MAX];
	size_t out_n, out_at;
};

struct streams {
	nghttp2_session *session;
	unsigned char out[OUT_MAX];
	size_t out_n, out_at;
	struct stream all[];
};

static ssize_t body_read(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *ctx)
{
	(void)session, (void)id, (void)ctx;
	struct stream *s = source->ptr;
	size_t left = s->out_n - s->out_at, n = left < room ? left : room;
	memcpy(to, s->body + s->out_at, n);
	s->out_at += n;
	if (s->out_at == s->out_n)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static nghttp2_nv field(const char *name, const char *value)
{
	return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
	                    .value = (uint8_t *)(uintptr_t)value,
	                    .namelen = strlen(name),
	                    .valuelen = strlen(value),
	                    .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static bool request_submit(struct link *l, struct stream *s)
{
	const struct plan *p = l->worker->plan;
	nghttp2_data_provider body = {.source.ptr = s, .read_callback = body_read};
	nghttp2_nv fields[8];
	size_t n = 0;
	*s = (struct stream){.began_us = now_us()};
	fields[n++] = field(":method", p->post ? "POST" : "GET");
	fields[n++] = field(":scheme", "https");
	fields[n++] = field(":authority", p->authority);
	fields[n++] = field(":path", p->path);
	fields[n++] = field("accept", p->accept);
	if (p->bearer)
		fields[n++] = field("authorization", p->authorization);
	if (p->post) {
		fields[n++] = field("content-type", "application/json");
		s->out_n = body_compose(l, s->body);
	}
	return nghttp2_submit_request(l->streams->session, NULL, fields, n, p->post ? &body : NULL, s) > 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_n,
                     const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
	(void)value_n, (void)flags, (void)ctx;
	struct stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (s && name_n == 7 && memcmp(name, ":status", 7) == 0)
		s->status = (int)strtol((const char *)value, NULL, 10);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t n, void *ctx)
{
	(void)flags, (void)bytes, (void)ctx;
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);
	if (s)
		s->body_n += n;
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *ctx)
{
	struct link *l = ctx;
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);
	if (!s)
		return 0;
	if (error || s->status < 200 || s->status >= STATUS_MAX)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	answer_count(l, s->status, s->body_n, s->began_us);
	return request_submit(l, s) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

bool streams_start(struct link *l)
{
	const struct plan *p = l->worker->plan;
	const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 24};
	nghttp2_session_callbacks *callbacks;
	l->streams = calloc(1, sizeof *l->streams + p->streams * sizeof *l->streams->all);
	if (!l->streams || nghttp2_session_callbacks_new(&callbacks) != 0)
		return false;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	bool good = nghttp2_session_client_new(&l->streams->session, callbacks, l) == 0;
	nghttp2_session_callbacks_del(callbacks);
	good = good && nghttp2_submit_settings(l->streams->session, NGHTTP2_FLAG_NONE, &window, 1) == 0 &&
	       nghttp2_session_set_local_window_size(l->streams->session, NGHTTP2_FLAG_NONE, 0, 1 << 24) == 0;
	for (unsigned i = 0; good && i < p->streams; i++)
		good = request_submit(l, &l->streams->all[i]);
	return good;
}

void streams_end(struct link *l)
{
	if (!l->streams)
		return;
	nghttp2_session_del(l->streams->session);
	free(l->streams);
	l->streams = NULL;
}

/* All that is to be sent, as much at once as there is room for. */
static int frames_send(struct link *l)
{
	struct streams *h = l->streams;
	for (;;) {
		while (h->out_at == 0 && h->out_n < OUT_MAX / 2) {
			const uint8_t *bytes;
			ssize_t n = nghttp2_session_mem_send(h->session, &bytes);
			if (n < 0 || (size_t)n > OUT_MAX - h->out_n)
				return -1;
			if (n == 0)
				break;
			memcpy(h->out + h->out_n, bytes, (size_t)n);
			h->out_n += (size_t)n;
		}
		if (h->out_n == 0)
			return 1;
		size_t n = 0;
		int r = tls_result(l, SSL_write_ex(l->ssl, h->out + h->out_at, h->out_n - h->out_at, &n));
		if (r <= 0)
			return r;
		h->out_at += n;
		if (h->out_at == h->out_n)
			h->out_at = h->out_n = 0;
	}
}

int streams_drive(struct link *l)
{
	static _Thread_local unsigned char bytes[65536];
	for (;;) {
		size_t n = 0;
		int sent = frames_send(l);
		if (sent < 0)
			return sent;
		int r = tls_result(l, SSL_read_ex(l->ssl, bytes, sizeof bytes, &n));
		if (r <= 0)
			return r;
		if (nghttp2_session_mem_recv(l->streams->session, bytes, n) != (ssize_t)n)
			return -1;
	}
}

/* The application that the two HTTP fuzzers put behind a connection: it holds each request against what the edge
 * promises, writes it down, and answers at once or later, with a body, a stream or nothing, as the path's first letter
 * says. */
#ifndef STEWARD_TEST_APP_H
#define STEWARD_TEST_APP_H

#include "base/buf.h"
#include "fuzz.h"
#include "http/conn.h"
#include "http/prescan.h"

#include <errno.h>

#define APP_MAX 1024
#define APP_BODY_MAX 2048u
#define APP_BIG 300000u

struct app {
	bool later;                       /* answers wait for app_go_on() */
	struct request *waiting[APP_MAX]; /* handled, not answered */
	size_t waiting_count;
	struct request *stalled[APP_MAX]; /* their stream said that it has nothing */
	size_t stalled_count;
	unsigned handled, done;
	struct buf log;    /* what was handled */
	struct buf shapes; /* of each answer that is done: 'H' for HEAD, else '.' */
	uint64_t bytes_sent;
};

static char app_big[APP_BIG];

struct app_stream {
	struct app *app;
	struct request *r;
	size_t left;
	bool stall; /* every other read has nothing */
};

static inline void app_remove(struct request **list, size_t *count, const struct request *r)
{
	for (size_t i = 0; i < *count; i++)
		if (list[i] == r) {
			list[i] = list[--*count];
			return;
		}
}

static ssize_t app_read(void *ctx, char *ret_bytes, size_t n)
{
	struct app_stream *s = ctx;
	s->stall = s->app->later && !s->stall;
	if (s->stall) {
		HOLDS(s->app->stalled_count < APP_MAX);
		s->app->stalled[s->app->stalled_count++] = s->r;
		return -EAGAIN;
	}
	size_t take = s->left < n ? s->left : n;
	memset(ret_bytes, 's', take);
	s->left -= take;
	return (ssize_t)take;
}

static ssize_t app_read_broken(void *ctx, char *ret_bytes, size_t n)
{
	return -EIO;
}

static void app_close(void *ctx)
{
	struct app_stream *s = ctx;
	app_remove(s->app->stalled, &s->app->stalled_count, s->r);
}

static inline void app_answer(struct app *app, struct request *r)
{
	struct response *p = &r->response;
	char letter = r->path.n > 1 ? r->path.p[1] : 0;
	p->status = letter == 'n' ? 204 : 200;
	response_header(p, "Content-Type", STR("application/json"));
	/* What a caller sent comes back in a header: it must not start another one. */
	if (r->header_count)
		response_header(p, "X-Echo", r->headers[0].value);
	if (letter == 's' || letter == 'f') {
		struct app_stream *s = arena_new_of(r->arena, struct app_stream);
		*s = (struct app_stream){app, r, r->path.n * 1000, false};
		p->stream = (struct body_stream){letter == 's' ? app_read : app_read_broken, app_close, s};
	} else if (letter == 'b') {
		memset(app_big, 'b', sizeof app_big);
		p->body = (struct str){app_big, sizeof app_big};
	} else if (letter != 'n' && letter != 'e') {
		p->body = STR("{}");
	}
	http_respond(r);
}

static inline void field_holds(const struct header *h)
{
	HOLDS(h->name.n > 0);
	for (size_t i = 0; i < h->name.n; i++) {
		char c = h->name.p[i];
		HOLDS((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c)));
	}
	for (size_t i = 0; i < h->value.n; i++)
		HOLDS(h->value.p[i] != '\0' && h->value.p[i] != '\r' && h->value.p[i] != '\n');
	HOLDS(h->value.n == 0 || (h->value.p[0] != ' ' && h->value.p[0] != '\t'));
}

static inline void request_holds(const struct request *r)
{
	uint64_t length;
	bool chunked = request_header_count(r, "transfer-encoding") > 0;
	size_t lengths = request_header_count(r, "content-length"), hosts = request_header_count(r, "host");
	HOLDS(prescan_method_known(r->method));
	HOLDS(prescan_target_ok(r->target) && r->target.n <= TARGET_MAX);
	HOLDS(r->path.n > 0 && r->path.n <= r->target.n && !memchr(r->path.p, '?', r->path.n));
	HOLDS(r->path.n + r->query.n <= r->target.n);
	HOLDS(r->header_count <= 100 && r->body.n <= APP_BODY_MAX && strlen(r->id) == 24);
	for (size_t i = 0; i < r->header_count; i++)
		field_holds(&r->headers[i]);
	HOLDS(hosts <= 1 && (r->http_version != 11 || hosts == 1));
	HOLDS(r->http_version == 10 || prescan_authority_ok(r->authority));
	/* What smuggling needs. */
	HOLDS(lengths + chunked <= 1);
	HOLDS(request_header_count(r, "transfer-encoding") <= (r->http_version == 11));
	if (lengths && str_to_u64(request_header(r, "content-length"), UINT64_MAX, &length))
		HOLDS(length == r->body.n);
	if (r->http_version < 20 && !lengths && !chunked)
		HOLDS(r->body.n == 0);
	if (r->http_version == 20)
		HOLDS(!request_header_count(r, "connection") && !request_header_count(r, "upgrade"));
}

static size_t app_body_limit(void *ctx, const struct request *r)
{
	return APP_BODY_MAX;
}

static void app_handle(void *ctx, struct request *r)
{
	struct app *app = ctx;
	request_holds(r);
	app->handled++;
	buf_printf(&app->log, "%.*s %.*s %d\n", STR_ARG(r->method), STR_ARG(r->target), r->http_version);
	for (size_t i = 0; i < r->header_count; i++)
		buf_printf(&app->log, "%.*s: %.*s\n", STR_ARG(r->headers[i].name), STR_ARG(r->headers[i].value));
	buf_str(&app->log, r->body);
	buf_z(&app->log, "\n\n");
	if (!app->later) {
		app_answer(app, r);
		return;
	}
	HOLDS(app->waiting_count < APP_MAX);
	app->waiting[app->waiting_count++] = r;
}

static void app_done(void *ctx, struct request *r, size_t bytes_sent)
{
	struct app *app = ctx;
	app->done++;
	app->bytes_sent += bytes_sent;
	buf_c(&app->shapes, str_is(r->method, "HEAD") ? 'H' : '.');
	HOLDS(r->response.status >= 200 && r->response.status < 600);
}

static inline struct http_app app_table(struct app *app)
{
	return (struct http_app){.ctx = app, .body_limit = app_body_limit, .handle = app_handle, .done = app_done};
}

/* Answers what waits, the newest first, and wakes what stalled. True when there was anything. */
static inline bool app_go_on(struct app *app)
{
	bool any = app->waiting_count || app->stalled_count;
	while (app->waiting_count)
		app_answer(app, app->waiting[--app->waiting_count]);
	while (app->stalled_count)
		http_stream_ready(app->stalled[--app->stalled_count]);
	return any;
}

static inline void app_free(struct app *app)
{
	buf_free(&app->log);
	buf_free(&app->shapes);
}

#endif

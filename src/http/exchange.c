/* One request and its answer: made when a header block begins, handed to the application, answered from this loop or
 * another thread, finished when the answer is in the output or the client has gone. Everything is in one arena, so that
 * a client that disconnects frees nothing that a worker still reads. */
#include "http/exchange.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/problem.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static struct exchange *exchange_of(struct request *r)
{
	return r->stream_state;
}

/* Memory of an exchange before it has a body or an answer: the arena's first chunk and the structures. */
#define EXCHANGE_COST ((size_t)9 * 1024)
/* Room that is required for an answer before it exists. */
#define ANSWER_LEAST ((size_t)16 * 1024)

void exchange_holds(struct exchange *ex, size_t more)
{
	ex->held += more;
	if (ex->conn)
		ex->conn->held += more;
}

bool exchange_body_add(struct exchange *ex, const void *p, size_t n)
{
	size_t cap = ex->body.cap;
	/* The buffer grows by doubling. */
	if (cap - ex->body.n < n && !conn_admits(ex->conn, cap > n ? cap : n))
		return false;
	buf_add(&ex->body, p, n);
	if (ex->body.cap != cap) {
		exchange_holds(ex, ex->body.cap - cap);
		conn_account(ex->conn);
	}
	return true;
}

struct exchange *exchange_new(struct conn *c)
{
	struct conn_env *env = c->env;
	struct arena *a = env->arena_count ? env->arenas[--env->arena_count] : arena_new();
	struct exchange *ex = arena_new_of(a, struct exchange);
	struct id id = id_new();
	memcpy(ex->r.id, id.z, sizeof id.z);
	ex->r.arena = a;
	ex->r.peer = c->peer;
	memcpy(ex->r.from_host, c->from_host, sizeof ex->r.from_host);
	ex->r.loop = env->loop;
	ex->r.http_version = c->protocol == CONN_HTTP2 ? 20 : 11;
	ex->r.stream_state = ex;
	ex->r.started_us = clock_mono_us();
	ex->env = env;
	ex->conn = c;
	atomic_init(&ex->refs, 1);
	ex->next = c->exchanges;
	if (ex->next)
		ex->next->prev = ex;
	c->exchanges = ex;
	c->exchange_count++;
	c->turn_begun++;
	env->live++;
	ex->place = c->place;
	exchange_holds(ex, EXCHANGE_COST);
	return ex;
}

static void exchange_unlink(struct exchange *ex)
{
	struct conn *c = ex->conn;
	if (!c)
		return;
	if (ex->prev)
		ex->prev->next = ex->next;
	else
		c->exchanges = ex->next;
	if (ex->next)
		ex->next->prev = ex->prev;
	c->exchange_count--;
	c->held -= ex->held;
	if (c->protocol == CONN_HTTP2)
		c->body_bytes -= ex->body.n;
	if (c->ex == ex)
		c->ex = NULL;
	ex->conn = NULL;
	ex->prev = ex->next = NULL;
}

void exchange_unref(struct exchange *ex)
{
	if (atomic_fetch_sub(&ex->refs, 1) != 1)
		return;
	struct conn_env *env = ex->env;
	struct arena *a = ex->r.arena;
	chunked_free(&ex->chunked);
	buf_free(&ex->body);
	budget_move(env->budget, ex->place, ex->orphaned + ex->reserved, 0);
	env->live--;
	if (env->arena_count == ENV_SPARES) {
		arena_free(a);
		return;
	}
	arena_reset(a);
	env->arenas[env->arena_count++] = a;
}

void exchange_finish(struct exchange *ex)
{
	const struct http_app *app = ex->env->app;
	struct body_stream *stream = &ex->r.response.stream;
	exchange_unlink(ex);
	if (app->done)
		app->done(app->ctx, &ex->r, ex->bytes_sent);
	if (stream->close)
		stream->close(stream->ctx);
	exchange_unref(ex);
}

void exchange_detach(struct exchange *ex)
{
	if (ex->answered) {
		exchange_finish(ex);
		return;
	}
	exchange_unlink(ex);
	if (!ex->dispatched) {
		exchange_unref(ex);
		return;
	}
	/* The application still uses the exchange and its memory. */
	ex->orphaned = ex->held;
	budget_move(ex->env->budget, ex->place, 0, ex->orphaned);
}

void exchange_refuse(struct exchange *ex, int status, const char *code, const char *detail)
{
	struct response *p = &ex->r.response;
	struct problem problem = {.status = status, .code = code, .detail = str_of(detail)};
	struct buf b = {0};
	problem_write(&b, &problem);
	p->status = status;
	p->header_count = 0;
	p->body = arena_dup(ex->r.arena, buf_view(&b));
	response_header(p, "Content-Type", STR("application/json"));
	buf_free(&b);
	if (status != 503)
		ENV_COUNT(ex->env, protocol_errors, 1);
	ex->keep_alive = false;
	ex->finished = true;
	ex->answered = true;
}

void exchange_refuse_busy(struct exchange *ex)
{
	ENV_COUNT(ex->env, busy, 1);
	exchange_refuse(ex, 503, "SERVICE_BUSY",
	                "Too much that was sent to or asked by this address is waiting. Try again in a second.");
	response_header(&ex->r.response, "Retry-After", STR("1"));
}

bool exchange_begin(struct exchange *ex)
{
	const struct http_app *app = ex->env->app;
	if (!app->begin)
		return true;
	ex->asking = ex->dispatched = true;
	app->begin(app->ctx, &ex->r);
	return !ex->asking && !ex->answered;
}

void exchange_dispatch(struct exchange *ex)
{
	const struct http_app *app = ex->env->app;
	if (!conn_admits(ex->conn, ANSWER_LEAST)) {
		exchange_refuse_busy(ex);
		return;
	}
	if (ex->r.http_version == 20)
		ENV_COUNT(ex->env, requests_http2, 1);
	else
		ENV_COUNT(ex->env, requests_http1, 1);
	ex->dispatched = true;
	app->handle(app->ctx, &ex->r);
}

void exchange_split_target(struct exchange *ex)
{
	struct request *r = &ex->r;
	if (!str_cut(r->target, '?', &r->path, &r->query))
		r->query = STR("");
}

/* A busy connection (inside its own code) picks the answer up by itself; otherwise it is run from here. */
static void conn_answer(struct conn *c, struct exchange *ex)
{
	if (c->protocol == CONN_HTTP1) {
		if (c->busy)
			return;
		c->busy = true;
		c->cur = buf_view(&c->in);
		h1_answer(ex);
		h1_run(c);
		conn_consume(c, 0);
		c->busy = false;
	} else {
		h2_answer(ex);
		if (c->busy)
			return;
		c->busy = true;
		h2_pump(c);
		c->busy = false;
	}
	if (c->env->wake)
		c->env->wake(c);
}

bool http_reserve(struct request *r, size_t bytes)
{
	struct exchange *ex = exchange_of(r);
	if (bytes <= ex->reserved)
		return true;
	ex->no_answer_room = !budget_admits(ex->env->budget, ex->place, bytes - ex->reserved);
	if (ex->no_answer_room)
		return false;
	budget_move(ex->env->budget, ex->place, ex->reserved, bytes);
	ex->reserved = bytes;
	return true;
}

void http_respond(struct request *r)
{
	struct exchange *ex = exchange_of(r);
	assert(!ex->answered);
	ex->answered = true;
	ex->asking = false;
	if (ex->no_answer_room)
		ENV_COUNT(ex->env, busy, 1);
	if (!r->response.body_shared)
		exchange_holds(ex, r->response.body.n + r->response.plain.n);
	/* The body counts as what the exchange holds now; the rest of the arena stays until the end. */
	size_t rest = ex->reserved > r->response.body.n ? ex->reserved - r->response.body.n : 0;
	budget_move(ex->env->budget, ex->place, ex->reserved, rest);
	ex->reserved = rest;
	if (ex->conn)
		conn_answer(ex->conn, ex);
	else
		exchange_finish(ex);
}

/* As in conn_answer(), a busy connection continues by itself. */
static void conn_body_take(struct conn *c, struct exchange *ex)
{
	if (c->protocol == CONN_HTTP1) {
		h1_body_take(ex);
		if (c->busy)
			return;
		c->busy = true;
		c->cur = buf_view(&c->in);
		h1_run(c);
		conn_consume(c, 0);
	} else {
		bool busy = c->busy;
		c->busy = true;
		h2_body_take(ex);
		if (busy)
			return;
		h2_pump(c);
	}
	c->busy = false;
	if (c->env->wake)
		c->env->wake(c);
}

void http_body_take(struct request *r)
{
	struct exchange *ex = exchange_of(r);
	assert(ex->asking && !ex->answered);
	ex->asking = ex->dispatched = false;
	if (!ex->conn)
		exchange_unref(ex); /* the client has gone, so no body will come */
	else if (ex->r.http_version == 20 && !ex->stream_id)
		exchange_detach(ex);
	else
		conn_body_take(ex->conn, ex);
}

static void post(struct exchange *ex, struct post *p, void (*run)(struct post *))
{
	p->run = run;
	p->exchange = ex;
	atomic_fetch_add(&ex->refs, 1);
	if (ex->env->post)
		ex->env->post(ex->env, p);
	else
		run(p);
}

static void run_answer(struct post *p)
{
	struct exchange *ex = p->exchange;
	http_respond(&ex->r);
	exchange_unref(ex);
}

void http_respond_from_thread(struct request *r)
{
	struct exchange *ex = exchange_of(r);
	post(ex, &ex->answer_post, run_answer);
}

struct call_post {
	struct post post;
	void (*fn)(struct request *r);
};

static void run_call(struct post *p)
{
	struct exchange *ex = p->exchange;
	struct call_post *call = (struct call_post *)(void *)p;
	call->fn(&ex->r);
	free(call);
	exchange_unref(ex);
}

void http_call_on_loop(struct request *r, void (*fn)(struct request *r))
{
	struct call_post *call = must_calloc(1, sizeof *call);
	call->fn = fn;
	post(exchange_of(r), &call->post, run_call);
}

static void run_ready(struct post *p)
{
	struct exchange *ex = p->exchange;
	struct conn *c = ex->conn;
	atomic_store(&ex->ready_posted, false);
	if (c && ex->answered && ex->stream_blocked && !c->busy) {
		ex->stream_blocked = false;
		c->busy = true;
		if (c->protocol == CONN_HTTP1) {
			c->cur = buf_view(&c->in);
			h1_pump(c);
			h1_run(c);
			conn_consume(c, 0);
		} else {
			h2_stream_ready(ex);
			h2_pump(c);
		}
		c->busy = false;
		if (c->env->wake)
			c->env->wake(c);
	}
	exchange_unref(ex);
}

void http_stream_ready(struct request *r)
{
	struct exchange *ex = exchange_of(r);
	if (!atomic_exchange(&ex->ready_posted, true))
		post(ex, &ex->ready_post, run_ready);
}

void request_buf_lend(struct request *r, struct buf *b)
{
	struct exchange *ex = exchange_of(r);
	if (ex)
		buf_lend(ex->env, b);
}

void request_buf_return(struct request *r, struct buf *b)
{
	struct exchange *ex = exchange_of(r);
#ifdef __SANITIZE_ADDRESS__
	ex = NULL; /* makes a use after the request's end visible */
#endif
	if (ex)
		buf_return(ex->env, b);
	else
		buf_free(b);
}

struct str request_header(const struct request *r, const char *name)
{
	struct str want = str_of(name);
	for (size_t i = 0; i < r->header_count; i++)
		if (str_eq(r->headers[i].name, want))
			return r->headers[i].value;
	return STR_NONE;
}

size_t request_header_count(const struct request *r, const char *name)
{
	struct str want = str_of(name);
	size_t count = 0;
	for (size_t i = 0; i < r->header_count; i++)
		count += str_eq(r->headers[i].name, want);
	return count;
}

void response_header(struct response *r, const char *name, struct str value)
{
	assert(r->header_count < RESPONSE_HEADERS_MAX);
	r->headers[r->header_count++] = (struct header){str_of(name), value};
}

/* A connection without its socket: buffers, back-pressure, deadlines, and the choice between the two protocols. Input
 * is parsed in the caller's buffer and copied only when it is incomplete; output is one buffer, so that an answer is
 * sent in one TLS record. Idle connections hold no buffers: the loop's environment lends them. */
#include "http/exchange.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

void http_options_default(struct http_options *o)
{
	o->threads = o->threads ? o->threads : 1;
	o->header_max = o->header_max ? o->header_max : 32768;
	o->header_count_max = o->header_count_max ? o->header_count_max : 100;
	o->header_seconds = o->header_seconds ? o->header_seconds : 10;
	o->body_seconds = o->body_seconds ? o->body_seconds : 30;
	o->idle_seconds = o->idle_seconds ? o->idle_seconds : 75;
	o->send_seconds = o->send_seconds ? o->send_seconds : 30;
	o->connections_max = o->connections_max ? o->connections_max : 10000;
	o->connections_per_address = o->connections_per_address ? o->connections_per_address : 2000;
	o->streams_max = o->streams_max ? o->streams_max : 100;
	o->resets_max = o->resets_max ? o->resets_max : 200;
	o->buffer_max = o->buffer_max ? o->buffer_max : (size_t)256 << 20;
}

struct conn_env *conn_env_new(const struct http_app *app, const struct http_options *options, unsigned loop)
{
	struct conn_env *env = must_calloc(1, sizeof *env);
	env->app = app;
	env->limits = *options;
	env->loop = loop;
	env->now_us = clock_mono_us();
	http_options_default(&env->limits);
	return env;
}

void conn_env_free(struct conn_env *env)
{
	if (!env)
		return;
	while (env->arena_count)
		arena_free(env->arenas[--env->arena_count]);
	while (env->buf_count)
		buf_free(&env->bufs[--env->buf_count]);
	buf_free(&env->large);
	free(env);
}

struct str env_date(struct conn_env *env)
{
	static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	if (env->date_turn_us == env->now_us)
		return (struct str){env->date, DATE_LEN};
	env->date_turn_us = env->now_us;
	int64_t second = clock_now_ms() / 1000;
	if (second != env->date_second) {
		char t[CLOCK_TEXT]; /* 2026-11-15T00:39:40Z */
		clock_format(second * 1000, t);
		size_t month = (size_t)((t[5] - '0') * 10 + t[6] - '0');
		snprintf(env->date, sizeof env->date, "%.3s, %.2s %.3s %.4s %.8s GMT",
		         days + (second / 86400 + 4) % 7 * 3, t + 8, months + (month - 1) * 3, t, t + 11);
		env->date_second = second;
	}
	return (struct str){env->date, DATE_LEN};
}

void buf_lend(struct conn_env *env, struct buf *b)
{
	if (!b->p && env->buf_count) {
		*b = env->bufs[--env->buf_count];
		b->n = 0;
	}
}

void buf_return(struct conn_env *env, struct buf *b)
{
	b->n = 0;
	if (b->cap > ENV_SPARE_MAX && b->cap <= 2 * CONN_OUT_MAX && !env->large.p) {
		env->large = *b;
		*b = (struct buf){0};
	} else if (b->p && b->cap <= ENV_SPARE_MAX && env->buf_count < ENV_SPARES) {
		env->bufs[env->buf_count++] = *b;
		*b = (struct buf){0};
	} else {
		buf_free(b);
	}
}

char *conn_reserve(struct conn *c, size_t n)
{
	if (!c->out.p && c->env->large.p) {
		c->out = c->env->large;
		c->env->large = (struct buf){0};
	}
	buf_lend(c->env, &c->out);
	if (c->out_at >= CONN_OUT_MAX / 4) {
		buf_consume(&c->out, c->out_at);
		c->out_at = 0;
	}
	if (c->out.n == 0)
		c->send_deadline_us = conn_after(c, c->env->limits.send_seconds);
	buf_reserve(&c->out, n);
	return c->out.p + c->out.n;
}

void conn_add(struct conn *c, const void *p, size_t n)
{
	if (n == 0)
		return;
	memcpy(conn_reserve(c, n), p, n);
	c->out.n += n;
}

/* Removes n bytes from the input. n = 0, at the end of a run, saves the rest for the next run. */
void conn_consume(struct conn *c, size_t n)
{
	if (n) {
		c->cur.p += n;
		c->cur.n -= n;
		return;
	}
	if (c->cur.n == 0) {
		buf_return(c->env, &c->in);
	} else if (c->in.p && c->cur.p >= c->in.p && c->cur.p <= c->in.p + c->in.n) {
		buf_consume(&c->in, (size_t)(c->cur.p - c->in.p));
	} else {
		buf_lend(c->env, &c->in);
		c->in.n = 0;
		buf_str(&c->in, c->cur);
	}
	c->cur = STR_NONE;
}

bool conn_turn_over(struct conn *c)
{
	const struct conn_env *env = c->env;
	if (c->turn_us != env->now_us) {
		c->turn_us = env->now_us;
		c->turn_begun = 0;
	}
	if (!env->requests_a_turn || c->turn_begun < env->requests_a_turn || c->cur.n == 0 || c->input_ended)
		return false;
	c->turn_over = true;
	if (env->wake)
		env->wake(c);
	return true;
}

struct conn *conn_new(struct conn_env *env, enum conn_protocol protocol, const struct ip *peer, int64_t since_us)
{
	struct conn *c = must_calloc(1, sizeof *c);
	c->env = env;
	c->protocol = protocol;
	c->peer = *peer;
	c->place = budget_place(env->budget, peer);
	c->idle = true;
	c->deadline_us = since_us + (int64_t)env->limits.header_seconds * 1000000;
	if (protocol == CONN_HTTP2)
		h2_start(c);
	return c;
}

void conn_free(struct conn *c)
{
	if (!c)
		return;
	h2_free(c);
	while (c->exchanges)
		exchange_detach(c->exchanges);
	buf_free(&c->in);
	buf_return(c->env, &c->out);
	budget_move(c->env->budget, c->place, c->charged, 0);
	free(c);
}

/* Memory is counted in steps of this size, so that most turns do not touch the counters that all loops share. */
#define ACCOUNT_STEP ((size_t)4 * 1024)

void conn_account(struct conn *c)
{
	size_t now = conn_memory(c);
	size_t charge = (now + ACCOUNT_STEP - 1) / ACCOUNT_STEP * ACCOUNT_STEP;
	if (charge == c->charged)
		return;
	budget_move(c->env->budget, c->place, c->charged, charge);
	c->charged = charge;
}

void conn_set_host(struct conn *c, const char *host)
{
	snprintf(c->from_host, sizeof c->from_host, "%s", host);
}

void conn_set_owner(struct conn *c, void *owner)
{
	c->owner = owner;
}

void *conn_owner(const struct conn *c)
{
	return c->owner;
}

static void conn_run(struct conn *c)
{
	if (c->protocol == CONN_HTTP1)
		h1_run(c);
	else
		h2_run(c);
	if (c->closing)
		c->cur = STR_NONE;
}

void conn_input(struct conn *c, struct str bytes)
{
	if (c->closing || c->broken || c->input_ended)
		return;
	c->busy = true;
	ENV_COUNT(c->env, bytes_in, bytes.n);
	if (c->in.n) {
		buf_str(&c->in, bytes);
		c->cur = buf_view(&c->in);
	} else {
		c->cur = bytes;
	}
	conn_run(c);
	conn_consume(c, 0);
	c->busy = false;
}

void conn_input_end(struct conn *c)
{
	if (c->input_ended)
		return;
	c->input_ended = true;
	c->busy = true;
	if (c->protocol == CONN_HTTP1)
		h1_input_end(c);
	else
		h2_input_end(c);
	c->busy = false;
	c->turn_over = false;
}

bool conn_wants_input(const struct conn *c)
{
	if (c->closing || c->broken || c->input_ended || c->turn_over || conn_out_full(c))
		return false;
	if (c->protocol == CONN_HTTP1 && c->state == H1_ASKING)
		return false;
	return c->in.n < CONN_IN_MAX || (c->protocol == CONN_HTTP1 && c->state <= H1_DISCARD);
}

struct str conn_output(const struct conn *c)
{
	return (struct str){c->out.p ? c->out.p + c->out_at : NULL, conn_pending(c)};
}

/* Continues the work that stopped because the output was full. */
static void conn_resume(struct conn *c)
{
	c->busy = true;
	if (c->protocol == CONN_HTTP1) {
		if (c->state == H1_SENDING || c->in.n) {
			c->cur = buf_view(&c->in);
			h1_pump(c);
			h1_run(c);
			if (c->closing)
				c->cur = STR_NONE;
			conn_consume(c, 0);
		}
	} else {
		if (c->in.n) {
			c->cur = buf_view(&c->in);
			h2_run(c);
			conn_consume(c, 0);
		}
		h2_pump(c);
	}
	c->busy = false;
}

void conn_continue(struct conn *c)
{
	if (!c->turn_over || c->closing || c->broken)
		return;
	c->turn_over = false;
	conn_resume(c);
}

void conn_sent(struct conn *c, size_t n)
{
	if (n == 0)
		return;
	c->out_at += n;
	ENV_COUNT(c->env, bytes_out, n);
	c->send_deadline_us = conn_after(c, c->env->limits.send_seconds);
	if (c->out_at == c->out.n) {
		c->out_at = 0;
		buf_return(c->env, &c->out);
	}
	if (conn_pending(c) <= CONN_OUT_MAX / 2)
		conn_resume(c);
}

bool conn_is_closing(const struct conn *c)
{
	return c->closing;
}

bool conn_is_broken(const struct conn *c)
{
	return c->broken;
}

void conn_tick(struct conn *c, int64_t now_us)
{
	c->env->now_us = now_us;
	if (conn_pending(c) && now_us > c->send_deadline_us) {
		ENV_COUNT(c->env, timeouts, 1);
		c->broken = true;
		return;
	}
	if (c->closing || c->broken)
		return;
	c->busy = true;
	if (c->protocol == CONN_HTTP1)
		h1_tick(c);
	else
		h2_tick(c);
	c->busy = false;
}

void conn_drain(struct conn *c)
{
	c->busy = true;
	if (c->protocol == CONN_HTTP1)
		h1_drain(c);
	else
		h2_drain(c);
	c->busy = false;
}

void conn_refuse_plain(struct conn *c)
{
	c->busy = true;
	h1_refuse_plain(c);
	c->busy = false;
}

/* A connection without its socket: bytes in, bytes out. The loop drives it with a TLS socket under it; tests and
 *fuzzers drive it with nothing under it.
 *
 *	struct conn_env *env = conn_env_new(&app, &options, 0);
 *	struct conn *c = conn_new(env, CONN_HTTP1, &peer, clock_mono_us());
 *	conn_input(c, bytes);
 *	struct str out = conn_output(c);  ...  conn_sent(c, out.n);
 *	conn_free(c);
 *	conn_env_free(env);
 */
#ifndef STEWARD_HTTP_CONN_H
#define STEWARD_HTTP_CONN_H

#include "http/budget.h"
#include "http/http.h"

#include "base/buf.h"

/* Limit of output that waits for the peer: above it nothing more is produced or read. Together with one more head or
 * frame it fits into 64 KB. */
#define CONN_OUT_MAX ((size_t)47 * 1024)
/* The same for an address that has used up its budget. */
#define CONN_OUT_LEAST ((size_t)8 * 1024)
/* Limit of input that waits for the answer to an earlier request. */
#define CONN_IN_MAX ((size_t)64 * 1024)

enum conn_protocol { CONN_HTTP1, CONN_HTTP2 };

struct conn;
struct post;

#define ENV_SPARES 64
#define ENV_SPARE_MAX ((size_t)32 * 1024)

/* What the connections of one loop share. */
struct conn_env {
	const struct http_app *app;
	struct http_options limits; /* defaults filled in */
	unsigned loop;
	struct budget *budget; /* of all loops, or NULL: no bound */
	bool draining;
	int64_t now_us; /* time of the current turn of the loop */
	/* A connection begins at most so many requests in a turn; then it calls wake() and waits for conn_continue().
	 * 0: no bound. HTTP/2 may go beyond it by what is in a kilobyte. */
	unsigned requests_a_turn;
	size_t live;             /* exchanges that exist */
	struct http_stats stats; /* written by this loop only, relaxed */
	/* Called when the connection has output, or wants input again, outside conn_input(). May be NULL. */
	void (*wake)(struct conn *c);
	/* Runs work on the loop's thread. NULL: there is only one thread, so it runs at once. */
	void (*post)(struct conn_env *env, struct post *p);
	void *owner;
	struct arena *arenas[ENV_SPARES];
	unsigned arena_count;
	struct buf bufs[ENV_SPARES];
	unsigned buf_count;
	struct buf large; /* one spare buffer for longer output: most turns need no other */
	int64_t date_turn_us, date_second;
	char date[32]; /* "Sun, 06 Nov 1994 08:49:37 GMT" */
};

#define DATE_LEN 29

/* The loop's own counters have one writer, so that no atomic addition is needed. */
#define ENV_COUNT(env, field, by) \
	__atomic_store_n(&(env)->stats.field, (env)->stats.field + (uint64_t)(by), __ATOMIC_RELAXED)

struct conn_env *conn_env_new(const struct http_app *app, const struct http_options *options, unsigned loop);
/* Before this call all connections must be freed and all requests answered. */
void conn_env_free(struct conn_env *env);
/* Replaces zeros with the defaults. */
void http_options_default(struct http_options *o);

/* `since_us`: when the client connected, for the header deadline. */
struct conn *conn_new(struct conn_env *env, enum conn_protocol protocol, const struct ip *peer, int64_t since_us);
/* The peer has closed or we are done. Requests that the application still holds live until they are answered. */
void conn_free(struct conn *c);
/* It came by the inner port, from this host. */
void conn_set_host(struct conn *c, const char *host);
/* The transport's own pointer. */
void conn_set_owner(struct conn *c, void *owner);
void *conn_owner(const struct conn *c);

void conn_input(struct conn *c, struct str bytes);
/* Goes on with input that an earlier turn has left. */
void conn_continue(struct conn *c);
/* The peer will send no more; it may still read. */
void conn_input_end(struct conn *c);
/* False while the peer must wait: too much output or input is pending, or no more input will be read at all. */
bool conn_wants_input(const struct conn *c);

/* Output that is ready now; conn_sent() removes bytes from its front and produces what comes next. */
struct str conn_output(const struct conn *c);
void conn_sent(struct conn *c, size_t n);
/* Nothing comes after the pending output: send it and close. */
bool conn_is_closing(const struct conn *c);
/* Close at once: producing the body of an answer failed. */
bool conn_is_broken(const struct conn *c);

/* Reports the connection's memory to the budget. Call it after each turn of work on the connection. */
void conn_account(struct conn *c);

/* Checks the deadlines. */
void conn_tick(struct conn *c, int64_t now_us);
/* No new requests: idle connections close now, others after their current requests. */
void conn_drain(struct conn *c);

/* For a client that speaks plain HTTP on the TLS port: answers 400 and closes. */
void conn_refuse_plain(struct conn *c);

#endif

/* Internal to src/http: one request and its answer on a connection, and what the two protocols share. */
#ifndef STEWARD_HTTP_EXCHANGE_H
#define STEWARD_HTTP_EXCHANGE_H

#include "http/chunked.h"
#include "http/conn.h"
#include "http/prescan.h"

#include <stdatomic.h>

struct exchange;
struct h2;

/* Work that another thread sends to a loop's thread. */
struct post {
	struct post *next;
	void (*run)(struct post *p);
	struct exchange *exchange;
};

struct exchange {
	struct request r;
	struct conn_env *env;
	struct conn *conn;            /* NULL: the client has gone */
	struct exchange *prev, *next; /* of the same connection */
	atomic_uint refs;             /* one for itself, one for each post in flight */
	struct post answer_post, ready_post;
	atomic_bool ready_posted;
	struct buf body; /* the part received so far, unless it came in one piece */
	struct chunked chunked;
	size_t body_limit;
	uint64_t body_expected;
	int64_t deadline_us; /* for the body to arrive, then for the client to read more */
	size_t body_sent, bytes_sent, dropped;
	size_t header_bytes, header_cap;
	size_t held;     /* memory, as the budget counts it; included in the connection's sum while it has one */
	size_t orphaned; /* the same, reported to the budget directly, after the connection is gone */
	size_t reserved; /* by http_reserve(), reported to the budget directly; beside `held` */
	unsigned place;  /* in the budget */
	int32_t stream_id;
	bool keep_alive, is_chunked, is_head;
	bool dispatched;     /* the application has it */
	bool answered;       /* http_respond() was called */
	bool stream_blocked; /* read() had nothing */
	bool sent_early;     /* the whole answer was sent before the whole request arrived */
	bool finished;       /* refused: later input for it is dropped */
	bool asking;         /* begin() has it: the body is not wanted yet */
	bool expects;        /* the client waits for 100 Continue before it sends the body */
	bool body_ended;     /* HTTP/2: the body ended while asking */
	bool too_large;      /* HTTP/2: the body grew over its limit while asking */
	bool no_room;        /* HTTP/2: the budget had no room for the body or the headers */
	bool no_answer_room; /* nor for the answer: http_reserve() */
	size_t unconsumed;   /* HTTP/2: bytes received while asking, for which no window was returned */
};

/* Every request may have a header block of this size, even when the budget is used up. */
#define HEADER_LEAST ((size_t)4096)

/* In the states up to H1_DISCARD we wait for the peer. */
enum h1_state { H1_HEADER, H1_BODY, H1_DISCARD, H1_ASKING, H1_HANDLING, H1_SENDING, H1_CLOSED };

struct conn {
	struct conn_env *env;
	void *owner;
	enum conn_protocol protocol;
	struct ip peer;
	char from_host[25]; /* see struct request */
	bool busy;          /* inside one of our own functions: answers are picked up on its way out */
	bool closing, broken, input_ended;
	struct str cur; /* input not yet consumed: in `in` or in the caller's bytes */
	struct buf in, out;
	size_t out_at;
	int64_t send_deadline_us; /* the peer must read some of the output before */
	int64_t deadline_us;
	struct exchange *exchanges;
	unsigned exchange_count;
	int64_t turn_us; /* the turn in which `turn_begun` requests were begun */
	unsigned turn_begun;
	bool turn_over; /* input was left for the next turn */
	/* HTTP/1 */
	enum h1_state state;
	bool idle;       /* between requests: the idle deadline applies */
	bool served;     /* at least one request was answered before */
	size_t searched; /* bytes of cur already searched for the end of the header block */
	struct exchange *ex;
	uint64_t discard; /* bytes to skip of a body that was answered before it arrived */
	/* HTTP/2 */
	struct h2 *h2;
	size_t body_bytes; /* of all its exchanges */
	/* Memory: what its exchanges hold, and the total that was reported to the budget. */
	size_t held, charged;
	unsigned place;
};

struct exchange *exchange_new(struct conn *c);
void exchange_unref(struct exchange *ex);
/* Removes it from its connection; frees it unless the application or a post holds it. */
void exchange_detach(struct exchange *ex);
/* The answer is sent or dropped: calls done(), closes the body stream, frees the exchange. */
void exchange_finish(struct exchange *ex);
/* Puts an error document into the response. */
void exchange_refuse(struct exchange *ex, int status, const char *code, const char *detail);
/* The same with 503, because the client's address has used up its budget. */
void exchange_refuse_busy(struct exchange *ex);
/* Changes how much memory it holds; a negative change wraps. */
void exchange_holds(struct exchange *ex, size_t more);
/* Appends to the body. False: the budget has no room. */
must_check bool exchange_body_add(struct exchange *ex, const void *p, size_t n);
/* Calls begin() when there is one. False: the answer or http_body_take() comes later. */
must_check bool exchange_begin(struct exchange *ex);
/* Hands the request to the application, or refuses it when there is no room for an answer. */
void exchange_dispatch(struct exchange *ex);
/* Splits r->target. */
void exchange_split_target(struct exchange *ex);
/* Statuses that have no body. */
static inline bool status_is_bare(int status)
{
	return status == 204 || status == 304 || (status >= 100 && status < 200);
}

static inline size_t conn_pending(const struct conn *c)
{
	return c->out.n - c->out_at;
}

static inline size_t conn_memory(const struct conn *c)
{
	return c->in.cap + c->out.cap + c->held;
}

/* Whether the address may hold so much more. Includes what this connection holds and has not reported to the budget
 * yet. */
static inline bool conn_admits(const struct conn *c, size_t more)
{
	size_t now = conn_memory(c);
	return budget_admits(c->env->budget, c->place, more + (now > c->charged ? now - c->charged : 0));
}

/* The output buffer is full enough: nothing more is produced. */
static inline bool conn_out_full(const struct conn *c)
{
	size_t n = conn_pending(c);
	return n > CONN_OUT_MAX || (n > CONN_OUT_LEAST && !conn_admits(c, CONN_OUT_MAX));
}

/* Lends a spare buffer to b when one is free and b has none; and takes it back. */
void buf_lend(struct conn_env *env, struct buf *b);
void buf_return(struct conn_env *env, struct buf *b);
/* The Date header of the current second. */
struct str env_date(struct conn_env *env);
/* Makes room for n more bytes of output. */
char *conn_reserve(struct conn *c, size_t n);
void conn_add(struct conn *c, const void *p, size_t n);
void conn_consume(struct conn *c, size_t n);
/* True when the input that is left, if any, must wait for the next turn. */
bool conn_turn_over(struct conn *c);
static inline int64_t conn_after(const struct conn *c, unsigned seconds)
{
	return c->env->now_us + (int64_t)seconds * 1000000;
}

/* HTTP/1. */
void h1_run(struct conn *c);
void h1_input_end(struct conn *c);
/* Call when an answer arrived, when its stream has bytes, or when the peer has read some output. */
void h1_answer(struct exchange *ex);
void h1_pump(struct conn *c);
/* The body is wanted: the next run reads it. */
void h1_body_take(struct exchange *ex);
void h1_tick(struct conn *c);
void h1_drain(struct conn *c);
void h1_refuse_plain(struct conn *c);

/* HTTP/2. */
void h2_start(struct conn *c);
void h2_free(struct conn *c);
void h2_run(struct conn *c);
void h2_input_end(struct conn *c);
void h2_answer(struct exchange *ex);
void h2_body_take(struct exchange *ex);
void h2_stream_ready(struct exchange *ex);
void h2_pump(struct conn *c);
void h2_tick(struct conn *c);
void h2_drain(struct conn *c);

#endif

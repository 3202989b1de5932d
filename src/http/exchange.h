/* Inside the edge: one request and its answer on a connection, and what the two protocols share. */
#ifndef STEWARD_HTTP_EXCHANGE_H
#define STEWARD_HTTP_EXCHANGE_H

#include "http/chunked.h"
#include "http/conn.h"
#include "http/prescan.h"

#include <stdatomic.h>

struct exchange;
struct h2;

/* Work for a loop's thread. */
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
	atomic_uint refs;             /* its own life and each post under way */
	struct post answer_post, ready_post;
	atomic_bool ready_posted;
	struct buf body; /* as it arrives, when it does not arrive at once */
	struct chunked chunked;
	size_t body_limit;
	uint64_t body_expected;
	int64_t deadline_us; /* of the body, then of the reader's next step */
	size_t body_sent, bytes_sent, dropped;
	size_t header_bytes, header_cap;
	int32_t stream_id;
	bool keep_alive, is_chunked, is_head;
	bool dispatched;     /* the application holds it */
	bool answered;       /* http_respond() was called */
	bool stream_blocked; /* read() had nothing */
	bool sent_early;     /* the whole answer, before the whole request had come */
	bool finished;       /* refused: what still arrives of it is dropped */
};

enum h1_state { H1_HEADER, H1_BODY, H1_HANDLING, H1_SENDING, H1_CLOSED };

struct conn {
	struct conn_env *env;
	void *owner;
	enum conn_protocol protocol;
	struct ip peer;
	bool busy; /* inside one of our own functions: answers are picked up on the way out */
	bool closing, broken, input_ended;
	struct str cur; /* input not yet consumed: in `in` or in the caller's bytes */
	struct buf in, out;
	size_t out_at;
	int64_t send_deadline_us; /* the peer must take some of the output by then */
	int64_t deadline_us;
	struct exchange *exchanges;
	unsigned exchange_count;
	/* HTTP/1 */
	enum h1_state state;
	bool idle;       /* between requests: the deadline is the idle one */
	bool served;     /* a request before this one */
	size_t searched; /* of cur, for the end of the header block */
	struct exchange *ex;
	/* HTTP/2 */
	struct h2 *h2;
	size_t body_bytes; /* of all its exchanges */
};

struct exchange *exchange_new(struct conn *c);
void exchange_unref(struct exchange *ex);
/* Off its connection; freed unless the application or a post holds it. */
void exchange_detach(struct exchange *ex);
/* The answer is out or dropped: done() is told, the body stream closed, the exchange freed. */
void exchange_finish(struct exchange *ex);
/* Puts an error document into the response. */
void exchange_refuse(struct exchange *ex, int status, const char *code, const char *detail);
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

/* A spare buffer, where there is one and b has none; and back. */
void buf_lend(struct conn_env *env, struct buf *b);
void buf_return(struct conn_env *env, struct buf *b);
/* The Date of this second. */
struct str env_date(struct conn_env *env);
/* Makes room for n more bytes of output. */
char *conn_reserve(struct conn *c, size_t n);
void conn_add(struct conn *c, const void *p, size_t n);
void conn_consume(struct conn *c, size_t n);
static inline int64_t conn_after(const struct conn *c, unsigned seconds)
{
	return c->env->now_us + (int64_t)seconds * 1000000;
}

/* HTTP/1. */
void h1_run(struct conn *c);
void h1_input_end(struct conn *c);
/* An answer came, or its stream has bytes, or the peer has taken output. */
void h1_answer(struct exchange *ex);
void h1_pump(struct conn *c);
void h1_tick(struct conn *c);
void h1_drain(struct conn *c);
void h1_refuse_plain(struct conn *c);

/* HTTP/2. */
void h2_start(struct conn *c);
void h2_free(struct conn *c);
void h2_run(struct conn *c);
void h2_input_end(struct conn *c);
void h2_answer(struct exchange *ex);
void h2_stream_ready(struct exchange *ex);
void h2_pump(struct conn *c);
void h2_tick(struct conn *c);
void h2_drain(struct conn *c);

#endif

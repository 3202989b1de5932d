/* From a request to its answer: the row, the gates, the handler. */
#ifndef STEWARD_GATE_DISPATCH_H
#define STEWARD_GATE_DISPATCH_H

#include "call/call.h"

/* On the request's loop, or on a worker. Answers now, or later when the store has written. */
void dispatch(struct service *s, struct request *r);
/* The same for a path beside the catalog: the gates, with a row of its own. */
void dispatch_as(struct service *s, struct request *r, const struct op *op);
/* The same for what lies below a GET of the catalog: `path` is that one's, which has the parameters. */
void dispatch_below(struct service *s, struct request *r, const struct op *op, struct str path);
/* Called when the header block has arrived and the body has not: runs the gates that need no body, then answers or
 * accepts the body. The call is kept in r->app. */
void dispatch_begin(struct service *s, struct request *r);
/* Continues when the body has arrived. */
void dispatch_resume(struct request *r);

/* A reading handler calls it when it knows how many entries it has to look at. True: they are too many for a loop. The
 * handler then returns 0 at once, and runs again from the start on a worker. */
must_check bool call_takes_long(struct call *c, int64_t entries);
/* Sends an answer that was held. */
void call_send(struct call *c);
/* The same when the change is saved but did not take effect as a success would say: sends this refusal instead. Call it
 * once, in place of call_send(). */
void call_send_failed(struct call *c, int status, const char *code, struct str detail);

/* idempotency.c: a POST with an Idempotency-Key. */
struct idempotency;
/* After the gates, on the loop or a worker. 0: continue (the key is now in flight); negative: the problem is
 * written. */
must_check int idempotency_begin(struct call *c, struct idempotency **ret_state);
/* In the write. 1: an earlier answer was found and is now the call's answer; 0: run the handler; negative: failed. */
must_check int idempotency_replay(struct call *c, struct idempotency *state);
/* In the write, after the handler succeeded. */
must_check int idempotency_keep(struct call *c, struct idempotency *state);
/* Ends the flight of the key. Accepts NULL. */
void idempotency_end(struct service *s, struct idempotency *state);

/* faults.c: what the test control injects before a handler. */
struct injected {
	const struct op *op;
	int status; /* to answer with, or 0 */
	unsigned delay_ms, retry_after, times;
};
/* True when a fault is set for the operation; this takes one use of it. */
must_check bool fault_take(struct service *s, const struct op *op, struct injected *ret_fault);
/* False when there are too many faults already. */
must_check bool fault_inject(struct service *s, const struct injected *fault);
void fault_clear(struct service *s);

#endif

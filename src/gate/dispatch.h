/* From a request to its answer: the row, the gates, the handler. */
#ifndef STEWARD_GATE_DISPATCH_H
#define STEWARD_GATE_DISPATCH_H

#include "gate/call.h"

/* On the request's loop, or on a worker. Answers now, or later when the store has written. */
void dispatch(struct service *s, struct request *r);
/* The header block has come, the body has not: asks the gates that need none, then answers or takes the body. What is known
 * is in r->app. */
void dispatch_begin(struct service *s, struct request *r);
/* Goes on when the body is there. */
void dispatch_resume(struct request *r);

/* finish.c: the answer's bytes and headers from what the handler left in the call; does not send. */
void call_finish(struct call *c);

/* idempotency.c: a POST with an Idempotency-Key. */
struct idempotency;
/* On the loop, after the gates. 0: go on (c's key is now in flight); negative: the problem is written. */
must_check int idempotency_begin(struct call *c, struct idempotency **ret_state);
/* In the write: 1 when an earlier answer was found and is now the call's answer; 0 to run the handler; negative: failed. */
must_check int idempotency_replay(struct call *c, struct idempotency *state);
/* In the write, after the handler succeeded. */
must_check int idempotency_keep(struct call *c, struct idempotency *state);
/* The key is free again. Accepts NULL. */
void idempotency_end(struct service *s, struct idempotency *state);

/* faults.c: what the test control injects before a handler. */
struct injected {
	const struct op *op;
	int status; /* to answer with, or 0 */
	unsigned delay_ms, retry_after, times;
};
/* True when there is one for the operation; it is then used up once. */
must_check bool fault_take(struct service *s, const struct op *op, struct injected *ret_fault);
/* False when there are too many already. */
must_check bool fault_inject(struct service *s, const struct injected *fault);
void fault_clear(struct service *s);

#endif

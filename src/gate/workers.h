/* Threads for what a loop must not wait for: calls of a store that is reached over a network, and reads whose row in api/
 * says that they are slow. Each has a lane of its own (reader, caches), as a loop has. */
#ifndef STEWARD_GATE_WORKERS_H
#define STEWARD_GATE_WORKERS_H

#include "gate/service.h"

#define WORKERS_LOCAL 4 /* with a store in this machine: for slow reads only */

/* The lanes from service->loops on must be there. Failure: a sentence to stderr, negative. */
must_check int workers_start(struct service *s, unsigned count, struct workers **ret_workers);
/* Runs what is queued, and joins. No request may come any more. Accepts NULL. */
void workers_stop(struct workers *w);

/* Runs fn(r) on a worker soon. From any thread. False when too many wait: the caller answers 503. */
must_check bool workers_run(struct workers *w, struct request *r, void (*fn)(struct request *r));
/* Whether the calling thread is one of them. */
bool on_worker(void);
/* Sends r->response from whichever thread this is: the request's loop, or a worker. */
void respond_here(struct request *r);
/* http_app.loop_start: the calling thread takes the lane of that loop. */
void lane_take(unsigned lane);

/* Calls that wait. */
unsigned workers_depth(struct workers *w);

#endif

/* Threads for what a loop must not wait for: calls of a store that is reached over a network, and reads whose row in api/
 * says that they are slow. Each has a lane of its own (reader, caches), as a loop has. */
#ifndef STEWARD_GATE_WORKERS_H
#define STEWARD_GATE_WORKERS_H

#include "gate/service.h"

#define WORKERS_LOCAL 5 /* with a store in this machine: for slow reads only; one organization gets four */

/* The lanes from service->loops on must be there. Failure: a sentence to stderr, negative. */
must_check int workers_start(struct service *s, unsigned count, struct workers **ret_workers);
/* Runs what is queued, and joins. No request may come any more. Accepts NULL. */
void workers_stop(struct workers *w);

/* Runs fn(r) on a worker soon. From any thread. False when too many of that key wait: the caller answers 503. */
must_check bool workers_run(struct workers *w, struct request *r, uint64_t key, void (*fn)(struct request *r));
/* The same for what takes long: a key does not get all threads, nor do all such calls together where others share them. */
must_check bool workers_run_slow(struct workers *w, struct request *r, uint64_t key, void (*fn)(struct request *r));
/* On a worker that has taken several requests: fn(r) is run once the document is there, which is read together with those
 * that the others want. `w` must live as long as the request. False: there is nothing to read it together with. */
must_check bool workers_gather(struct request *r, struct doc_wanted *w, void (*fn)(struct request *r));
/* The calling thread, if it is a worker, is about to wait: what it has taken and not run goes to the others. Before the waits of
 * store reads this is done already. */
void workers_share(void);
/* Whether the calling thread is one of them. */
bool on_worker(void);
/* Sends r->response from whichever thread this is: the request's loop, or a worker. */
void respond_here(struct request *r);
/* http_app.loop_start: the calling thread takes the lane of that loop. */
void lane_take(unsigned lane);

/* Calls that wait. */
unsigned workers_depth(struct workers *w);

#endif

/* Threads for work that a loop must not wait for: calls when the store is behind a network, and reads whose row in api/
 * is marked slow. Each worker has its own lane (reader, caches), as a loop has. */
#ifndef STEWARD_CALL_WORKERS_H
#define STEWARD_CALL_WORKERS_H

#include "call/service.h"

#define WORKERS_LOCAL 5 /* with an embedded store: only for slow reads; one organization gets four */

/* The lanes from service->loops on must exist. On failure: a message on stderr, negative. */
must_check int workers_start(struct service *s, unsigned count, struct workers **ret_workers);
/* Runs what is queued, and joins the threads. No request may arrive any more. Accepts NULL. */
void workers_stop(struct workers *w);

/* Runs fn(r) on a worker soon. From any thread. False when too many of that key wait: the caller answers 503. */
must_check bool workers_run(struct workers *w, struct request *r, uint64_t key, void (*fn)(struct request *r));
/* The same for slow work: one key never gets all threads, and slow calls together do not either where quick calls share
 * the threads. */
must_check bool workers_run_slow(struct workers *w, struct request *r, uint64_t key, void (*fn)(struct request *r));
/* On a worker that has taken several requests: reads this document together with those that the others need, then runs
 * fn(r). `w` must live as long as the request. False: the worker has no other request at hand to share the round trip
 * with. */
must_check bool workers_gather(struct request *r, struct doc_wanted *w, void (*fn)(struct request *r));
/* Call it before a worker waits: requests that it has taken but not run go to the other workers. Store reads do this by
 * themselves. */
void workers_share(void);
/* Whether the calling thread is a worker. */
bool on_worker(void);
/* Sends r->response; the calling thread may be the request's loop or a worker. */
void respond_here(struct request *r);
/* http_app.loop_start: the calling thread takes the lane of that loop. */
void lane_take(unsigned lane);

/* Calls that wait. */
unsigned workers_depth(struct workers *w);

#endif

/* Threads for slow work that has no thread of its own. At most `running_max` run at a time; they are started when
 * needed and shared fairly between organizations. Work that does not get a thread at once waits for its turn. */
#ifndef STEWARD_CALL_POOL_H
#define STEWARD_CALL_POOL_H

#include "base/fair.h"
#include "http/http.h"

#include <pthread.h>

struct pool {
	pthread_mutex_t lock;
	unsigned running_max, waiting_max;
	struct fair *fair; /* made when first used */
};

#define POOL(running, waiting)                                                                        \
	{                                                                                             \
		.lock = PTHREAD_MUTEX_INITIALIZER, .running_max = (running), .waiting_max = (waiting) \
	}

struct pool_work {
	struct fair_item item;
	void (*run)(void *ctx); /* runs on a thread of the pool; may free the work */
	void *ctx;
};

/* The key of a request when only its address is known. */
uint64_t address_key(const struct request *r);

/* `w`, with run and ctx set, must live until it runs. False: too many wait, or no thread can be created; nothing will
 * run. */
must_check bool pool_run(struct pool *p, struct pool_work *w, uint64_t key);

/* Counts work that already has a thread as one of the pool's. False: that key may run no more. */
must_check bool pool_enter(struct pool *p, uint64_t key);
void pool_leave(struct pool *p, uint64_t key);

#endif

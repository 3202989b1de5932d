/* Threads for what takes long and has no thread of its own. At most `running_max` run at a time; they are started when they
 * are needed, and shared fairly between organizations. Work that does not get a thread at once waits for its turn. */
#ifndef STEWARD_GATE_POOL_H
#define STEWARD_GATE_POOL_H

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
	void (*run)(void *ctx); /* on a thread of the pool; the work may be gone when it returns */
	void *ctx;
};

/* The key of a request of which nothing is known but where it comes from. */
uint64_t address_key(const struct request *r);

/* `w`, with run and ctx set, must live until it is run. False: too many wait, or there is no thread: nothing is run. */
must_check bool pool_run(struct pool *p, struct pool_work *w, uint64_t key);

/* One of the pool's places for something that has a thread already. False: that key may have no more. */
must_check bool pool_enter(struct pool *p, uint64_t key);
void pool_leave(struct pool *p, uint64_t key);

#endif

/* A thread ends when no item that may run is waiting, so between bursts there are no threads. */
#include "call/pool.h"

#include "base/arena.h"

#include <stdlib.h>

struct turn {
	struct pool *pool;
	struct pool_work *work;
};

uint64_t address_key(const struct request *r)
{
	struct str whole = {(const char *)r->peer.b, ip_is_v4(&r->peer) ? sizeof r->peer.b : 8};
	return fair_key(whole);
}

static struct pool_work *work_of(struct fair_item *item)
{
	return (struct pool_work *)(void *)item;
}

static void *pool_thread(void *arg);

static bool thread_start(struct pool *p, struct pool_work *w)
{
	pthread_t thread;
	struct turn *t = must_malloc(sizeof *t);
	*t = (struct turn){p, w};
	if (pthread_create(&thread, NULL, pool_thread, t) == 0) {
		pthread_detach(thread);
		return true;
	}
	free(t);
	return false;
}

/* With the lock held: starts a thread for each item that may run now. When no thread can be created, the item keeps
 * waiting until a running thread is free. */
static void threads_start(struct pool *p)
{
	struct fair_item *item;
	while ((item = fair_take(p->fair)))
		if (!thread_start(p, work_of(item))) {
			fair_return(p->fair, item);
			return;
		}
}

static void *pool_thread(void *arg)
{
	struct turn *t = arg;
	struct pool *p = t->pool;
	struct pool_work *w = t->work;
	free(t);
	while (w) {
		uint64_t key = w->item.key;
		w->run(w->ctx);
		pthread_mutex_lock(&p->lock);
		fair_done(p->fair, key);
		struct fair_item *next = fair_take(p->fair);
		threads_start(p);
		pthread_mutex_unlock(&p->lock);
		w = next ? work_of(next) : NULL;
	}
	return NULL;
}

static void pool_lock(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	if (!p->fair)
		p->fair = fair_new(p->waiting_max, p->running_max);
}

bool pool_run(struct pool *p, struct pool_work *w, uint64_t key)
{
	pool_lock(p);
	/* A waiting item is run by a thread that finishes its own. When no thread runs, nobody would ever take it, so
	 * it is refused. */
	bool added = fair_add(p->fair, &w->item, key);
	if (added)
		threads_start(p);
	if (added && !fair_running(p->fair)) {
		struct fair_item *back = fair_take(p->fair);
		fair_done(p->fair, back->key);
		added = false;
	}
	pthread_mutex_unlock(&p->lock);
	return added;
}

bool pool_enter(struct pool *p, uint64_t key)
{
	pool_lock(p);
	bool entered = fair_enter(p->fair, key);
	pthread_mutex_unlock(&p->lock);
	return entered;
}

void pool_leave(struct pool *p, uint64_t key)
{
	pool_lock(p);
	fair_done(p->fair, key);
	pthread_mutex_unlock(&p->lock);
}

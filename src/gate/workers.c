/* A bounded queue of requests and the threads that take them.
 *
 * A request waits in the queue as an entry in its own arena, so that queueing allocates nothing that could leak. The number
 * of threads is the number of store connections for calls: more would only queue at the store instead of here. */
#include "gate/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define WAITING_MAX 8192

_Thread_local unsigned thread_lane;
static _Thread_local bool is_worker;

struct entry {
	struct entry *next;
	struct request *request;
	void (*fn)(struct request *r);
};

struct worker {
	struct workers *workers;
	unsigned lane;
	pthread_t thread;
};

struct workers {
	struct service *service;
	struct worker *list;
	unsigned count;
	pthread_mutex_t lock;
	pthread_cond_t queued;
	struct entry *first, **last;
	unsigned depth;
	bool stopping;
};

bool on_worker(void)
{
	return is_worker;
}

void lane_take(unsigned lane)
{
	thread_lane = lane;
}

void respond_here(struct request *r)
{
	if (is_worker)
		http_respond_from_thread(r);
	else
		http_respond(r);
}

bool workers_run(struct workers *w, struct request *r, void (*fn)(struct request *r))
{
	struct entry *e = arena_new_of(r->arena, struct entry);
	*e = (struct entry){.request = r, .fn = fn};
	pthread_mutex_lock(&w->lock);
	bool room = w->depth < WAITING_MAX && !w->stopping;
	if (room) {
		*w->last = e;
		w->last = &e->next;
		w->depth++;
		pthread_cond_signal(&w->queued);
	}
	pthread_mutex_unlock(&w->lock);
	return room;
}

unsigned workers_depth(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	unsigned depth = w->depth;
	pthread_mutex_unlock(&w->lock);
	return depth;
}

/* False when stopping and nothing is left. Copies the entry: it dies with its request. */
static bool take(struct workers *w, struct tx *reader, struct entry *ret_entry)
{
	pthread_mutex_lock(&w->lock);
	if (!w->first) {
		/* Nothing to go on with: the reader lets go of what it has. */
		pthread_mutex_unlock(&w->lock);
		tx_rest(reader);
		pthread_mutex_lock(&w->lock);
	}
	while (!w->first && !w->stopping)
		pthread_cond_wait(&w->queued, &w->lock);
	struct entry *e = w->first;
	if (e) {
		*ret_entry = *e;
		w->first = e->next;
		if (!w->first)
			w->last = &w->first;
		w->depth--;
	}
	pthread_mutex_unlock(&w->lock);
	return e;
}

static void *worker_main(void *arg)
{
	struct worker *me = arg;
	struct entry e;
	is_worker = true;
	lane_take(me->lane);
	while (take(me->workers, me->workers->service->loop[me->lane].reader, &e))
		e.fn(e.request);
	return NULL;
}

int workers_start(struct service *s, unsigned count, struct workers **ret_workers)
{
	struct workers *w = must_calloc(1, sizeof *w);
	int r = 0;
	w->service = s;
	w->last = &w->first;
	w->list = must_calloc(count, sizeof *w->list);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->queued, NULL);
	for (unsigned i = 0; r == 0 && i < count; i++) {
		w->list[i] = (struct worker){.workers = w, .lane = s->loops + i};
		r = -pthread_create(&w->list[i].thread, NULL, worker_main, &w->list[i]);
		w->count += r == 0;
	}
	if (r < 0) {
		fprintf(stderr, "steward: the threads for calls cannot start: %s\n", strerror(-r));
		workers_stop(w);
		return r;
	}
	*ret_workers = w;
	return 0;
}

void workers_stop(struct workers *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->queued);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->count; i++)
		pthread_join(w->list[i].thread, NULL);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->queued);
	free(w->list);
	free(w);
}

/* Bounded queues of requests, fair between callers, and the threads that take from them.
 *
 * A request waits in the queue as an entry in its own arena, so that queueing allocates nothing that could leak. There
 * are as many threads as the store has connections for calls: more would only wait at the store instead of here. */
#include "call/workers.h"

#include "base/fair.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define WAITING_MAX 8192
#define TURN_MAX 16

_Thread_local unsigned thread_lane;

struct entry {
	struct fair_item item; /* first: while it waits in one of the queues */
	struct entry *next;
	struct request *request;
	void (*fn)(struct request *r);
	struct doc_wanted *wanted; /* a document to read before the call runs; or NULL */
};

struct line {
	struct entry *first, **last;
};

struct worker {
	struct workers *workers;
	unsigned lane;
	pthread_t thread;
	bool is_slow; /* the entry that runs came from the slow queue, and counts for its key */
	uint64_t slow_key;
	struct line taken;   /* taken from the queue, not run yet */
	struct line wanting; /* taken, waiting for its document */
};

struct workers {
	struct service *service;
	struct worker *list;
	unsigned count;
	pthread_mutex_t lock;
	pthread_cond_t queued;
	struct fair *quick, *slow;
	bool slow_next; /* the last turn took quick entries, so a slow one is next */
	unsigned idle;  /* threads that wait for work */
	bool woken;     /* one of them was signalled and has not run yet */
	bool stopping;
};

static _Thread_local struct worker *me; /* NULL: no worker */

static void line_add(struct line *l, struct entry *e)
{
	e->next = NULL;
	*l->last = e;
	l->last = &e->next;
}

static struct entry *line_pop(struct line *l)
{
	struct entry *e = l->first;
	if (e && !(l->first = e->next))
		l->last = &l->first;
	return e;
}

/* Puts all of `from` in front of `to`. */
static void line_return(struct line *from, struct line *to)
{
	if (!from->first)
		return;
	*from->last = to->first;
	if (!to->first)
		to->last = from->last;
	to->first = from->first;
	*from = (struct line){.last = &from->first};
}

/* Puts the entries back into the queue, in their order. */
static void line_requeue(struct line *from, struct fair *to)
{
	struct entry *back = NULL, *e;
	while ((e = line_pop(from))) {
		e->next = back;
		back = e;
	}
	for (; (e = back); fair_return(to, &e->item))
		back = e->next;
}

static struct entry *entry_of(struct fair_item *item)
{
	return (struct entry *)(void *)item;
}

bool on_worker(void)
{
	return me;
}

void lane_take(unsigned lane)
{
	thread_lane = lane;
}

void respond_here(struct request *r)
{
	if (me)
		http_respond_from_thread(r);
	else
		http_respond(r);
}

/* Wakes one thread, which wakes the next when it leaves something. More entries may arrive while the thread wakes up;
 * it takes them together. */
static void wake(struct workers *w)
{
	if ((!fair_waiting(w->quick) && !fair_waiting(w->slow)) || !w->idle || w->woken)
		return;
	w->woken = true;
	pthread_cond_signal(&w->queued);
}

static bool enqueue(struct workers *w, struct fair *queue, struct request *r, uint64_t key,
                    void (*fn)(struct request *r))
{
	struct entry *e = arena_new_of(r->arena, struct entry);
	*e = (struct entry){.request = r, .fn = fn};
	pthread_mutex_lock(&w->lock);
	bool room = !w->stopping && fair_add(queue, &e->item, key);
	if (room)
		wake(w);
	pthread_mutex_unlock(&w->lock);
	return room;
}

bool workers_run(struct workers *w, struct request *r, uint64_t key, void (*fn)(struct request *r))
{
	return enqueue(w, w->quick, r, key, fn);
}

bool workers_run_slow(struct workers *w, struct request *r, uint64_t key, void (*fn)(struct request *r))
{
	return enqueue(w, w->slow, r, key, fn);
}

bool workers_gather(struct request *r, struct doc_wanted *wanted, void (*fn)(struct request *r))
{
	if (!me || (!me->taken.first && !me->wanting.first))
		return false;
	struct entry *e = arena_new_of(r->arena, struct entry);
	*e = (struct entry){.request = r, .fn = fn, .wanted = wanted};
	line_add(&me->wanting, e);
	return true;
}

void workers_share(void)
{
	if (!me || (!me->taken.first && !me->wanting.first))
		return;
	struct workers *w = me->workers;
	pthread_mutex_lock(&w->lock);
	line_requeue(&me->taken, w->quick);
	line_requeue(&me->wanting, w->quick);
	wake(w);
	pthread_mutex_unlock(&w->lock);
}

static void share(void *ctx)
{
	workers_share();
}

unsigned workers_depth(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	unsigned depth = fair_waiting(w->quick) + fair_waiting(w->slow);
	pthread_mutex_unlock(&w->lock);
	return depth;
}

/* Takes a few quick entries or one slow one, by turns when there are both. Returns how many. With the lock held. */
static unsigned take_some(struct workers *w)
{
	struct fair_item *item = NULL;
	unsigned n = 0;
	if (w->slow_next || !fair_waiting(w->quick))
		item = fair_take(w->slow);
	w->slow_next = !item;
	if (item) {
		me->slow_key = item->key;
		me->is_slow = true;
		line_add(&me->taken, entry_of(item));
		return 1;
	}
	for (; n < TURN_MAX && (item = fair_take(w->quick)); n++)
		line_add(&me->taken, entry_of(item));
	return n;
}

/* False when stopping and the queues are empty. */
static bool take(struct workers *w, struct tx *reader)
{
	pthread_mutex_lock(&w->lock);
	if (me->is_slow) {
		fair_done(w->slow, me->slow_key);
		me->is_slow = false;
	}
	unsigned n = take_some(w);
	if (!n) {
		/* There is nothing more to read: the reader releases its snapshot. */
		pthread_mutex_unlock(&w->lock);
		tx_rest(reader);
		pthread_mutex_lock(&w->lock);
		n = take_some(w);
	}
	while (!n && !(w->stopping && !fair_waiting(w->slow))) {
		w->idle++;
		pthread_cond_wait(&w->queued, &w->lock);
		w->idle--;
		w->woken = false;
		n = take_some(w);
	}
	/* Entries that may not run now are looked at again by the thread that ends a slow one. */
	if (n)
		wake(w);
	if (w->stopping)
		pthread_cond_broadcast(&w->queued);
	pthread_mutex_unlock(&w->lock);
	return n > 0;
}

/* Reads the documents that this turn's calls wait for; then the calls can continue. */
static void read_wanted(struct tx *reader)
{
	struct doc_wanted *list[TURN_MAX];
	struct line ready = me->wanting;
	size_t n = 0;
	me->wanting = (struct line){.last = &me->wanting.first};
	for (struct entry *e = ready.first; e; e = e->next) {
		list[n++] = e->wanted;
		e->wanted = NULL;
	}
	tx_get_many(reader, list, n);
	line_return(&ready, &me->taken);
}

/* One turn: what has arrived, up to a limit. fn() may end a request, and its entry with it. */
static void turn(struct tx *reader)
{
	for (;;) {
		struct entry *e = line_pop(&me->taken);
		if (e && e->wanted)
			line_add(&me->wanting, e);
		else if (e)
			e->fn(e->request);
		else if (me->wanting.first)
			read_wanted(reader);
		else
			return;
	}
}

static void *worker_main(void *arg)
{
	me = arg;
	struct tx *reader = me->workers->service->loop[me->lane].reader;
	lane_take(me->lane);
	tx_on_wait(reader, share, NULL);
	while (take(me->workers, reader))
		turn(reader);
	return NULL;
}

int workers_start(struct service *s, unsigned count, struct workers **ret_workers)
{
	struct workers *w = must_calloc(1, sizeof *w);
	int r = 0;
	w->service = s;
	w->quick = fair_new(WAITING_MAX, 0);
	w->slow = fair_new(WAITING_MAX, s->remote && count > 1 ? count - 1 : count);
	w->list = must_calloc(count, sizeof *w->list);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->queued, NULL);
	for (unsigned i = 0; r == 0 && i < count; i++) {
		struct worker *one = &w->list[i];
		*one = (struct worker){.workers = w, .lane = s->loops + i};
		one->taken.last = &one->taken.first;
		one->wanting.last = &one->wanting.first;
		r = -pthread_create(&one->thread, NULL, worker_main, one);
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
	fair_free(w->quick);
	fair_free(w->slow);
	free(w->list);
	free(w);
}

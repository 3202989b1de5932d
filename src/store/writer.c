/* The one writer of this process: a bounded queue and a thread that takes what waits, runs it in one transaction and
 * flushes once. It never waits for more: while one flush runs, the next batch collects by itself.
 *
 * A batch is never longer than what waited when it began, and it takes each write only when the write's turn has come:
 * so a tenant that comes while it runs gets a place before the many that another has waiting. It ends after 20 ms,
 * because all of its callers wait for all of it, and holds few writes of one tenant. A hundred deletions of one tenant,
 * of a second each, used to be one batch for which everybody waited, with the memory of all hundred.
 *
 * On PostgreSQL a write that is undone after it has changed something makes the batch run again, more slowly
 * (pg/writer.c). A tenant whose writes do so repeatedly waits by itself for some seconds: in a queue whose small
 * batches run after the others', and expect it.
 *
 * A tenant whose writes take long (an invitation to two hundred projects) waits by itself too: others' writes then wait
 * for one of them at most, the one that runs when they come, and share no batch with the next.
 *
 * Each write can be undone alone. When the transaction itself fails, all of its writes get -EIO and none is kept; when
 * the store cannot be reached, the batch is run again from the start for a few seconds; when its disk is full, they get
 * -ENOSPC. A back end may also ask to run a batch again, because it has tried a faster way that turned out to be
 * wrong. */
#include "store/backend.h"

#include "base/clock.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define QUEUE_MAX 4096
#define BATCH_DEFAULT 256
/* A batch ends after this time, and has at most so many writes of one key. */
#define BATCH_US 20000
#define BATCH_EACH 64
/* The same for those who wait by themselves: about a fifth of the writer's time while there is other work, or one write
 * that takes longer. */
#define APART_MAX 32
#define APART_US 5000
#define APART_EACH 8
#define APART_QUEUE 1024
/* A key waits by itself from its second undone write within this time, until so long after its last. */
#define OFFENCE_US 10000000
#define OFFENCES 2
#define OFFENDERS 1024u
/* A key whose writes take longer than this on average waits by itself, until so long after its last. */
#define LONG_US 3000
#define LONG_KEPT_US 10000000
#define LONG_WEIGHT 8   /* of the average: how many writes it remembers */
#define LONG_MOST 20000 /* counts as this: one write that a busy machine holds up is not enough */
#define POLL_US 200000
/* How long a batch is retried when the store cannot be reached, before its callers get an error. */
#define RETRY_US 4000000
#define RETRY_PAUSE_MS 20
/* How often a full store is tested, and with how many bytes: what some writes together need. */
#define ROOM_US 1000000
#define ROOM_BYTES 65536

/* Writes that share batches. */
struct lane {
	struct fair *queue;               /* keys take turns; what a batch has taken counts as running */
	struct write *taken, **taken_end; /* by the current batch; between batches what the last one had no time for */
	unsigned goal;                    /* how many the current batch may have */
	unsigned taken_count, released;   /* how many of those taken, from the first, do not count as running */
	unsigned batch_max;
	int64_t batch_us;
	bool doubtful; /* refusals are expected */
};

enum { USUAL, LONG, APART, LANES };

/* Who has had writes undone lately. Two keys that meet in one place take turns in it: then some offences are missed. */
struct offender {
	uint64_t key;
	unsigned count;
	int64_t last_us;
};

/* How long a key's writes take. Keys that meet in one place take turns in it, as above. */
struct pace {
	uint64_t key;
	int64_t average_us, last_us;
};

struct writer {
	struct store *store;
	struct tx *conn;
	pthread_t thread;
	int *results;    /* of the current batch */
	int64_t room_us; /* when a full store was last tested */

	pthread_mutex_t lock;
	pthread_cond_t queued, room;
	struct lane lanes[LANES];
	struct offender offenders[OFFENDERS];
	struct pace paces[OFFENDERS];
	bool closing;
};

static unsigned waiting_count(const struct writer *q)
{
	unsigned all = 0;
	for (int i = 0; i < LANES; i++)
		all += fair_waiting(q->lanes[i].queue);
	return all;
}

static bool offends(struct writer *q, uint64_t key)
{
	const struct offender *o = &q->offenders[key % OFFENDERS];
	return key && o->key == key && o->count >= OFFENCES && clock_mono_us() - o->last_us < OFFENCE_US;
}

/* A write of that key was undone after it had changed something. */
static void offence_note(struct writer *q, uint64_t key)
{
	struct offender *o = &q->offenders[key % OFFENDERS];
	int64_t now = clock_mono_us();
	if (!key)
		return;
	pthread_mutex_lock(&q->lock);
	if (o->key != key || now - o->last_us >= OFFENCE_US)
		*o = (struct offender){.key = key};
	o->count += o->count < OFFENCES;
	o->last_us = now;
	pthread_mutex_unlock(&q->lock);
}

static bool takes_long(struct writer *q, uint64_t key)
{
	const struct pace *p = &q->paces[key % OFFENDERS];
	return key && p->key == key && p->average_us >= LONG_US && clock_mono_us() - p->last_us < LONG_KEPT_US;
}

/* A write of that key took so long. */
static void pace_note(struct writer *q, uint64_t key, int64_t us)
{
	struct pace *p = &q->paces[key % OFFENDERS];
	int64_t now = clock_mono_us();
	if (!key)
		return;
	pthread_mutex_lock(&q->lock);
	if (p->key != key || now - p->last_us >= LONG_KEPT_US)
		*p = (struct pace){.key = key};
	p->average_us += ((us < LONG_MOST ? us : LONG_MOST) - p->average_us) / LONG_WEIGHT;
	p->last_us = now;
	pthread_mutex_unlock(&q->lock);
}

static struct lane *lane_of(struct writer *q, uint64_t key)
{
	return &q->lanes[offends(q, key) ? APART : takes_long(q, key) ? LONG : USUAL];
}

bool store_write(struct store *s, struct write *w)
{
	struct writer *q = s->writer;
	pthread_mutex_lock(&q->lock);
	struct lane *lane = lane_of(q, w->item.key);
	bool ok = !q->closing && fair_add(lane->queue, &w->item, w->item.key);
	if (ok && waiting_count(q) == 1)
		pthread_cond_signal(&q->queued);
	pthread_mutex_unlock(&q->lock);
	return ok;
}

struct waiter {
	int (*run)(struct tx *tx, void *ctx);
	void *ctx;
	pthread_mutex_t lock;
	pthread_cond_t finished;
	bool done;
	int result;
};

static int waiter_run(struct tx *tx, void *ctx)
{
	struct waiter *w = ctx;
	return w->run(tx, w->ctx);
}

static void waiter_done(void *ctx, int result)
{
	struct waiter *w = ctx;
	pthread_mutex_lock(&w->lock);
	w->result = result;
	w->done = true;
	pthread_cond_signal(&w->finished);
	pthread_mutex_unlock(&w->lock);
}

int store_write_wait(struct store *s, int (*run)(struct tx *, void *), void *ctx)
{
	struct writer *q = s->writer;
	struct waiter waiter = {
	        .run = run, .ctx = ctx, .lock = PTHREAD_MUTEX_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER};
	struct write w = {.run = waiter_run, .done = waiter_done, .ctx = &waiter};
	assert(!pthread_equal(pthread_self(), q->thread));
	while (!store_write(s, &w)) {
		pthread_mutex_lock(&q->lock);
		bool closing = q->closing;
		while (!fair_has_room(q->lanes[USUAL].queue, 0) && !q->closing)
			pthread_cond_wait(&q->room, &q->lock);
		pthread_mutex_unlock(&q->lock);
		if (closing)
			return -ESHUTDOWN;
	}
	pthread_mutex_lock(&waiter.lock);
	while (!waiter.done)
		pthread_cond_wait(&waiter.finished, &waiter.lock);
	pthread_mutex_unlock(&waiter.lock);
	pthread_mutex_destroy(&waiter.lock);
	pthread_cond_destroy(&waiter.finished);
	return waiter.result;
}

static struct write *write_of(struct fair_item *item)
{
	return (struct write *)(void *)((char *)item - offsetof(struct write, item));
}

static unsigned goal_of(const struct lane *lane)
{
	unsigned all = lane->taken_count + fair_waiting(lane->queue);
	return all < lane->batch_max ? all : lane->batch_max;
}

static bool taken_any(const struct writer *q)
{
	bool any = false;
	for (int i = 0; i < LANES; i++)
		any |= q->lanes[i].taken != NULL;
	return any;
}

/* How many writes the next batches may have together; none after 200 ms without any, or when closing. */
static unsigned queue_wait(struct writer *q, bool *ret_closing)
{
	pthread_mutex_lock(&q->lock);
	if (!taken_any(q) && !waiting_count(q) && !q->closing) {
		int64_t until = clock_mono_us() + POLL_US;
		struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
		int r = 0;
		while (!waiting_count(q) && !q->closing && r != ETIMEDOUT)
			r = pthread_cond_timedwait(&q->queued, &q->lock, &t);
	}
	unsigned all = 0;
	for (int i = 0; i < LANES; i++)
		all += q->lanes[i].goal = goal_of(&q->lanes[i]);
	*ret_closing = q->closing;
	pthread_mutex_unlock(&q->lock);
	return all;
}

static void lane_append(struct lane *lane, struct write *w)
{
	w->next = NULL;
	*lane->taken_end = w;
	lane->taken_end = &w->next;
	lane->taken_count++;
}

/* The write whose turn it is becomes the last of the batch. NULL: none may. */
static struct write *lane_take(struct writer *q, struct lane *lane)
{
	if (!lane->queue || lane->taken_count >= lane->goal)
		return NULL;
	pthread_mutex_lock(&q->lock);
	struct fair_item *item = fair_take(lane->queue);
	if (item)
		pthread_cond_broadcast(&q->room);
	pthread_mutex_unlock(&q->lock);
	if (item)
		lane_append(lane, write_of(item));
	return item ? write_of(item) : NULL;
}

/* What was taken does not count against its keys any more. Under the lock. */
static void lane_release(struct lane *lane)
{
	unsigned i = 0;
	for (const struct write *w = lane->taken; w; w = w->next)
		if (i++ >= lane->released && lane->queue)
			fair_done(lane->queue, w->item.key);
	lane->released = lane->taken_count;
}

/* A batch that failed fails for all who waited when it began, however many one tenant has of them: the next would fail
 * as late again. */
static void lane_take_all(struct writer *q, struct lane *lane)
{
	struct fair_item *item;
	pthread_mutex_lock(&q->lock);
	lane_release(lane);
	while (lane->queue && lane->taken_count < lane->goal && (item = fair_take(lane->queue))) {
		fair_done(lane->queue, item->key);
		lane_append(lane, write_of(item));
		lane->released++;
	}
	pthread_cond_broadcast(&q->room);
	pthread_mutex_unlock(&q->lock);
}

uint64_t writer_depth(struct writer *w)
{
	pthread_mutex_lock(&w->lock);
	uint64_t depth = waiting_count(w);
	pthread_mutex_unlock(&w->lock);
	return depth;
}

/* Runs one write. Negative only when the transaction is lost; ret_result is what done() gets. */
static int write_run(struct tx *conn, const struct write *w, int *ret_result)
{
	bool touched = conn->touched;
	conn->broken = conn->full = conn->undone = false;
	int r = conn->ops->write_begin(conn);
	if (r < 0)
		return r;
	conn->in_write = true;
	int result = w->run(conn, w->ctx);
	conn->in_write = false;
	/* A full disk overrides the handler's own result: nobody is at fault, and nothing is broken. */
	if (conn->full)
		result = -ENOSPC;
	else if (conn->broken && result >= 0)
		result = -EIO;
	r = conn->ops->write_end(conn, result >= 0);
	if (r > 0)
		result = -EIO;
	if (result < 0)
		conn->touched = touched;
	if (r < 0)
		return r;
	*ret_result = result;
	return 0;
}

/* Runs what was taken for the batch, by this attempt or an earlier one, and what may still be taken. *ret_count is how
 * many were run: at least one. */
static int writes_run(struct writer *q, struct lane *lane, unsigned *ret_count)
{
	struct tx *conn = q->conn;
	int64_t until = clock_mono_us() + lane->batch_us;
	struct write *w = lane->taken ? lane->taken : lane_take(q, lane);
	unsigned count = 0;
	int r = 0;
	while (w && r == 0) {
		int64_t began = clock_mono_us();
		r = write_run(conn, w, &q->results[count++]);
		pace_note(q, w->item.key, clock_mono_us() - began);
		if (r == 0 && conn->undone)
			offence_note(q, w->item.key);
		if (count >= lane->goal || clock_mono_us() >= until)
			break;
		w = w->next ? w->next : lane_take(q, lane);
	}
	*ret_count = count;
	return r;
}

static void batch_note(struct store *s, int64_t us)
{
	static const int bounds_ms[] = STORE_BATCH_BOUNDS;
	int i = 0;
	while (i < STORE_BATCH_TIMES - 1 && us > (int64_t)bounds_ms[i] * 1000)
		i++;
	s->batch_times[i]++;
	s->batch_micros += us;
}

/* Runs a batch as one transaction. 0: its first *ret_count writes are on disk; -EAGAIN, -ERESTART: nothing of it is,
 * and it may (-EAGAIN) or must (-ERESTART) be run again. */
static int batch_try(struct writer *q, struct lane *lane, unsigned *ret_count)
{
	struct tx *conn = q->conn;
	int64_t began = clock_mono_us();
	conn->touched = false;
	conn->jobs = conn->events = false;
	conn->full = false;
	conn->doubtful = lane->doubtful;
	int r = conn->ops->batch_begin(conn);
	if (r < 0)
		return r;
	r = writes_run(q, lane, ret_count);
	conn->broken = false;
	int64_t start = clock_mono_us();
	if (r == 0)
		r = conn->ops->batch_commit(conn);
	if (r < 0) {
		bool full = conn->full && r != -ERESTART;
		conn->ops->batch_abort(conn);
		return full ? -ENOSPC : r;
	}
	q->store->commit_micros += clock_mono_us() - start;
	batch_note(q->store, clock_mono_us() - began);
	q->store->commits++;
	if (conn->touched)
		q->store->generation++;
	void (*wake)(void *) = q->store->jobs_wake;
	if (conn->jobs && wake)
		wake(q->store->jobs_ctx);
	wake = q->store->events_wake;
	if (conn->events && wake)
		wake(q->store->events_ctx);
	return 0;
}

static int batch_execute(struct writer *q, struct lane *lane, unsigned *ret_count)
{
	int64_t until = clock_mono_us() + RETRY_US;
	int r;
	while ((r = batch_try(q, lane, ret_count)) == -ERESTART || (r == -EAGAIN && clock_mono_us() < until))
		if (r == -EAGAIN)
			poll(NULL, 0, RETRY_PAUSE_MS);
	if (r < 0) {
		lane_take_all(q, lane);
		*ret_count = lane->taken_count;
	}
	return r == -EAGAIN ? -ENOTCONN : r;
}

static void room_note(struct store *s, bool full)
{
	if (atomic_exchange(&s->full, full) == full)
		return;
	if (full)
		log_error("store: there is no room on its disk: changes are refused until there is");
	else
		log_info("store: there is room on its disk again");
}

/* Takes the writes that the batch has finished out of the lane. */
static struct write *batch_cut(struct writer *q, struct lane *lane, unsigned count)
{
	struct write *batch = lane->taken, **end = &lane->taken;
	pthread_mutex_lock(&q->lock);
	lane_release(lane);
	pthread_mutex_unlock(&q->lock);
	for (unsigned i = 0; i < count && *end; i++)
		end = &(*end)->next;
	lane->taken = *end;
	*end = NULL;
	if (!lane->taken)
		lane->taken_end = &lane->taken;
	lane->taken_count -= count;
	lane->released = lane->taken_count;
	return count ? batch : NULL;
}

static void batch_run(struct writer *q, struct lane *lane)
{
	unsigned count = 0, i = 0;
	int r = batch_execute(q, lane, &count);
	bool full = r == -ENOSPC;
	for (; r == 0 && i < count; i++)
		full |= q->results[i] == -ENOSPC;
	if (full)
		room_note(q->store, true);
	i = 0;
	for (struct write *w = batch_cut(q, lane, count), *next; w; w = next, i++) {
		int result = r == -ENOTCONN || r == -ENOSPC ? r : r < 0 ? -EIO : q->results[i];
		next = w->next; /* done() may free it */
		if (result < 0)
			q->store->failed++;
		else
			q->store->writes++;
		w->done(w->ctx, result);
	}
}

/* Runs one write of the store's own. */
static void batch_run_one(struct writer *q, struct write *w)
{
	struct lane lane = {.taken = w, .goal = 1, .taken_count = 1, .released = 1};
	lane.taken_end = &w->next;
	batch_run(q, &lane);
}

static int room_try(struct tx *tx, void *ctx)
{
	char *bytes = must_malloc(ROOM_BYTES);
	memset(bytes, '.', ROOM_BYTES);
	int r = tx_meta_put(tx, META_ROOM, (struct str){bytes, ROOM_BYTES});
	free(bytes);
	return r;
}

static int room_free(struct tx *tx, void *ctx)
{
	return tx_meta_put(tx, META_ROOM, STR("."));
}

static void room_done(void *ctx, int result)
{
	*(int *)ctx = result;
}

/* Whether there is room again. The store tests it itself: while a balancer keeps clients away nobody sends writes, and
 * that a small one has found its place, as the notes do that processes make of themselves, does not mean that the next
 * one will. */
static void room_look(struct writer *q)
{
	int result = -ENOSPC;
	struct write try = {.run = room_try, .done = room_done, .ctx = &result},
	             undo = {.run = room_free, .done = room_done, .ctx = &result};
	int64_t now = clock_mono_us();
	if (!q->store->full || now - q->room_us < ROOM_US)
		return;
	q->room_us = now;
	batch_run_one(q, &try);
	if (result < 0)
		return;
	room_note(q->store, false);
	batch_run_one(q, &undo);
}

void thread_precede(int by)
{
	id_t thread = (id_t)gettid();
	errno = 0;
	int now = getpriority(PRIO_PROCESS, thread);
	if (errno == 0)
		setpriority(PRIO_PROCESS, thread, now - by); /* refused to most users: then nothing changes */
}

static void *writer_main(void *arg)
{
	struct writer *q = arg;
	bool closing = false;
	/* One thread writes for all callers: when it waits for a processor, all of them wait. */
	thread_precede(WRITER_PRECEDENCE);
	for (;;) {
		unsigned waiting = queue_wait(q, &closing);
		for (int i = 0; i < LANES; i++)
			if (q->lanes[i].goal)
				batch_run(q, &q->lanes[i]);
		if (!waiting && closing)
			return NULL;
		if (closing)
			continue;
		room_look(q);
		q->conn->ops->idle(q->conn, writer_depth(q) > 0);
	}
}

static void writer_free(struct writer *q)
{
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->queued);
	pthread_cond_destroy(&q->room);
	for (int i = 0; i < LANES; i++)
		fair_free(q->lanes[i].queue);
	free(q->results);
	free(q);
}

static void lane_init(struct lane *lane, unsigned places, unsigned batch_max, unsigned each, int64_t batch_us)
{
	*lane = (struct lane){.queue = fair_new(places, batch_max), .batch_max = batch_max, .batch_us = batch_us};
	lane->taken_end = &lane->taken;
	fair_limit_each(lane->queue, each);
}

int writer_start(struct store *s, struct tx *conn, unsigned batch_max, struct writer **ret_writer)
{
	struct writer *q = must_calloc(1, sizeof(*q));
	pthread_condattr_t monotonic;
	q->store = s;
	q->conn = conn;
	batch_max = batch_max ? batch_max : BATCH_DEFAULT;
	q->results = must_calloc(batch_max > APART_MAX ? batch_max : APART_MAX, sizeof(int));
	lane_init(&q->lanes[USUAL], QUEUE_MAX, batch_max, BATCH_EACH, BATCH_US);
	lane_init(&q->lanes[LONG], APART_QUEUE, APART_MAX, APART_EACH, APART_US);
	lane_init(&q->lanes[APART], APART_QUEUE, APART_MAX, APART_EACH, APART_US);
	q->lanes[APART].doubtful = true;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&q->queued, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&q->room, NULL);
	int r = -pthread_create(&q->thread, NULL, writer_main, q);
	if (r < 0) {
		fprintf(stderr, "steward: the store's writer cannot start: %s\n", strerror(-r));
		writer_free(q);
		return r;
	}
	*ret_writer = q;
	return 0;
}

void writer_stop(struct writer *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->closing = true;
	pthread_cond_broadcast(&w->queued);
	pthread_cond_broadcast(&w->room);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	w->store->ops->conn_close(w->conn);
	writer_free(w);
}

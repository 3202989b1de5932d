/* The one writer of this process: a bounded queue and a thread that takes all waiting writes, runs them in one
 * transaction and flushes once. It never waits for more: while one flush runs, the next batch collects by itself.
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
#define POLL_US 200000
/* How long a batch is retried when the store cannot be reached, before its callers get an error. */
#define RETRY_US 4000000
#define RETRY_PAUSE_MS 20
/* How often a full store is tested, and with how many bytes: what some writes together need. */
#define ROOM_US 1000000
#define ROOM_BYTES 65536

struct writer {
	struct store *store;
	struct tx *conn;
	pthread_t thread;
	unsigned batch_max;
	int *results;    /* of the current batch */
	int64_t room_us; /* when a full store was last tested */

	pthread_mutex_t lock;
	pthread_cond_t queued, room;
	struct fair *queue; /* keys take turns in a batch */
	bool closing;
};

bool store_write(struct store *s, struct write *w)
{
	struct writer *q = s->writer;
	pthread_mutex_lock(&q->lock);
	bool ok = !q->closing && fair_add(q->queue, &w->item, w->item.key);
	if (ok && fair_waiting(q->queue) == 1)
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
		while (!fair_has_room(q->queue, 0) && !q->closing)
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

/* Takes up to batch_max writes; none after 200 ms without any, or when closing. */
static struct write *queue_take(struct writer *q, bool *ret_closing)
{
	pthread_mutex_lock(&q->lock);
	if (!fair_waiting(q->queue) && !q->closing) {
		int64_t until = clock_mono_us() + POLL_US;
		struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
		int r = 0;
		while (!fair_waiting(q->queue) && !q->closing && r != ETIMEDOUT)
			r = pthread_cond_timedwait(&q->queued, &q->lock, &t);
	}
	struct write *batch = NULL, **end = &batch;
	struct fair_item *item;
	unsigned n = 0;
	for (; n < q->batch_max && (item = fair_take(q->queue)); n++) {
		*end = write_of(item);
		end = &(*end)->next;
	}
	*end = NULL;
	*ret_closing = q->closing;
	if (n)
		pthread_cond_broadcast(&q->room);
	pthread_mutex_unlock(&q->lock);
	return n ? batch : NULL;
}

uint64_t writer_depth(struct writer *w)
{
	pthread_mutex_lock(&w->lock);
	uint64_t depth = fair_waiting(w->queue);
	pthread_mutex_unlock(&w->lock);
	return depth;
}

/* Runs one write. Negative only when the transaction is lost; ret_result is what done() gets. */
static int write_run(struct tx *conn, const struct write *w, int *ret_result)
{
	bool touched = conn->touched;
	conn->broken = conn->full = false;
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

/* Runs a batch as one transaction. 0: it is on disk; -EAGAIN, -ERESTART: nothing of it is, and it may (-EAGAIN) or must
 * (-ERESTART) be run again. */
static int batch_try(struct writer *q, const struct write *batch)
{
	struct tx *conn = q->conn;
	conn->touched = false;
	conn->jobs = conn->events = false;
	conn->full = false;
	int r = conn->ops->batch_begin(conn);
	if (r < 0)
		return r;
	int i = 0;
	for (const struct write *w = batch; w && r == 0; w = w->next, i++)
		r = write_run(conn, w, &q->results[i]);
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

static int batch_execute(struct writer *q, const struct write *batch)
{
	int64_t until = clock_mono_us() + RETRY_US;
	int r;
	while ((r = batch_try(q, batch)) == -ERESTART || (r == -EAGAIN && clock_mono_us() < until))
		if (r == -EAGAIN)
			poll(NULL, 0, RETRY_PAUSE_MS);
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

static void batch_run(struct writer *q, struct write *batch)
{
	int r = batch_execute(q, batch);
	int i = 0;
	bool full = r == -ENOSPC, done = r == 0;
	for (const struct write *w = batch; w && r == 0; w = w->next)
		full |= q->results[i++] == -ENOSPC;
	if (full || done)
		room_note(q->store, full);
	i = 0;
	for (struct write *w = batch, *next; w; w = next, i++) {
		int result = r == -ENOTCONN || r == -ENOSPC ? r : r < 0 ? -EIO : q->results[i];
		next = w->next; /* done() may free it */
		if (result < 0)
			q->store->failed++;
		else
			q->store->writes++;
		w->done(w->ctx, result);
	}
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
}

/* While a balancer keeps clients away nobody sends writes, so the store itself tests whether there is room. */
static void room_look(struct writer *q)
{
	struct write try = {.run = room_try, .done = room_done}, undo = {.run = room_free, .done = room_done};
	int64_t now = clock_mono_us();
	if (!q->store->full || now - q->room_us < ROOM_US)
		return;
	q->room_us = now;
	batch_run(q, &try);
	if (!q->store->full)
		batch_run(q, &undo);
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
		struct write *batch = queue_take(q, &closing);
		if (batch)
			batch_run(q, batch);
		else if (closing)
			return NULL;
		if (closing)
			continue;
		room_look(q);
		q->conn->ops->idle(q->conn, writer_depth(q) > 0);
	}
}

int writer_start(struct store *s, struct tx *conn, unsigned batch_max, struct writer **ret_writer)
{
	struct writer *q = must_calloc(1, sizeof(*q));
	pthread_condattr_t monotonic;
	q->store = s;
	q->conn = conn;
	q->batch_max = batch_max ? batch_max : BATCH_DEFAULT;
	q->results = must_calloc(q->batch_max, sizeof(int));
	q->queue = fair_new(QUEUE_MAX, 0);
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&q->queued, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&q->room, NULL);
	int r = -pthread_create(&q->thread, NULL, writer_main, q);
	if (r < 0) {
		fprintf(stderr, "steward: the store's writer cannot start: %s\n", strerror(-r));
		fair_free(q->queue);
		free(q->results);
		free(q);
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
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->queued);
	pthread_cond_destroy(&w->room);
	fair_free(w->queue);
	free(w->results);
	free(w);
}

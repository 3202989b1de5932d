/* The one writer of this process: a bounded queue and a thread that takes what has gathered, runs it in one transaction
 * and flushes once. It never waits for more to come: while one flush runs the next batch gathers by itself.
 *
 * Each write has a savepoint of its own, so that one that fails is undone alone. When the transaction itself fails, all
 * of its writes get -EIO and nothing of them is kept.
 *
 * Between batches the thread also looks, every 200 ms, whether another process has changed identities, and moves pages
 * from the log into the file when the log has grown: after the callers have their answers, and rather when it is idle.
 */
#include "store/sqlite.h"

#include "base/clock.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define QUEUE_MAX 4096
#define BATCH_DEFAULT 256
#define POLL_US 200000
/* Pages of log: from here on when idle, and from here on in any case. */
#define CHECKPOINT_IDLE 1000
#define CHECKPOINT_BUSY 4000

struct writer {
	struct store *store;
	struct tx *conn;
	pthread_t thread;
	unsigned batch_max;
	int *results; /* of the batch under way */

	pthread_mutex_t lock;
	pthread_cond_t queued, room;
	struct write *first, **last;
	unsigned depth;
	bool closing;

	/* The thread's own. */
	int log_pages, checkpoint_at;
	int64_t polled_us, data_version, identity;
};

bool store_write(struct store *s, struct write *w)
{
	struct writer *q = s->writer;
	pthread_mutex_lock(&q->lock);
	bool ok = q->depth < QUEUE_MAX && !q->closing;
	if (ok) {
		w->next = NULL;
		*q->last = w;
		q->last = &w->next;
		if (q->depth++ == 0)
			pthread_cond_signal(&q->queued);
	}
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
		while (q->depth >= QUEUE_MAX && !q->closing)
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

/* Up to batch_max writes; none after 200 ms without any, or when closing. */
static struct write *queue_take(struct writer *q, bool *ret_closing)
{
	pthread_mutex_lock(&q->lock);
	if (!q->first && !q->closing) {
		int64_t until = clock_mono_us() + POLL_US;
		struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
		int r = 0;
		while (!q->first && !q->closing && r != ETIMEDOUT)
			r = pthread_cond_timedwait(&q->queued, &q->lock, &t);
	}
	struct write *batch = q->first, **end = &q->first;
	unsigned n = 0;
	for (; *end && n < q->batch_max; n++)
		end = &(*end)->next;
	q->first = *end;
	*end = NULL;
	if (!q->first)
		q->last = &q->first;
	q->depth -= n;
	*ret_closing = q->closing;
	if (n)
		pthread_cond_broadcast(&q->room);
	pthread_mutex_unlock(&q->lock);
	return n ? batch : NULL;
}

uint64_t writer_depth(struct writer *w)
{
	pthread_mutex_lock(&w->lock);
	uint64_t depth = w->depth;
	pthread_mutex_unlock(&w->lock);
	return depth;
}

/* One write in its savepoint. Negative only when the transaction is lost; ret_result is what done() gets. */
static int write_run(struct tx *conn, const struct write *w, int *ret_result)
{
	bool touched = conn->touched;
	conn->broken = false;
	int r = conn_run(conn, ST_SAVEPOINT);
	if (r < 0)
		return r;
	conn->in_write = true;
	int result = w->run(conn, w->ctx);
	conn->in_write = false;
	if (conn->broken && result >= 0)
		result = -EIO;
	if (sqlite3_get_autocommit(conn->db))
		return -EIO;
	if (result < 0) {
		conn->touched = touched;
		r = conn_run(conn, ST_UNDO);
	}
	if (r == 0)
		r = conn_run(conn, ST_RELEASE);
	if (r == 0)
		*ret_result = result;
	return r;
}

static int identity_increment(struct tx *conn)
{
	sqlite3_stmt *st = conn_statement(conn, ST_META_INCREMENT);
	if (!st)
		return -EIO;
	bind_z(st, 1, META_IDENTITY);
	return conn_step(conn, st);
}

static int identity_read(struct tx *conn, int64_t *ret_value)
{
	sqlite3_stmt *st = conn_statement(conn, ST_META_GET);
	if (!st)
		return -EIO;
	bind_z(st, 1, META_IDENTITY);
	int r = conn_step(conn, st);
	if (r < 0)
		return r;
	*ret_value = r > 0 ? sqlite3_column_int64(st, 0) : 0;
	if (r > 0)
		sqlite3_reset(st);
	return 0;
}

/* The transaction of a batch: 0 when it is on disk. */
static int batch_execute(struct writer *q, const struct write *batch)
{
	struct tx *conn = q->conn;
	conn->touched = false;
	conn->jobs = false;
	int r = conn_run(conn, ST_BEGIN_WRITE);
	if (r < 0)
		return r;
	int i = 0;
	for (const struct write *w = batch; w && r == 0; w = w->next, i++)
		r = write_run(conn, w, &q->results[i]);
	conn->broken = false;
	if (r == 0 && conn->touched)
		r = identity_increment(conn);
	int64_t identity = q->identity;
	if (r == 0 && conn->touched)
		r = identity_read(conn, &identity);
	int64_t start = clock_mono_us();
	if (r == 0)
		r = conn_run(conn, ST_COMMIT);
	if (r < 0) {
		if (!sqlite3_get_autocommit(conn->db) && conn_run(conn, ST_ROLLBACK) < 0)
			log_error("store: a failed transaction could not be rolled back");
		return r;
	}
	q->store->commit_micros += clock_mono_us() - start;
	q->store->commits++;
	if (conn->touched) {
		q->identity = identity;
		q->store->generation++;
	}
	void (*wake)(void *) = q->store->jobs_wake;
	if (conn->jobs && wake)
		wake(q->store->jobs_ctx);
	return 0;
}

static void batch_run(struct writer *q, struct write *batch)
{
	int r = batch_execute(q, batch);
	int i = 0;
	for (struct write *w = batch, *next; w; w = next, i++) {
		int result = r < 0 ? -EIO : q->results[i];
		next = w->next; /* done() may free it */
		if (result < 0)
			q->store->failed++;
		else
			q->store->writes++;
		w->done(w->ctx, result);
	}
}

static int on_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
	struct writer *q = ctx;
	q->log_pages = pages;
	return SQLITE_OK;
}

/* Passive: readers go on, and what they still need stays in the log until the next time. */
static void checkpoint(struct writer *q)
{
	int pages = 0, moved = 0;
	int r = sqlite3_wal_checkpoint_v2(q->conn->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved);
	if (r != SQLITE_OK && (r & 0xff) != SQLITE_BUSY)
		log_warn("store: checkpoint: %s (code %d)", sqlite3_errmsg(q->conn->db), r);
	q->checkpoint_at = r == SQLITE_OK && moved == pages ? CHECKPOINT_IDLE : q->log_pages + CHECKPOINT_IDLE;
	q->log_pages = 0;
}

static void poll_identity(struct writer *q)
{
	int64_t now = clock_mono_us();
	if (now - q->polled_us < POLL_US)
		return;
	q->polled_us = now;
	int64_t version = (int64_t)store_data_version(q->conn), identity;
	if (version == q->data_version)
		return;
	q->data_version = version;
	if (identity_read(q->conn, &identity) == 0 && identity != q->identity) {
		q->identity = identity;
		q->store->generation++;
	}
}

static void *writer_main(void *arg)
{
	struct writer *q = arg;
	bool closing = false;
	for (;;) {
		struct write *batch = queue_take(q, &closing);
		if (batch)
			batch_run(q, batch);
		else if (closing)
			return NULL;
		if (!closing)
			poll_identity(q);
		int patience = writer_depth(q) ? CHECKPOINT_BUSY - CHECKPOINT_IDLE : 0;
		if (q->log_pages >= q->checkpoint_at + patience)
			checkpoint(q);
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
	q->last = &q->first;
	q->checkpoint_at = CHECKPOINT_IDLE;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&q->queued, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&q->room, NULL);
	sqlite3_wal_hook(conn->db, on_commit, q);
	q->data_version = (int64_t)store_data_version(conn);
	int r = identity_read(conn, &q->identity);
	if (r == 0)
		r = -pthread_create(&q->thread, NULL, writer_main, q);
	if (r < 0) {
		fprintf(stderr, "steward: the store's writer cannot start: %s\n", strerror(-r));
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
	conn_close(w->conn);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->queued);
	pthread_cond_destroy(&w->room);
	free(w->results);
	free(w);
}

/* SQLite's part of the writer: batches as transactions, and the work between them. Every 200 ms it checks whether
 * another process has changed identities. When the log has grown it moves pages into the file: after the callers have
 * their answers, and preferably when it is idle.
 *
 * With a savepoint for each write, SQLite would first copy every page that the write changes, although nearly no write
 * is undone after it has changed something. So a batch runs without savepoints. When a write must be undone after all,
 * the batch is run again from the start with savepoints, and so are the next batches. */
#include "store/sqlite/sqlite.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>

#define POLL_US 200000
/* Pages in the log: from the first number on it is moved when idle, from the second in any case. */
#define CHECKPOINT_IDLE 1000
#define CHECKPOINT_BUSY 4000
/* With this many more pages the writer no longer waits for the thread that moves them. */
#define CHECKPOINT_MUST 16000
/* How many batches use savepoints after one that had to be run again because it had none. */
#define CAREFUL_BATCHES 64

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

static int on_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
	((struct sqlite_writer *)ctx)->log_pages = pages;
	return SQLITE_OK;
}

int sqlite_writer_setup(struct tx *conn)
{
	struct sqlite_writer *w = conn->writing = must_calloc(1, sizeof *w);
	w->checkpoint_at = CHECKPOINT_IDLE;
	sqlite3_wal_hook(conn->db, on_commit, w);
	w->data_version = (int64_t)store_data_version(conn);
	return identity_read(conn, &w->identity);
}

int sqlite_batch_begin(struct tx *conn)
{
	struct sqlite_writer *w = conn->writing;
	w->chain_known = false;
	w->last_org[0] = '\0';
	counts_forget(conn);
	memo_clear(conn);
	w->saves = w->careful > 0;
	w->careful -= w->saves;
	return conn_run(conn, ST_BEGIN_WRITE);
}

int sqlite_write_begin(struct tx *conn)
{
	struct sqlite_writer *w = conn->writing;
	w->changes_before = sqlite3_total_changes64(conn->db);
	if (!w->saves)
		return 0;
	w->chain_known_before = w->chain_known;
	w->chain_before = w->chain;
	return conn_run(conn, ST_SAVEPOINT);
}

/* A write that has changed nothing needs no undoing. */
static int undo_without_savepoint(struct tx *conn)
{
	struct sqlite_writer *w = conn->writing;
	if (!conn->broken && sqlite3_total_changes64(conn->db) == w->changes_before)
		return 0;
	w->careful = CAREFUL_BATCHES;
	return -ERESTART;
}

int sqlite_write_end(struct tx *conn, bool keep)
{
	struct sqlite_writer *w = conn->writing;
	if (sqlite3_get_autocommit(conn->db))
		return -EIO;
	if (!w->saves)
		return keep ? 0 : undo_without_savepoint(conn);
	int r;
	if (keep) {
		conn->in_write = true;
		r = counts_flush(conn);
		conn->in_write = false;
	} else {
		w->chain_known = w->chain_known_before;
		w->chain = w->chain_before;
		w->last_org[0] = '\0';
		counts_forget(conn);
		memo_clear(conn);
		r = conn_run(conn, ST_UNDO);
	}
	return r < 0 ? r : conn_run(conn, ST_RELEASE);
}

int sqlite_batch_commit(struct tx *conn)
{
	int64_t identity = conn->writing->identity;
	conn->in_write = true;
	int r = counts_flush(conn);
	if (r == 0)
		r = event_chain_flush(conn);
	conn->in_write = false;
	if (r == 0 && conn->touched)
		r = identity_increment(conn);
	if (r == 0 && conn->touched)
		r = identity_read(conn, &identity);
	if (r == 0)
		r = conn_run(conn, ST_COMMIT);
	if (r == 0)
		conn->writing->identity = identity;
	return r;
}

void sqlite_batch_abort(struct tx *conn)
{
	if (!sqlite3_get_autocommit(conn->db) && conn_run(conn, ST_ROLLBACK) < 0)
		log_error("store: a failed transaction could not be rolled back");
}

static void checkpoint(struct tx *conn)
{
	struct sqlite_writer *w = conn->writing;
	bool all = false;
	int r = checkpoint_run(conn, &all);
	w->checkpoint_at = r == 0 && all ? CHECKPOINT_IDLE : w->log_pages + CHECKPOINT_IDLE;
	w->log_pages = 0;
}

static void poll_identity(struct tx *conn)
{
	struct sqlite_writer *w = conn->writing;
	int64_t now = clock_mono_us();
	if (now - w->polled_us < POLL_US)
		return;
	w->polled_us = now;
	int64_t version = (int64_t)store_data_version(conn), identity;
	if (version == w->data_version)
		return;
	w->data_version = version;
	if (identity_read(conn, &identity) == 0 && identity != w->identity) {
		w->identity = identity;
		conn->store->generation++;
	}
}

void sqlite_idle(struct tx *conn, bool busy)
{
	struct sqlite_writer *w = conn->writing;
	poll_identity(conn);
	if (w->log_pages < w->checkpoint_at)
		return;
	int ahead = w->log_pages - w->checkpoint_at;
	if (!busy || ahead >= CHECKPOINT_MUST || (ahead >= CHECKPOINT_BUSY - CHECKPOINT_IDLE && checkpoint_ahead(conn)))
		checkpoint(conn);
}

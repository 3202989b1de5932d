/* SQLite's part of the writer: batches as transactions with a savepoint for each write, and what is done between them:
 * every 200 ms a look whether another process has changed identities, and moving pages from the log into the file when
 * the log has grown: after the callers have their answers, and rather when it is idle. */
#include "store/sqlite.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>

#define POLL_US 200000
/* Pages of log: from here on when idle, and from here on in any case. */
#define CHECKPOINT_IDLE 1000
#define CHECKPOINT_BUSY 4000

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
	conn->writing->chain_known = false;
	return conn_run(conn, ST_BEGIN_WRITE);
}

int sqlite_write_begin(struct tx *conn)
{
	conn->writing->chain_known_before = conn->writing->chain_known;
	conn->writing->chain_before = conn->writing->chain;
	return conn_run(conn, ST_SAVEPOINT);
}

int sqlite_write_end(struct tx *conn, bool keep)
{
	if (sqlite3_get_autocommit(conn->db))
		return -EIO;
	if (!keep) {
		conn->writing->chain_known = conn->writing->chain_known_before;
		conn->writing->chain = conn->writing->chain_before;
	}
	int r = keep ? 0 : conn_run(conn, ST_UNDO);
	return r < 0 ? r : conn_run(conn, ST_RELEASE);
}

int sqlite_batch_commit(struct tx *conn)
{
	int64_t identity = conn->writing->identity;
	conn->in_write = true;
	int r = event_chain_flush(conn);
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

/* Passive: readers go on, and what they still need stays in the log until the next time. */
static void checkpoint(struct tx *conn)
{
	struct sqlite_writer *w = conn->writing;
	int pages = 0, moved = 0;
	int r = sqlite3_wal_checkpoint_v2(conn->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved);
	if (r != SQLITE_OK && (r & 0xff) != SQLITE_BUSY)
		log_warn("store: checkpoint: %s (code %d)", sqlite3_errmsg(conn->db), r);
	w->checkpoint_at = r == SQLITE_OK && moved == pages ? CHECKPOINT_IDLE : w->log_pages + CHECKPOINT_IDLE;
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
	poll_identity(conn);
	int patience = busy ? CHECKPOINT_BUSY - CHECKPOINT_IDLE : 0;
	if (conn->writing->log_pages >= conn->writing->checkpoint_at + patience)
		checkpoint(conn);
}

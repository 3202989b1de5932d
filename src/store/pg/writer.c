/* PostgreSQL's part of the writer.
 *
 * A batch takes one lock for all processes before it reads anything, and holds it to its end. So its writes see what
 * SQLite's writer sees, a store that nobody else is changing, and every rule that a handler checks before it writes
 * holds with any number of nodes. The lock is taken in the same round trip as the first statement.
 *
 * Each batch writes a mark: this node's row gets the batch's id. When the connection breaks during the commit, the
 * writer connects again, takes the lock (which the old session holds until its outcome is decided) and reads the mark:
 * it says whether the batch was committed or must be run again. So nothing is lost, and nothing is done twice. A
 * committed batch may still be waiting for a standby that its commit had to wait for: it counts only after a later
 * commit, which waits in the same way, has succeeded.
 *
 * A batch guesses that everything goes well: that inserted documents are new, and that no write has to be undone after
 * it has changed something. Then it needs no savepoints, does not wait for inserts, knows the documents that it has
 * read or made, writes the counts of a list once, and writes many events or documents at a time. A wrong guess shows
 * with the next answer of the server, before the commit at the latest. The batch is then aborted and run again with a
 * savepoint for each write, and so are some batches after it, so that callers who provoke refusals do not make the
 * writes of others run twice. Who does so again and again gets batches apart (store/writer.c), which do not guess. */
#include "store/pg/pg.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"

#include <errno.h>

#define ATTEMPT_US 1000000
#define DECIDE_US 8000000
#define CAREFUL_BATCHES 4 /* including the one that is run again */
#define FLUSH_EACH 8      /* statements between two flushes */

static void batch_forget(struct tx *tx)
{
	struct pg *p = tx->pg;
	p->lost = p->spoiled = p->undoable = p->chain_known = p->chain_changed = false;
	memo_clear(tx);
	pg_ahead_clear(p);
	p->guessing = p->guess_failed = false;
	pg_known_reset(p);
}

int pg_batch_begin(struct tx *tx)
{
	struct pg *p = tx->pg;
	struct id id = id_new();
	batch_forget(tx);
	p->guessing = p->careful == 0 && !tx->doubtful;
	p->careful -= p->careful > 0 && !tx->doubtful;
	memcpy(p->batch, id.z, sizeof p->batch);
	if (pg_connect(tx, clock_mono_us() + ATTEMPT_US) < 0)
		return -EAGAIN;
	tx->store->pg->writer_pid = PQbackendPID(p->conn);
	int r = pg_defer(tx, PG_BEGIN_ST, NULL);
	if (r == 0)
		r = pg_defer(tx, PG_LOCK_ST, NULL);
	if (r == 0 && p->guessing)
		r = pg_chain_ask(tx);
	if (r < 0)
		pg_batch_abort(tx);
	return r < 0 ? -EAGAIN : 0;
}

/* The error of a batch that cannot continue. */
static int batch_fault(const struct pg *p)
{
	return p->lost ? -EAGAIN : p->guess_failed ? -ERESTART : p->spoiled ? -EIO : 0;
}

static int guessing_end(struct tx *tx, bool keep)
{
	struct pg *p = tx->pg;
	if (batch_fault(p) == 0 && !keep)
		p->guess_failed = p->changed;
	/* The server can work while the next write is prepared. A failure here shows with the next statement. */
	if (p->conn && p->sent_count > p->flushed + FLUSH_EACH) {
		PQflush(p->conn);
		p->flushed = p->sent_count;
	}
	return batch_fault(p);
}

int pg_write_begin(struct tx *tx)
{
	struct pg *p = tx->pg;
	p->chain_before = p->chain;
	p->changed_before = p->chain_changed;
	p->known_before = p->chain_known;
	p->changed = false;
	pg_ahead_clear(p);
	if (p->guessing)
		return batch_fault(p);
	int r = pg_defer(tx, PG_SAVEPOINT_ST, NULL);
	p->undoable = r == 0;
	return r < 0 ? -EAGAIN : 0;
}

int pg_write_end(struct tx *tx, bool keep)
{
	struct pg *p = tx->pg;
	if (p->guessing)
		return guessing_end(tx, keep);
	int r = batch_fault(p);
	/* Deferred statements must not fail later, when it would be unknown whose they were. */
	bool failed = r == 0 && keep && pg_settle(tx) < 0;
	p->undoable = false;
	if (failed)
		r = batch_fault(p);
	if (r == 0 && (failed || !keep)) {
		tx->broken = false;
		tx->undone = p->changed;
		p->chain = p->chain_before;
		memo_clear(tx);
		p->chain_known = p->known_before;
		p->chain_changed = p->changed_before;
		r = pg_defer(tx, PG_UNDO_ST, NULL);
	}
	if (r == 0)
		r = pg_defer(tx, PG_RELEASE_ST, NULL);
	return r < 0 ? r == -EIO ? r : -EAGAIN : failed;
}

/* What every batch writes at its end: chain, identities, announcement, mark. */
static int batch_seal(struct tx *tx)
{
	struct pg *p = tx->pg;
	struct pg_args mark = {0}, identity = {0}, chain = {0}, notice = {0};
	char text[EVENT_CHAIN_TEXT];
	int r = 0;
	if (p->chain_changed) {
		pg_z(&chain, META_CHAIN);
		pg_str(&chain, event_chain_format(&p->chain, text));
		r = pg_defer(tx, PG_META_PUT_ST, &chain);
	}
	pg_z(&identity, META_IDENTITY);
	if (r == 0 && tx->touched)
		r = pg_defer(tx, PG_META_INCREMENT_ST, &identity);
	pg_z(&notice, tx->touched ? tx->jobs ? "ij" : "i" : "j");
	if (r == 0 && (tx->touched || tx->jobs))
		r = pg_defer(tx, PG_NOTIFY_ST, &notice);
	pg_z(&mark, tx->store->node);
	pg_z(&mark, p->batch);
	return r < 0 ? r : pg_defer(tx, PG_MARK_PUT_ST, &mark);
}

/* The listener compares these with the totals, to find out what other processes have done. */
static void batch_kept(struct tx *tx)
{
	struct pg_store *shared = tx->store->pg;
	shared->data_version++;
	if (tx->touched)
		shared->touches++;
}

/* Whether the batch was committed. */
static int mark_look(struct tx *tx, bool *ret_there)
{
	struct pg *p = tx->pg;
	struct pg_args args = {0};
	PGresult *result = NULL;
	p->lost = p->spoiled = p->guessing = p->guess_failed = tx->broken = false;
	if (pg_connect(tx, clock_mono_us() + ATTEMPT_US) < 0)
		return -ENOTCONN;
	pg_z(&args, tx->store->node);
	int r = pg_defer(tx, PG_BEGIN_ST, NULL);
	if (r == 0)
		r = pg_defer(tx, PG_LOCK_ST, NULL);
	if (r == 0)
		r = pg_exec(tx, PG_MARK_GET_ST, &args, &result);
	bool there = r > 0 && str_is(pg_column(result, 0, 0), p->batch);
	if (r >= 0)
		PQclear(result);
	if (there) {
		r = pg_exec(tx, PG_MARK_TOUCH_ST, &args, NULL);
		if (r >= 0)
			r = pg_exec(tx, PG_COMMIT_ST, NULL, NULL);
	}
	if (!there || r < 0)
		pg_batch_abort(tx);
	if (r < 0)
		return -ENOTCONN;
	*ret_there = there;
	return 0;
}

/* The connection broke during a commit. */
static int commit_decide(struct tx *tx)
{
	int64_t until = clock_mono_us() + DECIDE_US;
	bool there = false;
	while (mark_look(tx, &there) < 0)
		if (clock_mono_us() > until) {
			log_error(
			        "store: it is not known whether a batch of writes was kept: the store is out of reach");
			return -ENOTCONN;
		}
	log_info("store: the connection was lost during a commit; the batch %s", there ? "was kept" : "is run again");
	if (!there)
		return -EAGAIN;
	batch_kept(tx);
	return 0;
}

int pg_batch_commit(struct tx *tx)
{
	struct pg *p = tx->pg;
	PGresult *result = NULL;
	/* Nothing can be committed before this point: this separates faults of deferred statements from faults of the
	 * commit. */
	if (pg_known_lists(tx) < 0 || pg_known_events(tx) < 0 || pg_settle(tx) < 0) {
		int fault = batch_fault(p);
		return fault ? fault : -EIO;
	}
	p->guessing = false;
	int r = batch_seal(tx);
	if (r == 0)
		r = pg_exec(tx, PG_COMMIT_ST, NULL, &result);
	if (p->lost) {
		pg_disconnect(p);
		return commit_decide(tx);
	}
	if (r < 0)
		return -EIO;
	/* COMMIT of a failed transaction rolls back, without an error. */
	bool kept = strcmp(PQcmdStatus(result), "COMMIT") == 0;
	PQclear(result);
	if (!kept)
		return -EIO;
	batch_kept(tx);
	return 0;
}

void pg_batch_abort(struct tx *tx)
{
	struct pg *p = tx->pg;
	bool gone = p->lost || !p->conn;
	if (p->guess_failed)
		p->careful = CAREFUL_BATCHES;
	p->guessing = p->guess_failed = tx->broken = false;
	pg_fresh_free(&p->known.fresh);
	/* Sent even when no transaction was begun: that is only a warning. */
	if (gone || pg_defer(tx, PG_ROLLBACK_ST, NULL) < 0 || pg_settle(tx) < 0)
		pg_disconnect(p);
	tx->broken = false;
	batch_forget(tx);
}

void pg_idle(struct tx *tx, bool busy)
{
}

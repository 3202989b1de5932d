/* How statements are sent to PostgreSQL, and what its errors mean.
 *
 * A connection is always in libpq's pipeline mode. Statements whose result nobody waits for (BEGIN, SAVEPOINT, an
 * event) are sent together with the next one that is waited for, so that a write costs one round trip per statement
 * whose result its handler needs. A read is the transaction between two syncs, at the session's isolation level: it
 * costs no statement of its own.
 *
 * Every wait has a limit. A reader whose connection breaks before it has read anything connects again; after that its
 * snapshot is lost, and the call gets -ENOTCONN. */
#include "store/pg/pg.h"

#include "base/clock.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>

#define READ_US 20000000
#define LISTEN_US 2000000

#define PG_STATEMENT_SQL(name, sql) sql,
static const char *const statement_sql[] = {PG_STATEMENTS(PG_STATEMENT_SQL)};
#undef PG_STATEMENT_SQL

/* The next result; NULL after the last result of a statement. False: the connection is broken. */
static bool result_next(struct pg *p, int64_t until_us, PGresult **ret_result)
{
	for (;;) {
		int left = PQflush(p->conn);
		if (left < 0)
			return false;
		if (!PQisBusy(p->conn)) {
			*ret_result = PQgetResult(p->conn);
			return true;
		}
		if (!pg_socket_wait(p->conn, (short)(POLLIN | (left ? POLLOUT : 0)), until_us)) {
			log_warn("store: no answer in time");
			return false;
		}
		if (!PQconsumeInput(p->conn))
			return false;
	}
}

#define DISK_FULL "53100"

/* -ENOTCONN means that another attempt on a new connection may succeed: the session has ended (FATAL, whatever the
 * reason), or the SQLSTATE is about the connection, a conflict of transactions, the server's resources (53), its
 * operator (57), a lock that took too long, a server that has become read-only, or prepared plans whose tables have
 * changed (0A000). */
static int error_of(struct tx *tx, const PGresult *r)
{
	static const char *const passing[] = {"08", "40", "53", "57", "55P03", "25006", "0A000", "26000"};
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
	if (!state)
		return -ENOTCONN;
	tx->full |= strcmp(state, DISK_FULL) == 0;
	if (tx->store && (strcmp(state, "XX001") == 0 || strcmp(state, "XX002") == 0))
		store_damaged(tx->store, "%s (%s)", PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY), state);
	bool passes = severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
	for (size_t i = 0; !passes && i < sizeof passing / sizeof *passing; i++)
		passes = strncmp(state, passing[i], strlen(passing[i])) == 0;
	if (passes)
		log_info("store: %s (%s)", PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY), state);
	else
		log_error("store: %s (%s)", PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY), state);
	return passes ? -ENOTCONN : -EIO;
}

static int rows_of(const PGresult *r)
{
	if (PQresultStatus(r) == PGRES_TUPLES_OK)
		return PQntuples(r);
	uint64_t n = 0;
	return str_to_u64(str_of(PQcmdTuples((PGresult *)(uintptr_t)r)), INT32_MAX, &n) ? (int)n : 0;
}

struct outcome {
	int error;     /* the first */
	bool deferred; /* it came from a statement that nobody waited for */
	unsigned count;
	PGresult *kept[PG_MANY_MAX];
};

static void outcome_clear(struct outcome *o)
{
	while (o->count > 0)
		PQclear(o->kept[--o->count]);
}

/* Reads one result of what was sent. False: the connection is broken. */
static bool take_one(struct tx *tx, short what, int64_t until_us, struct outcome *o)
{
	struct pg *p = tx->pg;
	PGresult *r = NULL, *end = NULL;
	if (!result_next(p, until_us, &r) || !r)
		return false;
	ExecStatusType s = PQresultStatus(r);
	if (what == SENT_SYNC) {
		PQclear(r);
		return s == PGRES_PIPELINE_SYNC;
	}
	bool ok = s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK;
	if (what >= 0)
		p->prepared[what] = ok ? 2 : 0;
	if (what == SENT_GUESS && p->guessing && ok && rows_of(r) == 0)
		p->guess_failed = true;
	if (what == SENT_CHAIN && s == PGRES_TUPLES_OK && !p->chain_known)
		p->chain_known = PQntuples(r) > 0 && event_chain_parse(pg_column(r, 0, 0), &p->chain);
	if (s == PGRES_FATAL_ERROR && !o->error) {
		o->error = error_of(tx, r);
		o->deferred = what != SENT_KEPT;
	}
	if (what == SENT_KEPT && ok)
		o->kept[o->count++] = r;
	else
		PQclear(r);
	/* A NULL follows the last result of a statement. */
	if (!result_next(p, until_us, &end))
		return false;
	bool fine = !end && PQstatus(p->conn) == CONNECTION_OK;
	PQclear(end);
	return fine;
}

/* Reads all outstanding results. -ENOTCONN: the connection broke, and is closed. */
static int drain(struct tx *tx, int64_t until_us, struct outcome *o)
{
	struct pg *p = tx->pg;
	tx->store->round_trips += p->role == PG_WRITER;
	for (unsigned i = 0; i < p->sent_count; i++)
		if (!take_one(tx, p->sent[i], until_us, o)) {
			outcome_clear(o);
			pg_disconnect(p);
			return -ENOTCONN;
		}
	p->sent_count = p->flushed = 0;
	return 0;
}

bool pg_sync_send(struct pg *p)
{
	if (p->sent_count && p->sent[p->sent_count - 1] == SENT_SYNC)
		return true;
	if (!PQpipelineSync(p->conn))
		return false;
	pg_sent_add(p, SENT_SYNC);
	return true;
}

/* `what`: SENT_COMMAND, SENT_KEPT, SENT_GUESS or SENT_CHAIN. */
static bool statement_send(struct pg *p, enum pg_statement st, const struct pg_args *args, enum pg_sent what)
{
	static const struct pg_args none;
	char name[16];
	snprintf(name, sizeof name, "s%d", (int)st);
	if (!args)
		args = &none;
	if (!p->prepared[st]) {
		if (!PQsendPrepare(p->conn, name, statement_sql[st], 0, NULL))
			return false;
		p->prepared[st] = 1;
		pg_sent_add(p, (short)st);
	}
	if (!PQsendQueryPrepared(p->conn, name, args->count, args->values, args->lengths, args->formats, 1))
		return false;
	pg_sent_add(p, (short)what);
	/* Every statement that only reads begins with SELECT. */
	p->changed |= statement_sql[st][0] != 'S';
	return true;
}

static int finish(struct outcome *o, PGresult **ret_result)
{
	int n = rows_of(o->kept[0]);
	if (ret_result)
		*ret_result = o->kept[0];
	else
		outcome_clear(o);
	return n;
}

/* Runs a reader's statement, once for each of the arguments, on an open connection. */
static int read_once(struct tx *tx, enum pg_statement st, const struct pg_args *const *args, unsigned count,
                     struct outcome *o)
{
	struct pg *p = tx->pg;
	/* Everything before the next sync is one implicit transaction, with the snapshot of its first statement. */
	bool sent = !p->ending || pg_sync_send(p);
	for (unsigned i = 0; sent && i < count; i++)
		sent = statement_send(p, st, args[i], SENT_KEPT);
	sent = sent && (tx->reading ? PQsendFlushRequest(p->conn) : pg_sync_send(p));
	p->ending = false;
	if (!sent) {
		pg_disconnect(p);
		return -ENOTCONN;
	}
	p->begun = tx->reading;
	int r = drain(tx, clock_mono_us() + READ_US, o);
	if (r == 0 && o->error) {
		/* The transaction has failed; only a new connection starts clean. */
		outcome_clear(o);
		pg_disconnect(p);
		return o->error;
	}
	return r;
}

static int read_all(struct tx *tx, enum pg_statement st, const struct pg_args *const *args, unsigned count,
                    struct outcome *ret_outcome)
{
	struct pg *p = tx->pg;
	int r = p->gone ? -ENOTCONN : 0;
	if (tx->waits)
		tx->waits(tx->waits_ctx);
	int64_t began = clock_mono_us();
	for (int attempt = 0; r == 0 && attempt < 2; attempt++) {
		*ret_outcome = (struct outcome){0};
		r = pg_connect(tx, clock_mono_us() + PG_CONNECT_US);
		if (r == 0)
			r = read_once(tx, st, args, count, ret_outcome);
		/* After a long wait without a result there is no second attempt. */
		if (r != -ENOTCONN || p->looked || attempt || clock_mono_us() - began > PG_CONNECT_US)
			break;
		r = 0;
	}
	if (r >= 0)
		p->looked = tx->reading;
	else if (tx->reading)
		p->gone = true;
	return r;
}

static int read_exec(struct tx *tx, enum pg_statement st, const struct pg_args *args, PGresult **ret_result)
{
	struct outcome o;
	int r = read_all(tx, st, &args, 1, &o);
	return r < 0 ? r : finish(&o, ret_result);
}

/* Records an error of a batch where the writer looks for it. */
static int write_failed(struct tx *tx, struct outcome *o, int r)
{
	struct pg *p = tx->pg;
	outcome_clear(o);
	tx->broken = true;
	if (r < 0 || o->error == -ENOTCONN) {
		p->lost = true;
		return -ENOTCONN;
	}
	if (p->guessing) {
		p->guess_failed = true;
		return -ENOTCONN;
	}
	p->spoiled |= o->deferred && !p->undoable;
	return o->error;
}

static int write_all(struct tx *tx, const enum pg_statement *st, const struct pg_args *const *args, unsigned count,
                     struct outcome *ret_outcome)
{
	struct pg *p = tx->pg;
	bool sent = true;
	*ret_outcome = (struct outcome){0};
	if (p->lost || !p->conn)
		return write_failed(tx, ret_outcome, -ENOTCONN);
	if (tx->broken && tx->in_write)
		return -EIO;
	int kept = pg_fresh_flush(tx);
	if (kept < 0)
		return kept;
	for (unsigned i = 0; sent && i < count; i++)
		sent = statement_send(p, st[i], args[i], SENT_KEPT);
	if (!sent || !pg_sync_send(p))
		return write_failed(tx, ret_outcome, -ENOTCONN);
	int r = drain(tx, clock_mono_us() + (p->role == PG_LISTENER ? LISTEN_US : READ_US), ret_outcome);
	return r < 0 || ret_outcome->error || p->guess_failed ? write_failed(tx, ret_outcome, r) : 0;
}

static int write_exec(struct tx *tx, enum pg_statement st, const struct pg_args *args, PGresult **ret_result)
{
	struct outcome o;
	int r = write_all(tx, &st, &args, 1, &o);
	return r < 0 ? r : finish(&o, ret_result);
}

static int finish_many(struct outcome *o, unsigned count, PGresult **ret_results)
{
	if (o->count != count) {
		outcome_clear(o);
		return -EIO;
	}
	memcpy(ret_results, o->kept, count * sizeof *ret_results);
	return 0;
}

int pg_write_many(struct tx *tx, const enum pg_statement *st, const struct pg_args *const *args, unsigned count,
                  PGresult **ret_results)
{
	struct outcome o;
	assert(count <= PG_MANY_MAX && tx->in_write);
	int r = write_all(tx, st, args, count, &o);
	return r < 0 ? r : finish_many(&o, count, ret_results);
}

int pg_exec_many(struct tx *tx, enum pg_statement st, const struct pg_args *const *args, unsigned count,
                 PGresult **ret_results)
{
	struct outcome o;
	enum pg_statement same[PG_MANY_MAX];
	assert(count <= PG_MANY_MAX);
	for (unsigned i = 0; i < count; i++)
		same[i] = st;
	int r = tx->pg->role == PG_READER ? read_all(tx, st, args, count, &o) : write_all(tx, same, args, count, &o);
	return r < 0 ? r : finish_many(&o, count, ret_results);
}

int pg_exec(struct tx *tx, enum pg_statement st, const struct pg_args *args, PGresult **ret_result)
{
	if (args && args->impossible) {
		if (tx->in_write)
			log_warn("store: a text that is not UTF-8 was asked for");
		if (ret_result)
			*ret_result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
		return 0;
	}
	return tx->pg->role == PG_READER ? read_exec(tx, st, args, ret_result) : write_exec(tx, st, args, ret_result);
}

static int send_later(struct tx *tx, enum pg_statement st, const struct pg_args *args, enum pg_sent what)
{
	struct pg *p = tx->pg;
	struct outcome o = {0};
	if (args && args->impossible)
		return -EINVAL;
	if (p->lost || !p->conn)
		return write_failed(tx, &o, -ENOTCONN);
	int kept = pg_fresh_flush(tx);
	if (kept < 0)
		return kept;
	/* Read results now and then, so that neither side has to buffer many. */
	if (p->sent_count > PG_SENT_MAX / 2 && pg_settle(tx) < 0)
		return -ENOTCONN;
	return statement_send(p, st, args, what) ? 0 : write_failed(tx, &o, -ENOTCONN);
}

int pg_defer(struct tx *tx, enum pg_statement st, const struct pg_args *args)
{
	return send_later(tx, st, args, SENT_COMMAND);
}

int pg_guess(struct tx *tx, enum pg_statement st, const struct pg_args *args)
{
	assert(tx->pg->guessing);
	return send_later(tx, st, args, SENT_GUESS);
}

int pg_chain_ask(struct tx *tx)
{
	struct pg_args args = {0};
	pg_z(&args, META_CHAIN);
	return send_later(tx, PG_META_GET_ST, &args, SENT_CHAIN);
}

int pg_settle(struct tx *tx)
{
	struct outcome o = {0};
	struct pg *p = tx->pg;
	int kept = p->conn && !p->lost ? pg_fresh_flush(tx) : 0;
	if (kept < 0)
		return kept;
	if (!p->conn || !p->sent_count)
		return p->lost ? -ENOTCONN : 0;
	int r = pg_sync_send(p) ? drain(tx, clock_mono_us() + READ_US, &o) : -ENOTCONN;
	if (r < 0 || o.error || p->guess_failed) {
		o.deferred = true;
		return write_failed(tx, &o, r);
	}
	return 0;
}

int pg_queue(struct tx *tx, const char *sql, const struct pg_args *args)
{
	static const struct pg_args none;
	struct pg *p = tx->pg;
	if (!args)
		args = &none;
	if (!p->conn || p->sent_count + 2 > PG_SENT_MAX ||
	    !PQsendQueryParams(p->conn, sql, args->count, NULL, args->values, args->lengths, args->formats, 1))
		return -ENOTCONN;
	pg_sent_add(p, SENT_COMMAND);
	return 0;
}

int pg_once(struct tx *tx, const char *sql, const struct pg_args *args, PGresult **ret_result)
{
	static const struct pg_args none;
	struct pg *p = tx->pg;
	struct outcome o = {0};
	if (!args)
		args = &none;
	if (!p->conn ||
	    !PQsendQueryParams(p->conn, sql, args->count, NULL, args->values, args->lengths, args->formats, 1))
		return -ENOTCONN;
	pg_sent_add(p, SENT_KEPT);
	int r = pg_sync_send(p) ? drain(tx, INT64_MAX / 2, &o) : -ENOTCONN;
	if (r == 0 && o.error)
		r = o.error;
	if (r < 0) {
		outcome_clear(&o);
		return r;
	}
	return finish(&o, ret_result);
}

/* Connections to PostgreSQL: how they are made, how statements are sent, and what errors mean.
 *
 * A connection is always in libpq's pipeline mode. Statements whose result nobody waits for (BEGIN, SAVEPOINT, an
 * event) are sent together with the next one that is waited for, so that a write costs one round trip per statement
 * whose result its handler needs. A read is the transaction between two syncs, at the session's isolation level: it
 * costs no statement of its own.
 *
 * Every wait has a limit. A reader whose connection breaks before it has read anything connects again; after that its
 * snapshot is lost, and the call gets -ENOTCONN. When no connection can be made, readers fail at once for a moment
 * instead of queueing for the same failure. */
#include "store/pg/pg.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#define CONNECT_US 2000000
#define READ_US 20000000
#define LISTEN_US 2000000
/* With several hosts, a host that does not answer is given up after this time. */
#define HOST_US 700000
#define PAUSE_US 50000
#define DOWN_US 300000
#define TELL_US 1000000

/* SENT_KEPT: its result is needed. */
enum pg_sent { SENT_CHAIN = -5, SENT_GUESS = -4, SENT_KEPT = -3, SENT_SYNC = -2, SENT_COMMAND = -1 };

#define PG_STATEMENT_SQL(name, sql) sql,
static const char *const statement_sql[] = {PG_STATEMENTS(PG_STATEMENT_SQL)};
#undef PG_STATEMENT_SQL

bool pg_utf8(struct str s)
{
	for (size_t i = 0; i < s.n;) {
		unsigned char c = (unsigned char)s.p[i];
		size_t more = c < 0x80                ? 0
		              : c >= 0xc2 && c < 0xe0 ? 1
		              : c >= 0xe0 && c < 0xf0 ? 2
		              : c >= 0xf0 && c < 0xf5 ? 3
		                                      : 9;
		if (c == 0 || more > s.n - i - 1)
			return false;
		uint32_t v = more ? c & (0x3fu >> more) : c;
		for (size_t k = 1; k <= more; k++) {
			unsigned char next = (unsigned char)s.p[i + k];
			if ((next & 0xc0) != 0x80)
				return false;
			v = v << 6 | (next & 0x3fu);
		}
		if ((more == 2 && (v < 0x800 || (v >= 0xd800 && v < 0xe000))) ||
		    (more == 3 && (v < 0x10000 || v > 0x10ffff)))
			return false;
		i += more + 1;
	}
	return true;
}

/* Texts are sent in binary form: with a length, and without a NUL. */
void pg_str(struct pg_args *a, struct str s)
{
	assert(a->count < PG_ARGS_MAX);
	if (!pg_utf8(s))
		a->impossible = true;
	a->values[a->count] = s.n ? s.p : "";
	a->lengths[a->count] = (int)s.n;
	a->formats[a->count++] = 1;
}

void pg_str_or_null(struct pg_args *a, struct str s)
{
	pg_str(a, s);
	if (!s.n)
		a->values[a->count - 1] = NULL;
}

void pg_z(struct pg_args *a, const char *z)
{
	pg_str(a, str_of(z));
}

/* As decimal text, which works for every numeric type. */
void pg_int(struct pg_args *a, int64_t v)
{
	assert(a->count < PG_ARGS_MAX);
	a->lengths[a->count] = snprintf(a->numbers[a->count], sizeof a->numbers[a->count], "%lld", (long long)v);
	a->values[a->count] = a->numbers[a->count];
	a->formats[a->count++] = 0;
}

void pg_bytes(struct pg_args *a, const void *p, size_t n)
{
	assert(a->count < PG_ARGS_MAX);
	a->values[a->count] = p;
	a->lengths[a->count] = (int)n;
	a->formats[a->count++] = 1;
}

struct tx *pg_tx_new(struct store *s, enum pg_role role)
{
	struct tx *tx = must_calloc(1, sizeof *tx);
	tx->ops = &postgres_ops;
	tx->store = s;
	tx->writes = role == PG_WRITER;
	tx->pg = must_calloc(1, sizeof *tx->pg);
	tx->pg->role = role;
	tx->pg->known.arena = role == PG_WRITER ? arena_new() : NULL;
	return tx;
}

void pg_tx_free(struct tx *tx)
{
	if (!tx)
		return;
	pg_disconnect(tx->pg);
	memo_free(tx);
	pg_ahead_free(tx->pg);
	pg_known_reset(tx->pg);
	if (tx->pg->known.arena)
		arena_free(tx->pg->known.arena);
	free(tx->pg);
	free(tx);
}

void pg_disconnect(struct pg *p)
{
	PQfinish(p->conn);
	p->conn = NULL;
	p->sent_count = p->flushed = 0;
	p->begun = p->ending = false;
	memset(p->prepared, 0, sizeof p->prepared);
}

/* Waits for the socket. False at the deadline. */
static bool socket_wait(PGconn *conn, short events, int64_t until_us)
{
	for (;;) {
		int64_t left = until_us - clock_mono_us();
		struct pollfd fd = {.fd = PQsocket(conn), .events = events};
		if (left <= 0 || fd.fd < 0)
			return false;
		int r = poll(&fd, 1, (int)(left / 1000) + 1);
		if (r > 0)
			return true;
		if (r < 0 && errno != EINTR)
			return false;
	}
}

/* The server must also notice when a node is cut off, even while it has data to send to it. */
#define KEEPALIVE                                                                                             \
	", set_config('tcp_keepalives_idle', '1', false), set_config('tcp_keepalives_interval', '1', false)," \
	" set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '4000', false)"

/* Settings of a session, by role; sent before its first statement. */
static const char *const setups[] = {
        [PG_READER] = "SELECT set_config('search_path', '" PG_SCHEMA "', false),"
                      " set_config('default_transaction_isolation', 'repeatable read', false),"
                      " set_config('default_transaction_read_only', 'on', false),"
                      " set_config('statement_timeout', '15s', false),"
                      " set_config('idle_in_transaction_session_timeout', '15s', false)" KEEPALIVE,
        /* A node that is cut off must not block the others: the server aborts its batch. */
        [PG_WRITER] = "SELECT set_config('search_path', '" PG_SCHEMA "', false),"
                      " set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off'"
                      "  THEN 'on' ELSE current_setting('synchronous_commit') END, false),"
                      " set_config('lock_timeout', '3s', false), set_config('statement_timeout', '60s', false),"
                      " set_config('idle_in_transaction_session_timeout', '2s', false)" KEEPALIVE,
        [PG_LISTENER] = "SELECT set_config('search_path', '" PG_SCHEMA "', false),"
                        " set_config('synchronous_commit', 'off', false), set_config('statement_timeout', '2s', "
                        "false)" KEEPALIVE,
        [PG_TOOL] = "SELECT set_config('search_path', '" PG_SCHEMA "', false)",
};

/* Errors come with results; other messages of the server do not belong on the operator's terminal. */
static void notice_drop(void *ctx, const PGresult *r)
{
}

static void sent_add(struct pg *p, short what)
{
	p->sent[p->sent_count++] = what;
}

static bool setup_send(struct pg *p)
{
	if (!PQsendQueryParams(p->conn, setups[p->role], 0, NULL, NULL, NULL, NULL, 1))
		return false;
	sent_add(p, SENT_COMMAND);
	if (!PQpipelineSync(p->conn))
		return false;
	sent_add(p, SENT_SYNC);
	return true;
}

/* The hosts of a URL, as comma-separated lists like libpq's; NULL: not given. */
struct hosts {
	PQconninfoOption *options; /* owns the texts */
	const char *names, *addresses, *ports;
	unsigned count;
};

/* False when the text is not a URL. The message quotes nothing of it: a misplaced part may be the password. */
static bool hosts_read(const char *url, struct hosts *ret_hosts)
{
	struct hosts h = {.options = PQconninfoParse(url, NULL), .count = 1};
	for (const PQconninfoOption *o = h.options; o && o->keyword; o++) {
		const char **to = strcmp(o->keyword, "host") == 0       ? &h.names
		                  : strcmp(o->keyword, "hostaddr") == 0 ? &h.addresses
		                  : strcmp(o->keyword, "port") == 0     ? &h.ports
		                                                        : NULL;
		if (to)
			*to = o->val;
	}
	const char *list = h.addresses ? h.addresses : h.names;
	for (const char *c = list ? list : ""; *c; c++)
		h.count += *c == ',';
	if (!h.options || (h.names && strchr(h.names, '@')) ||
	    (h.ports && h.ports[strspn(h.ports, "0123456789,")] != '\0')) {
		log_error("store: the URL is not postgresql://USER:PASSWORD@HOST:PORT/DATABASE; special characters in "
		          "the "
		          "password must be percent-encoded");
		PQconninfoFree(h.options);
		return false;
	}
	*ret_hosts = h;
	return true;
}

/* One entry of a list, or its only one. */
static const char *list_pick(const char *list, unsigned number, char *text, size_t size)
{
	if (!list || !strchr(list, ','))
		return list;
	for (; number; number--)
		list = strchr(list, ',') ? strchr(list, ',') + 1 : "";
	snprintf(text, size, "%.*s", (int)strcspn(list, ","), list);
	return text;
}

/* One attempt, with one of the hosts: libpq would go to the next host only when one refuses, and wait long for one that
 * does not answer. Settings in the URL override those before it. */
static bool connect_once(struct pg *p, const char *url, const struct hosts *h, unsigned number, int64_t until_us)
{
	char name[256], address[64], port[8];
	const char *const names[] = {"connect_timeout",
	                             "keepalives_idle",
	                             "keepalives_interval",
	                             "keepalives_count",
	                             "tcp_user_timeout",
	                             "fallback_application_name",
	                             "target_session_attrs",
	                             "dbname",
	                             "client_encoding",
	                             "host",
	                             "hostaddr",
	                             "port",
	                             NULL};
	const char *const values[] = {"2",
	                              "1",
	                              "1",
	                              "2",
	                              "3000",
	                              "steward",
	                              "read-write",
	                              url,
	                              "UTF8",
	                              list_pick(h->names, number, name, sizeof name),
	                              list_pick(h->addresses, number, address, sizeof address),
	                              list_pick(h->ports, number, port, sizeof port),
	                              NULL};
	if (h->count > 1 && until_us > clock_mono_us() + HOST_US)
		until_us = clock_mono_us() + HOST_US;
	p->conn = PQconnectStartParams(names, values, 1);
	PostgresPollingStatusType s =
	        p->conn && PQstatus(p->conn) != CONNECTION_BAD ? PGRES_POLLING_WRITING : PGRES_POLLING_FAILED;
	while (s == PGRES_POLLING_READING || s == PGRES_POLLING_WRITING) {
		if (!socket_wait(p->conn, s == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_us))
			break;
		s = PQconnectPoll(p->conn);
	}
	if (s != PGRES_POLLING_OK)
		return false;
	PQsetNoticeReceiver(p->conn, notice_drop, NULL);
	return PQsetnonblocking(p->conn, 1) == 0 && PQenterPipelineMode(p->conn) && setup_send(p);
}

static void pause_us(int64_t us)
{
	struct timespec t = {.tv_nsec = us * 1000};
	nanosleep(&t, NULL);
}

static int hosts_try(struct tx *tx, const struct hosts *hosts, int64_t until_us)
{
	struct pg *p = tx->pg;
	struct pg_store *shared = tx->store->pg;
	bool patient = p->role != PG_READER;
	char why[256] = "no answer in time";
	do {
		unsigned host = shared->host;
		if (connect_once(p, tx->store->path, hosts, host % hosts->count, until_us)) {
			shared->down_until_us = 0;
			return 0;
		}
		/* Other threads start with the next host too, unless one of them has moved on already. */
		atomic_compare_exchange_strong(&shared->host, &host, host + 1);
		/* The last attempt is cut short by the deadline; the message of an earlier attempt says more. */
		struct str message = str_trim(str_of(p->conn ? PQerrorMessage(p->conn) : "no memory"));
		if (message.n && message.p[message.n - 1] != ':')
			snprintf(why, sizeof why, "%.*s", STR_ARG(message));
		int64_t now = clock_mono_us();
		bool more = now + PAUSE_US < until_us;
		if (!more && now > shared->down_logged_us + TELL_US) {
			shared->down_logged_us = now;
			log_warn("store: cannot connect: %s", why);
		}
		pg_disconnect(p);
		if (!more)
			break;
		pause_us(PAUSE_US);
	} while (patient || clock_mono_us() >= shared->down_until_us);
	shared->down_until_us = clock_mono_us() + DOWN_US;
	return -ENOTCONN;
}

int pg_connect(struct tx *tx, int64_t until_us)
{
	struct pg *p = tx->pg;
	struct hosts hosts;
	if (p->conn && PQstatus(p->conn) == CONNECTION_OK)
		return 0;
	pg_disconnect(p);
	if (p->role == PG_READER && clock_mono_us() < tx->store->pg->down_until_us)
		return -ENOTCONN;
	if (!hosts_read(tx->store->path, &hosts))
		return -EINVAL;
	int r = hosts_try(tx, &hosts, until_us);
	PQconninfoFree(hosts.options);
	return r;
}

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
		if (!socket_wait(p->conn, (short)(POLLIN | (left ? POLLOUT : 0)), until_us)) {
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

static bool sync_send(struct pg *p)
{
	if (p->sent_count && p->sent[p->sent_count - 1] == SENT_SYNC)
		return true;
	if (!PQpipelineSync(p->conn))
		return false;
	sent_add(p, SENT_SYNC);
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
		sent_add(p, (short)st);
	}
	if (!PQsendQueryPrepared(p->conn, name, args->count, args->values, args->lengths, args->formats, 1))
		return false;
	sent_add(p, (short)what);
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
	bool sent = !p->ending || sync_send(p);
	for (unsigned i = 0; sent && i < count; i++)
		sent = statement_send(p, st, args[i], SENT_KEPT);
	sent = sent && (tx->reading ? PQsendFlushRequest(p->conn) : sync_send(p));
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
		r = pg_connect(tx, clock_mono_us() + CONNECT_US);
		if (r == 0)
			r = read_once(tx, st, args, count, ret_outcome);
		/* After a long wait without a result there is no second attempt. */
		if (r != -ENOTCONN || p->looked || attempt || clock_mono_us() - began > CONNECT_US)
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
	if (!sent || !sync_send(p))
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
	int r = sync_send(p) ? drain(tx, clock_mono_us() + READ_US, &o) : -ENOTCONN;
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
	sent_add(p, SENT_COMMAND);
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
	sent_add(p, SENT_KEPT);
	int r = sync_send(p) ? drain(tx, INT64_MAX / 2, &o) : -ENOTCONN;
	if (r == 0 && o.error)
		r = o.error;
	if (r < 0) {
		outcome_clear(&o);
		return r;
	}
	return finish(&o, ret_result);
}

/* The table of functions. */

static int pg_open(struct store *s, const struct store_options *o, struct tx **ret_conn)
{
	struct id made = id_new();
	s->path = must_strdup(o->url);
	s->pg = must_calloc(1, sizeof *s->pg);
	snprintf(s->node, sizeof s->node, "%s", o->node ? o->node : made.z);
	struct tx *tx = pg_tx_new(s, PG_WRITER);
	int r = pg_connect(tx, clock_mono_us() + (int64_t)CONNECT_US * 2);
	if (r == 0)
		r = pg_migrations_run(tx);
	if (r == 0)
		r = pg_exec(tx, PG_MARKS_FORGET_ST, NULL, NULL);
	if (r >= 0)
		r = pg_listener_start(s);
	if (r < 0) {
		fprintf(stderr, "steward: the PostgreSQL store cannot be used: %s\n",
		        r == -ENOTCONN ? "it cannot be reached" : strerror(-r));
		pg_tx_free(tx);
		return r;
	}
	*ret_conn = tx;
	return 0;
}

static void pg_close(struct store *s)
{
	if (s->pg)
		pg_listener_stop(s);
	free(s->pg);
}

static int pg_reader(struct store *s, struct tx **ret_tx)
{
	*ret_tx = pg_tx_new(s, PG_READER);
	return 0;
}

static void pg_begin_read(struct tx *tx)
{
	struct pg *p = tx->pg;
	tx->generation = store_identity_generation(tx->store);
	tx->lingers = true;
	p->looked = p->gone = false;
}

/* Nobody waits for the end: the server gets it together with the next statement, which wakes it once instead of twice,
 * or when the reader rests. */
static void pg_end_read(struct tx *tx)
{
	struct pg *p = tx->pg;
	/* An earlier read may still have to be ended, when this one has read nothing. */
	p->ending |= p->begun && p->conn;
	tx->lingers = p->ending;
	p->gone = p->looked = p->begun = false;
}

static void pg_rest(struct tx *tx)
{
	struct pg *p = tx->pg;
	if (p->ending && p->conn && !sync_send(p))
		pg_disconnect(p);
	tx->lingers = p->ending = false;
}

static uint64_t pg_data_version(struct tx *reader)
{
	return reader->store->pg->data_version;
}

#define STORE_MEMBER(name, parameters, arguments) .name = pg_##name,
const struct store_ops postgres_ops = {.remote = true,
                                       .open = pg_open,
                                       .close = pg_close,
                                       .reader = pg_reader,
                                       .conn_close = pg_tx_free,
                                       .begin_read = pg_begin_read,
                                       .end_read = pg_end_read,
                                       .rest = pg_rest,
                                       .data_version = pg_data_version,
                                       .get_many = pg_get_many,
                                       .read_ahead = pg_read_ahead,
                                       .batch_begin = pg_batch_begin,
                                       .write_begin = pg_write_begin,
                                       .write_end = pg_write_end,
                                       .batch_commit = pg_batch_commit,
                                       .batch_abort = pg_batch_abort,
                                       .idle = pg_idle,
                                       .watch = pg_watch,
                                       STORE_OPS(STORE_MEMBER)};
#undef STORE_MEMBER

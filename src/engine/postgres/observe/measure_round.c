/* One server's way through a round: each answer decides what it is asked next, and one poll waits for the answers of
 * all.
 *
 *   connect - prepare, once for each question - ask - operations (where its module counts them)
 *     - list - tables (where its module has their times) - for each database that is due: enter - inside - names
 *
 * What comes after `operations` is asked once a minute. A look into a database has a connection of its own, but for
 * "postgres", into which the kept one looks. What fails on the way ends the look, or, before the figures of the server
 * itself are there, the round of that server. */
#include "engine/postgres/observe/measure_round.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/observe/activity.h"
#include "engine/postgres/observe/collections.h"
#include "engine/postgres/observe/measure_host.h"
#include "engine/postgres/observe/measure_sql.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>

#define LOOK_MS 3500       /* that a look may take: none begins with less time left */
#define KEPT_RELATIONS 300 /* that the kept session may learn of: some megabytes */
#define LIST_SLOW_US 1000000LL
/* The server's log need not tell of each look when it ends, too. What is read to measure is not measured: without
 * track_counts the session's scans, rows and blocks are in no statistics. */
#define OPTIONS                                                                                      \
	" -c statement_timeout=3s -c lock_timeout=1s -c idle_in_transaction_session_timeout=10s -c " \
	"log_disconnections=off -c track_counts=off"

static void server_fail(struct pg_measured *s)
{
	log_debug("engine: %s: no sample: %s", s->node, s->conn ? PQerrorMessage(s->conn) : "no connection");
	pg_measured_disconnect(s);
}

/* What asks the database that is being looked into. */
static PGconn *inside_conn(const struct pg_measured *s)
{
	return s->other ? s->other : s->conn;
}

static void sent(struct pg_measured *s, int was_sent, enum pg_round_step step)
{
	if (!was_sent) {
		server_fail(s);
		return;
	}
	s->step = step;
	s->events = POLLIN;
}

/* Planning takes as long as the rest, or longer: these are prepared once for each kept connection. */
static const struct {
	const char *name, *sql, *sql_17;
} questions[] = {{"sample", pg_ask, pg_ask_17},
                 {"position", pg_ask_position, pg_ask_position},
                 {"list", pg_ask_databases, pg_ask_databases},
                 {"inside", pg_ask_inside, pg_ask_inside}};

static void question_prepare(struct pg_measured *s)
{
	size_t i = s->prepared;
	const char *sql = PQserverVersion(s->conn) >= 170000 ? questions[i].sql_17 : questions[i].sql;
	sent(s, PQsendPrepare(s->conn, questions[i].name, sql, 0, NULL), STEP_PREPARE);
}

static void question_ask(struct pg_measured *s, const char *name, enum pg_round_step step)
{
	sent(s, PQsendQueryPrepared(s->conn, name, 0, NULL, NULL, NULL, 0), step);
}

static void connect_begin(struct pg_measured *s)
{
	s->conn = pg_sql_begin(s->port, s->run, PG_SUPER, "postgres", OPTIONS);
	if (!s->conn || PQstatus(s->conn) == CONNECTION_BAD) {
		server_fail(s);
		return;
	}
	s->prepared = 0;
	s->step = STEP_CONNECT;
	s->events = POLLOUT;
}

/* Tables that are wanted by name. */
static void tables_choose(struct pg_measured *s, const struct engine_sampling *to)
{
	size_t count;
	const char *const *names = to->pinned(to->ctx, s->cluster_id, &count);
	if (!names)
		return;
	pg_tables_pin(s->tables, names, count);
	if (pg_tables_is_new(s->tables)) {
		names = to->kept(to->ctx, s->cluster_id, s->node, &count);
		pg_tables_keep(s->tables, names, count);
	}
}

void pg_round_begin(struct pg_measured *s, const struct engine_sampling *to)
{
	if (to->whole)
		tables_choose(s, to);
	for (size_t i = 0; i < PROCESS_INPUTS; i++)
		s->inputs[i] = (double)NAN;
	s->answered = s->databases.listed = false;
	s->looks_end = pg_mono_ms() + PG_ROUND_WHOLE_MS - LOOK_MS;
	s->step = STEP_IDLE;
	if (s->conn && PQstatus(s->conn) == CONNECTION_OK)
		question_ask(s, "sample", STEP_ASK);
	if (s->step == STEP_IDLE) {
		pg_measured_disconnect(s);
		connect_begin(s);
	}
}

/* 1: done; 0: not yet; negative: it failed. */
static int connect_go_on(PGconn *conn, short *ret_events)
{
	switch (PQconnectPoll(conn)) {
	case PGRES_POLLING_OK: PQsetErrorVerbosity(conn, PQERRORS_TERSE); return 1;
	case PGRES_POLLING_READING: *ret_events = POLLIN; return 0;
	case PGRES_POLLING_FAILED: return -EIO;
	default: *ret_events = POLLOUT; return 0;
	}
}

/* The rows, once they are all there: the caller clears them. 0: not yet; -EPROTO: refused, the connection is good. */
static int rows_take(struct pg_measured *s, PGconn *conn, PGresult **ret_rows)
{
	if (!PQconsumeInput(conn))
		return -EIO;
	while (!PQisBusy(conn)) {
		PGresult *next = PQgetResult(conn), *rows = s->rows;
		if (next) {
			PQclear(rows);
			s->rows = next;
			continue;
		}
		s->rows = NULL;
		ExecStatusType status = PQresultStatus(rows);
		if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
			*ret_rows = rows;
			return 1;
		}
		log_debug("engine: %s: no sample: %s", s->node, rows ? PQresultErrorMessage(rows) : "no answer");
		PQclear(rows);
		return PQstatus(conn) == CONNECTION_OK ? -EPROTO : -EIO;
	}
	return 0;
}

static uint64_t hash_of(const char *text, pid_t pid)
{
	uint64_t h = 0xcbf29ce484222325u ^ (uint64_t)pid;
	for (const char *p = text; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	return h;
}

static bool process_take(struct pg_measures *m, struct pg_measured *s, const PGresult *rows, bool whole)
{
	if (PQntuples(rows) != 1 || PQnfields(rows) != (int)PG_ASKED + 5)
		return false;
	for (size_t i = 0; i < PG_ASKED; i++)
		s->inputs[pg_asked[i]] = pg_number_at(rows, 0, (int)i);
	s->epoch = hash_of(pg_value(rows, 0, (int)PG_ASKED), s->pid);
	s->leads = *pg_value(rows, 0, (int)PG_ASKED + 1) == 't';
	s->counts = *pg_value(rows, 0, (int)PG_ASKED + 2) == 't';
	s->epoch ^= s->counts;
	s->asked_us = clock_mono_us();
	s->answered = true;
	pg_activities_note(m->activities, s->cluster_id, s->node, clock_now_ms(), pg_value(rows, 0, (int)PG_ASKED + 3),
	                   pg_value(rows, 0, (int)PG_ASKED + 4));
	struct pg_positions *set = s->leads && s->followed ? pg_sets_find(&m->sets, s->cluster_id, s->set) : NULL;
	if (set && !isnan(s->inputs[PROCESS_POSITION]))
		pg_positions_note(set, s->inputs[PROCESS_POSITION], s->asked_us);
	pg_measure_processes(s->pid, whole, &s->floor, s->inputs);
	s->inputs[PROCESS_RESTARTS] = pg_measured_restarts(s);
	if (whole)
		s->inputs[PROCESS_WINDOW_MS] = pg_measure_window(s->data);
	return true;
}

/* Once it is known how many relations it has. */
static bool inside_is_kept(const struct pg_database *d)
{
	const double *in = d->inputs;
	return strcmp(d->name, "postgres") == 0 && d->known &&
	       in[DATABASE_TABLES] + in[DATABASE_INDEXES] + in[DATABASE_VIEWS] <= KEPT_RELATIONS;
}

/* The next database to be looked into, as long as there is time for it. */
static void inside_begin(struct pg_measured *s)
{
	for (;;) {
		PQfinish(s->other);
		s->other = NULL;
		s->step = STEP_IDLE;
		s->next = pg_databases_choose(&s->databases);
		if (!s->next || pg_mono_ms() > s->looks_end)
			return;
		if (inside_is_kept(s->next)) {
			question_ask(s, "inside", STEP_INSIDE);
			return;
		}
		s->other = pg_sql_begin(s->port, s->run, PG_SUPER, s->next->name, OPTIONS);
		if (s->other && PQstatus(s->other) != CONNECTION_BAD)
			break;
		pg_database_fail(s->next);
	}
	s->step = STEP_ENTER;
	s->events = POLLOUT;
}

/* A kept session that was asked in vain, or that has learnt too much, ends; the next sample begins another. */
static void inside_end(struct pg_measured *s, bool good)
{
	if (s->other || good)
		inside_begin(s);
	else
		pg_measured_disconnect(s);
}

/* The look under way has failed. */
static void inside_fail(struct pg_measured *s)
{
	const PGconn *conn = inside_conn(s);
	log_debug("engine: %s: no look into %s: %s", s->node, s->next->name,
	          conn ? PQerrorMessage(conn) : "no connection");
	pg_database_fail(s->next);
	inside_end(s, false);
}

static void step_connect(struct pg_measured *s)
{
	int r = connect_go_on(s->conn, &s->events);
	if (r < 0)
		server_fail(s);
	else if (r == 1)
		question_prepare(s);
}

static void step_prepare(struct pg_measured *s)
{
	PGresult *rows;
	int r = rows_take(s, s->conn, &rows);
	if (r == 1)
		PQclear(rows);
	if (r < 0)
		server_fail(s);
	else if (r == 1 && ++s->prepared < sizeof questions / sizeof *questions)
		question_prepare(s);
	else if (r == 1)
		question_ask(s, "sample", STEP_ASK);
}

static void step_enter(struct pg_measured *s)
{
	int r = connect_go_on(s->other, &s->events);
	if (r < 0 || (r == 1 && !PQsendQuery(s->other, pg_ask_inside))) {
		inside_fail(s);
	} else if (r == 1) {
		s->step = STEP_INSIDE;
		s->events = POLLIN;
	}
}

/* Without a list of this round nothing is looked into, but for the names of tables. */
static void tables_ask(struct pg_measured *s)
{
	for (size_t i = 0; i < s->databases.count; i++)
		s->databases.list[i].wanted &= s->databases.listed;
	if (s->databases.counts && clock_mono_us() >= s->tables_from_us)
		sent(s, PQsendQuery(s->conn, pg_tables_ask), STEP_TABLES);
	else
		inside_begin(s);
}

static void list_ask(struct pg_measured *s)
{
	s->list_us = clock_mono_us();
	question_ask(s, "list", STEP_LIST);
}

/* What comes after the figures of the server itself. */
static void rest_ask(struct pg_measured *s, bool whole)
{
	if (whole && clock_mono_us() >= s->list_from_us)
		list_ask(s);
	else if (whole)
		tables_ask(s);
	else
		s->step = STEP_IDLE;
}

/* What pg_stat_database has in their place counts something else: these are gaps when they are not told. */
static void step_operations(struct pg_measured *s, bool whole)
{
	PGresult *rows;
	int r = rows_take(s, s->conn, &rows);
	if (r == 0)
		return;
	bool good = r == 1 && PQntuples(rows) == 1 && PQnfields(rows) == PG_OPERATIONS;
	for (int i = 0; i < PG_OPERATIONS; i++)
		s->inputs[pg_operations[i]] = good ? pg_number_at(rows, 0, i) : (double)NAN;
	if (r == 1)
		PQclear(rows);
	if (r == -EIO)
		server_fail(s);
	else
		rest_ask(s, whole);
}

static void step_ask(struct pg_measures *m, struct pg_measured *s, bool whole)
{
	PGresult *rows;
	int r = rows_take(s, s->conn, &rows);
	if (r == 0)
		return;
	bool good = r == 1 && process_take(m, s, rows, whole);
	if (r == 1)
		PQclear(rows);
	if (!good)
		server_fail(s);
	else if (s->counts)
		sent(s, PQsendQuery(s->conn, pg_ask_operations), STEP_OPERATIONS);
	else
		rest_ask(s, whole);
}

/* A primary that is none any more tells nothing. */
static void step_position(struct pg_measured *s, struct pg_measures *m)
{
	PGresult *rows;
	int r = rows_take(s, s->conn, &rows);
	if (r == 0)
		return;
	s->step = STEP_IDLE;
	if (r < 0) {
		server_fail(s);
		return;
	}
	struct pg_positions *set = pg_sets_find(&m->sets, s->cluster_id, s->set);
	double at = PQntuples(rows) == 1 ? pg_number_at(rows, 0, 0) : (double)NAN;
	pg_last_note(&s->last, rows, 1);
	if (set && !isnan(at))
		pg_positions_note(set, at, clock_mono_us());
	PQclear(rows);
}

/* Sizes take long where there are many files: not each minute, when it takes too long. */
static void list_fail(struct pg_measured *s)
{
	int64_t now = clock_mono_us();
	if (now - s->list_us >= LIST_SLOW_US)
		s->list_from_us = now + PG_FAILED_WAIT_US;
}

static void step_list(struct pg_measured *s)
{
	PGresult *rows;
	int r = rows_take(s, s->conn, &rows);
	if (r == 0)
		return;
	if (r < 0) {
		list_fail(s);
	} else {
		pg_databases_take(&s->databases, rows);
		PQclear(rows);
	}
	tables_ask(s);
}

/* A database whose tables have no names yet is looked into at once, unless that failed lately. */
static void step_tables(struct pg_measured *s)
{
	PGresult *rows;
	int r = rows_take(s, s->conn, &rows);
	if (r == 0)
		return;
	/* A server that was started without the module says so. */
	if (r < 0)
		s->tables_from_us = clock_mono_us() + PG_FAILED_WAIT_US;
	else
		pg_tables_take(s->tables, rows, clock_mono_us());
	for (size_t i = 0; r == 1 && i < s->databases.count; i++) {
		struct pg_database *d = &s->databases.list[i];
		d->wanted |= (d->known || !d->looked_us) && pg_tables_want(s->tables, d->oid, d->name);
	}
	inside_begin(s);
}

static void step_inside(struct pg_measured *s)
{
	PGresult *rows;
	struct pg_database *d = s->next;
	int r = rows_take(s, inside_conn(s), &rows);
	if (r == 0)
		return;
	if (r < 0) {
		inside_fail(s);
		return;
	}
	pg_database_take(d, rows);
	PQclear(rows);
	if (!s->other && !inside_is_kept(d))
		inside_end(s, false);
	else if (s->databases.counts && pg_tables_send(s->tables, d->oid, d->name, inside_conn(s)))
		sent(s, 1, STEP_NAMES);
	else
		inside_begin(s);
}

/* What was seen inside stays when the names are not told. */
static void step_names(struct pg_measured *s)
{
	PGresult *rows;
	const struct pg_database *d = s->next;
	int r = rows_take(s, inside_conn(s), &rows);
	if (r == 0)
		return;
	if (r == 1) {
		pg_tables_names(s->tables, d->oid, d->name, rows);
		PQclear(rows);
	}
	inside_end(s, r == 1);
}

static void server_step(struct pg_measures *m, struct pg_measured *s, bool whole)
{
	switch (s->step) {
	case STEP_CONNECT: step_connect(s); break;
	case STEP_PREPARE: step_prepare(s); break;
	case STEP_ASK: step_ask(m, s, whole); break;
	case STEP_OPERATIONS: step_operations(s, whole); break;
	case STEP_POSITION: step_position(s, m); break;
	case STEP_LIST: step_list(s); break;
	case STEP_TABLES: step_tables(s); break;
	case STEP_ENTER: step_enter(s); break;
	case STEP_INSIDE: step_inside(s); break;
	case STEP_NAMES: step_names(s); break;
	case STEP_IDLE: break;
	}
}

void pg_round_wait(struct pg_measures *m, bool whole, int64_t most_ms)
{
	struct pollfd *fds = must_calloc(m->count + 1, sizeof *fds);
	struct pg_measured **of = must_calloc(m->count + 1, sizeof(struct pg_measured *));
	int64_t end = pg_mono_ms() + most_ms, left;
	for (;;) {
		nfds_t count = 0;
		for (size_t i = 0; i < m->count; i++) {
			struct pg_measured *s = m->list[i];
			if (s->step == STEP_IDLE)
				continue;
			fds[count] = (struct pollfd){PQsocket(inside_conn(s)), s->events, 0};
			of[count++] = s;
		}
		left = end - pg_mono_ms();
		if (!count || left <= 0)
			break;
		if (poll(fds, count, (int)left) < 0 && errno != EINTR)
			break;
		for (nfds_t i = 0; i < count; i++)
			if (fds[i].revents)
				server_step(m, of[i], whole);
	}
	free(fds);
	free(of);
}

void pg_round_late(struct pg_measured *s)
{
	for (size_t i = 0; s->step == STEP_OPERATIONS && i < PG_OPERATIONS; i++)
		s->inputs[pg_operations[i]] = (double)NAN;
	if (s->step == STEP_LIST)
		list_fail(s);
	if (s->step == STEP_ENTER || s->step == STEP_INSIDE)
		pg_database_fail(s->next);
	if (!s->other) {
		pg_measured_disconnect(s);
		return;
	}
	/* The kept session waits for nothing. */
	PQfinish(s->other);
	PQclear(s->rows);
	s->other = NULL;
	s->rows = NULL;
	s->step = STEP_IDLE;
}

void pg_round_track(struct pg_measured *s)
{
	if (s->counts)
		sent(s, PQsendQuery(s->conn, pg_ask_last), STEP_POSITION);
	else
		question_ask(s, "position", STEP_POSITION);
}

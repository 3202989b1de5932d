/* Samples of all servers of this host. Each server has a connection that is kept for it; all are asked at once, and one
 * poll waits for their answers, so that a hung server delays nobody and is left out when the time is over.
 *
 * Once a minute the databases are looked into as well; measure_databases.c says which. Such a look has a connection of
 * its own, which ends with it: one that stayed would be in the way of DROP DATABASE. The kept connection, which is to
 * "postgres", looks into that one itself: a session that begins costs many times what it asks. But a session keeps what
 * it has learnt of each table, so that this is not for one with many. Those for which no time is left come next minute.
 * The times of tables come from the node module through the kept connection, their names with such a look:
 * collections.c. */
#include "engine/postgres/observe/measure.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/observe/activity.h"
#include "engine/postgres/observe/collections.h"
#include "engine/postgres/observe/measure_databases.h"
#include "engine/postgres/observe/measure_host.h"
#include "engine/postgres/observe/measure_lag.h"
#include "engine/postgres/observe/measure_last.h"
#include "engine/postgres/observe/measure_sql.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>

#define TICK_MS 4000
#define WHOLE_MS 8000
#define TRACK_MS 500       /* for the question of each second */
#define LOOK_MS 3500       /* that a look may take: none begins with less time left */
#define KEPT_RELATIONS 300 /* that the kept session may learn of: some megabytes */
#define LIST_SLOW_US 1000000LL
#define RESTARTS_KEPT 64
#define HOUR_US 3600000000LL
/* The server's log need not tell of each look when it ends, too. What is read to measure is not measured: without
 * track_counts the session's scans, rows and blocks are in no statistics. */
#define OPTIONS                                                                                      \
	" -c statement_timeout=3s -c lock_timeout=1s -c idle_in_transaction_session_timeout=10s -c " \
	"log_disconnections=off -c track_counts=off"

/* --- what is known of each server between two samples */

enum step {
	STEP_IDLE,
	STEP_CONNECT,
	STEP_PREPARE,
	STEP_ASK,
	STEP_OPERATIONS,
	STEP_POSITION,
	STEP_LIST,
	STEP_TABLES,
	STEP_ENTER,
	STEP_INSIDE,
	STEP_NAMES
};

struct server {
	char cluster_id[25], node[64], run[PG_PATH], data[PG_PATH];
	unsigned port, set;
	pid_t pid, seen_pid;
	bool there; /* in this round */
	uint64_t disk_used, disk_limit;
	double allowance;     /* cores */
	bool followed;        /* it is the primary of a set that has standbys, as far as the engine knows */
	PGconn *conn, *other; /* kept; and to one of its databases */
	PGresult *rows;       /* of an answer that is not complete */
	size_t prepared;      /* of the kept connection's questions */
	enum step step;
	short events;
	int64_t asked_us;
	uint64_t epoch;
	bool answered;
	double inputs[PROCESS_INPUTS];
	struct pg_floor floor;
	int64_t restarts[RESTARTS_KEPT];
	size_t restart_count;
	struct pg_databases databases;
	struct pg_database *next;        /* that is being looked into */
	int64_t looks_end, list_from_us; /* no look begins after that; no list is asked for before that */
	int64_t list_us;                 /* when it was asked for */
	struct pg_tables *tables;
	bool leads;  /* it is no standby */
	bool counts; /* its module counts what clients do */
	struct pg_last last;
	int64_t tables_from_us; /* times of tables are not asked for before that */
};

struct pg_measures {
	struct server **list;
	size_t count, room;
	struct pg_sets sets;
	struct pg_activities *activities; /* the engine's */
};

static void server_disconnect(struct server *s)
{
	PQfinish(s->conn);
	PQfinish(s->other);
	PQclear(s->rows);
	s->conn = s->other = NULL;
	s->rows = NULL;
	s->step = STEP_IDLE;
	s->tables_from_us = 0;
}

static void server_free(struct server *s)
{
	server_disconnect(s);
	pg_tables_free(s->tables);
	pg_databases_free(&s->databases);
	free(s);
}

void pg_measures_free(struct engine *e)
{
	struct pg_measures *m = e->measures;
	for (size_t i = 0; m && i < m->count; i++)
		server_free(m->list[i]);
	if (m) {
		free(m->list);
		pg_sets_free(&m->sets);
	}
	free(m);
	e->measures = NULL;
}

/* --- who is to be asked */

static struct server *server_ensure(struct pg_measures *m, size_t *hint, const char *cluster_id, const char *node)
{
	for (size_t i = 0; i < m->count; i++) {
		struct server *s = m->list[(*hint + i) % m->count];
		if (strcmp(s->node, node) == 0 && strcmp(s->cluster_id, cluster_id) == 0) {
			*hint += i + 1;
			return s;
		}
	}
	if (m->count == m->room) {
		m->room = m->room ? 2 * m->room : 64;
		m->list = must_realloc(m->list, m->room * sizeof(struct server *));
	}
	struct server *s = must_calloc(1, sizeof *s);
	snprintf(s->cluster_id, sizeof s->cluster_id, "%s", cluster_id);
	snprintf(s->node, sizeof s->node, "%s", node);
	s->tables = pg_tables_new();
	m->list[m->count++] = s;
	return s;
}

/* With cluster.lock. Whether standbys follow the node. */
static bool node_is_followed(const struct pg_cluster *c, const struct pg_node *n)
{
	bool leads = false, others = false;
	for (size_t i = 0; i < c->set_count; i++)
		leads |= c->sets[i].number == n->set && pg_set_primary(c, &c->sets[i]) == n;
	for (size_t i = 0; i < c->node_count; i++)
		others |= c->nodes[i] != n && c->nodes[i]->set == n->set;
	return leads && others;
}

/* With cluster.lock. */
static void server_note(struct pg_measures *m, size_t *hint, const struct pg_cluster *c, const struct pg_node *n)
{
	if (n->removing || n->busy || c->destroying || !n->pid || n->noted)
		return;
	struct server *s = server_ensure(m, hint, c->id, n->want.name);
	s->there = true;
	s->pid = n->pid;
	s->port = n->port;
	s->set = n->set;
	s->disk_used = n->disk_used;
	s->disk_limit = n->want.disk_gb * c->engine->disk_unit;
	s->allowance = c->engine->cgroup[0] ? (double)engine_size(n->want.instance_size).processors : (double)NAN;
	s->followed = node_is_followed(c, n);
	if (s->followed)
		pg_sets_add(&m->sets, c->id, n->set);
	pg_node_run_dir(c, n, s->run);
	pg_node_path(c, n, "data", s->data);
	if (s->seen_pid != s->pid) {
		/* The first that is seen was not started anew. */
		if (s->seen_pid)
			s->restarts[s->restart_count++ % RESTARTS_KEPT] = clock_mono_us();
		s->seen_pid = s->pid;
		server_disconnect(s);
	}
}

static void servers_find(struct engine *e, struct pg_measures *m)
{
	struct pg_cluster **all;
	size_t count = pg_clusters_hold(e, &all), hint = 0;
	for (size_t i = 0; i < m->count; i++)
		m->list[i]->there = m->list[i]->followed = false;
	for (size_t i = 0; i < count; i++) {
		pthread_mutex_lock(&all[i]->lock);
		for (size_t k = 0; k < all[i]->node_count; k++)
			server_note(m, &hint, all[i], all[i]->nodes[k]);
		pthread_mutex_unlock(&all[i]->lock);
		pg_cluster_put(all[i]);
	}
	free(all);
}

/* What is known of a server that does not run stays, for the count of its starts, as long as there is such a node. */
static void servers_drop(struct engine *e, struct pg_measures *m)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->count; i++) {
		struct server *s = m->list[i];
		if (!s->there)
			server_disconnect(s);
		struct pg_cluster *c = s->there ? NULL : pg_cluster_find(e, s->cluster_id);
		bool stays = s->there;
		if (c) {
			pthread_mutex_lock(&c->lock);
			stays = pg_cluster_node(c, s->node) != NULL;
			pthread_mutex_unlock(&c->lock);
			pg_cluster_put(c);
		}
		if (stays)
			m->list[kept++] = s;
		else
			server_free(s);
	}
	m->count = kept;
}

/* A set stays as long as one of its nodes is known: it may be without a primary for a while. */
static void sets_drop(struct pg_measures *m)
{
	for (size_t i = 0; i < m->count; i++)
		pg_sets_keep(&m->sets, m->list[i]->cluster_id, m->list[i]->set);
	pg_sets_drop(&m->sets);
}

static double restarts_count(const struct server *s)
{
	size_t n = 0, all = s->restart_count < RESTARTS_KEPT ? s->restart_count : RESTARTS_KEPT;
	for (size_t i = 0; i < all; i++)
		n += clock_mono_us() - s->restarts[i] < HOUR_US;
	return (double)n;
}

/* --- one server's way through a round */

static void server_fail(struct server *s)
{
	log_debug("engine: %s: no sample: %s", s->node, s->conn ? PQerrorMessage(s->conn) : "no connection");
	server_disconnect(s);
}

/* What asks the database that is being looked into. */
static PGconn *inside_conn(const struct server *s)
{
	return s->other ? s->other : s->conn;
}

static void sent(struct server *s, int was_sent, enum step step)
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

static void question_prepare(struct server *s)
{
	size_t i = s->prepared;
	const char *sql = PQserverVersion(s->conn) >= 170000 ? questions[i].sql_17 : questions[i].sql;
	sent(s, PQsendPrepare(s->conn, questions[i].name, sql, 0, NULL), STEP_PREPARE);
}

static void question_ask(struct server *s, const char *name, enum step step)
{
	sent(s, PQsendQueryPrepared(s->conn, name, 0, NULL, NULL, NULL, 0), step);
}

static void connect_begin(struct server *s)
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
static void tables_choose(struct server *s, const struct engine_sampling *to)
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

static void server_begin(struct server *s, const struct engine_sampling *to)
{
	if (to->whole)
		tables_choose(s, to);
	for (size_t i = 0; i < PROCESS_INPUTS; i++)
		s->inputs[i] = (double)NAN;
	s->answered = s->databases.listed = false;
	s->looks_end = pg_mono_ms() + WHOLE_MS - LOOK_MS;
	s->step = STEP_IDLE;
	if (s->conn && PQstatus(s->conn) == CONNECTION_OK)
		question_ask(s, "sample", STEP_ASK);
	if (s->step == STEP_IDLE) {
		server_disconnect(s);
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
static int rows_take(struct server *s, PGconn *conn, PGresult **ret_rows)
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

static bool process_take(struct pg_measures *m, struct server *s, const PGresult *rows, bool whole)
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
	s->inputs[PROCESS_RESTARTS] = restarts_count(s);
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
static void inside_begin(struct server *s)
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
static void inside_end(struct server *s, bool good)
{
	if (s->other || good)
		inside_begin(s);
	else
		server_disconnect(s);
}

/* The look under way has failed. */
static void inside_fail(struct server *s)
{
	const PGconn *conn = inside_conn(s);
	log_debug("engine: %s: no look into %s: %s", s->node, s->next->name,
	          conn ? PQerrorMessage(conn) : "no connection");
	pg_database_fail(s->next);
	inside_end(s, false);
}

static void step_connect(struct server *s)
{
	int r = connect_go_on(s->conn, &s->events);
	if (r < 0)
		server_fail(s);
	else if (r == 1)
		question_prepare(s);
}

static void step_prepare(struct server *s)
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

static void step_enter(struct server *s)
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
static void tables_ask(struct server *s)
{
	for (size_t i = 0; i < s->databases.count; i++)
		s->databases.list[i].wanted &= s->databases.listed;
	if (s->databases.counts && clock_mono_us() >= s->tables_from_us)
		sent(s, PQsendQuery(s->conn, pg_tables_ask), STEP_TABLES);
	else
		inside_begin(s);
}

static void list_ask(struct server *s)
{
	s->list_us = clock_mono_us();
	question_ask(s, "list", STEP_LIST);
}

/* What comes after the figures of the server itself. */
static void rest_ask(struct server *s, bool whole)
{
	if (whole && clock_mono_us() >= s->list_from_us)
		list_ask(s);
	else if (whole)
		tables_ask(s);
	else
		s->step = STEP_IDLE;
}

/* What pg_stat_database has in their place counts something else: these are gaps when they are not told. */
static void step_operations(struct server *s, bool whole)
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

static void step_ask(struct pg_measures *m, struct server *s, bool whole)
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
static void step_position(struct server *s, struct pg_measures *m)
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
static void list_fail(struct server *s)
{
	int64_t now = clock_mono_us();
	if (now - s->list_us >= LIST_SLOW_US)
		s->list_from_us = now + PG_FAILED_WAIT_US;
}

static void step_list(struct server *s)
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
static void step_tables(struct server *s)
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

static void step_inside(struct server *s)
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
static void step_names(struct server *s)
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

static void server_step(struct pg_measures *m, struct server *s, bool whole)
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

/* Until all are done, or the time is over. */
static void servers_wait(struct pg_measures *m, bool whole, int64_t most_ms)
{
	struct pollfd *fds = must_calloc(m->count + 1, sizeof *fds);
	struct server **of = must_calloc(m->count + 1, sizeof(struct server *));
	int64_t end = pg_mono_ms() + most_ms, left;
	for (;;) {
		nfds_t count = 0;
		for (size_t i = 0; i < m->count; i++) {
			struct server *s = m->list[i];
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

/* --- giving it away */

/* Late ones are not waited for any more, nor is their answer taken for that of the next question. */
static void server_late(struct server *s)
{
	for (size_t i = 0; s->step == STEP_OPERATIONS && i < PG_OPERATIONS; i++)
		s->inputs[pg_operations[i]] = (double)NAN;
	if (s->step == STEP_LIST)
		list_fail(s);
	if (s->step == STEP_ENTER || s->step == STEP_INSIDE)
		pg_database_fail(s->next);
	if (!s->other) {
		server_disconnect(s);
		return;
	}
	/* The kept session waits for nothing. */
	PQfinish(s->other);
	PQclear(s->rows);
	s->other = NULL;
	s->rows = NULL;
	s->step = STEP_IDLE;
}

/* A primary is behind nobody. What is told here is what alerts go by, and what the service's own metrics tell. */
static void server_lag(struct engine *e, const struct pg_measures *m, struct server *s)
{
	const struct pg_positions *set = pg_sets_find(&m->sets, s->cluster_id, s->set);
	struct pg_lag lag = {s->leads ? 0 : (double)NAN, s->leads ? 0 : (double)NAN};
	if (!s->leads && set)
		lag = pg_positions_lag(set, s->inputs[PROCESS_POSITION], s->asked_us);
	s->inputs[PROCESS_LAG_MS] = lag.ms;
	struct pg_cluster *c = isnan(lag.ms) ? NULL : pg_cluster_find(e, s->cluster_id);
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	struct pg_node *n = pg_cluster_node(c, s->node);
	if (n) {
		n->lag_bytes = (uint64_t)lag.bytes;
		n->lag_seconds = lag.ms / 1000;
	}
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
}

static void server_give(struct server *s, const double *host, struct pg_disk_seen *disk,
                        const struct engine_sampling *to)
{
	if (pg_measure_disk(s->data, disk) == 0) {
		struct engine_sample sample = {s->cluster_id, s->node, MEASURE_DISK, disk->name,
		                               disk->mono_us, 0,       disk->inputs};
		to->take(to->ctx, &sample);
	}
	if (s->step != STEP_IDLE)
		server_late(s);
	double own[DISK_INPUTS];
	struct engine_sample of_node = {s->cluster_id, s->node, MEASURE_DISK, DISK_OF_NODE, s->asked_us, s->epoch, own};
	pg_measure_own_disk(disk, s->disk_used, s->disk_limit, s->answered ? s->inputs : NULL, own);
	of_node.mono_us = s->answered ? s->asked_us : clock_mono_us();
	to->take(to->ctx, &of_node);
	if (!s->answered)
		return;
	double reads = s->inputs[PROCESS_SCANS];
	if (s->databases.listed)
		pg_databases_add_up(&s->databases, s->inputs);
	if (s->counts)
		s->inputs[PROCESS_SCANS] = reads;
	for (size_t i = 0; i < PROCESS_INPUTS; i++)
		if (!isnan(host[i]))
			s->inputs[i] = host[i];
	/* Without a bound, those of the host. */
	s->inputs[PROCESS_ALLOWANCE] = isnan(s->allowance) ? s->inputs[PROCESS_CORES] : s->allowance;
	struct engine_sample sample = {s->cluster_id, s->node, MEASURE_PROCESS, "", s->asked_us, s->epoch, s->inputs};
	pg_last_give(&s->last, &sample, to);
	to->take(to->ctx, &sample);
	if (s->databases.listed)
		pg_databases_give(&s->databases, &sample, to);
	pg_tables_give(s->tables, &sample, s->leads, to);
	pg_tables_forget(s->tables);
}

static int pg_sample(struct engine *e, const struct engine_sampling *to)
{
	struct pg_measures *m = e->measures;
	struct pg_disk_seen disk = {.is = false};
	double host[PROCESS_INPUTS];
	if (!m)
		m = e->measures = must_calloc(1, sizeof *m);
	m->activities = e->activities;
	servers_find(e, m);
	for (size_t i = 0; i < PROCESS_INPUTS; i++)
		host[i] = (double)NAN;
	pg_measure_host(host);
	for (size_t i = 0; i < m->count; i++)
		if (m->list[i]->there)
			server_begin(m->list[i], to);
	servers_wait(m, to->whole, to->whole ? WHOLE_MS : TICK_MS);
	/* Standbys are compared with what the primary has told in the same round. */
	for (size_t i = 0; i < m->count; i++)
		if (m->list[i]->there && m->list[i]->answered)
			server_lag(e, m, m->list[i]);
	for (size_t i = 0; i < m->count; i++)
		if (m->list[i]->there)
			server_give(m->list[i], host, &disk, to);
	servers_drop(e, m);
	sets_drop(m);
	pg_activities_drop(e->activities, clock_now_ms());
	return 0;
}

static void track_ask(struct server *s)
{
	if (s->counts)
		sent(s, PQsendQuery(s->conn, pg_ask_last), STEP_POSITION);
	else
		question_ask(s, "position", STEP_POSITION);
}

/* On kept connections alone: where there is none, the next sample begins one. Late answers are waited for again in the
 * next second; a sample begins another connection where one is still owed. */
static void pg_track(struct engine *e)
{
	struct pg_measures *m = e->measures;
	for (size_t i = 0; m && i < m->count; i++) {
		struct server *s = m->list[i];
		if (s->followed && s->step == STEP_IDLE && s->conn && PQstatus(s->conn) == CONNECTION_OK)
			track_ask(s);
	}
	if (m)
		servers_wait(m, false, TRACK_MS);
}

const struct engine_sampling_ops pg_sampling = {.sample = pg_sample, .track = pg_track};

/* Building indexes beside running work: CREATE INDEX CONCURRENTLY on the primary, or on one shard after the other.
 *
 * An index is built under a name of its own, by the id of the build, and gets its final name when it is valid. So what
 * a build has left, after a crash of the service or of the server, is known by its name, is nobody else's, and can be
 * dropped; and a name that somebody took meanwhile is found out before anything is in its place. With its name it gets
 * a comment that has the id: a repeated build knows by it that it is done.
 *
 * A spread table gets its index on each shard first. When it is then made on the router, which is quick, the shards
 * find the one that is there already and give it the name that they know it by (spread_sql.c).
 *
 * The statement runs as the superuser, but the server computes keys and conditions as the table's owner, in a mode in
 * which nothing of the session can be changed; index_sql.c says what it is made of. Waits for locks are bounded, and so
 * is all of it. Where it must end before, its connection is closed: the server looks every two seconds whether that is
 * there, and nothing waits for the answer of one that hangs. index_run.c has the threads. */
#include "engine/postgres/sql/index.h"

#include "base/buf.h"
#include "base/log.h"
#include "catalog/formats.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/index_run.h"
#include "engine/postgres/sql/index_sql.h"
#include "engine/postgres/sql/search_plan.h"
#include "engine/postgres/sql/search_schema.h"
#include "engine/postgres/sql/sql.h"
#include "engine/postgres/sql/vector_plan.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define OPEN_MS 3000
#define SHORT_MS 20000
#define LOOK_MS 500
#define CLEAN_MS 600000
#define ROUTER_PAUSE_MS 1000
#define BUILDING "steward_build_"
#define CLIENTS UINT32_MAX /* in the place of a shard's number: where clients come to */

/* One build, in one database at a time. */
struct building {
	struct engine *engine;
	const struct engine_index *want;
	struct arena *arena;
	struct engine_progress *progress; /* NULL: nobody is told */
	char name[64];                    /* while it is built */
	char blocker[200];                /* whom it waited for when last looked */
	char why[600];
	int64_t end_ms;       /* by pg_mono_ms(): what it has not done by then fails */
	unsigned part, parts; /* of those that are built one after the other */
	bool kept_waiting;    /* the last statement has waited too long for a lock */
	bool taken;           /* or what it was to make was there */
};

static int fail(struct building *b, const char *format, ...) printf_like(2, 3);
static int fail(struct building *b, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(b->why, sizeof b->why, format, args);
	va_end(args);
	return -EINVAL;
}

/* What may pass: a server that is away, a connection that broke. */
static int trouble(struct building *b, int r)
{
	if (!b->why[0])
		snprintf(b->why, sizeof b->why, "%s",
		         r == -ENOTCONN ? "the cluster has no running primary" : pg_why_last());
	return r == -EINVAL || r == -EAGAIN ? -EBUSY : r;
}

/* --- places */

struct place {
	struct pg_node node; /* its port alone */
	char run[PG_PATH];
	bool full;
};

/* The primary of a shard; or where clients come to: the router, else the only set. */
static int place_find(struct building *b, unsigned shard, struct place *ret_place)
{
	struct pg_cluster *c = pg_cluster_find(b->engine, b->want->cluster_id);
	struct place at = {.full = false};
	bool routed = false;
	if (!c)
		return -ENOTCONN;
	pthread_mutex_lock(&c->lock);
	/* A router that is down is waited for: what a shard has is not what clients see. */
	for (size_t i = 0; i < c->set_count; i++)
		routed |= c->sets[i].number >= PG_ROUTER_SET;
	for (size_t i = 0; i < c->set_count; i++) {
		const struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		bool fits = shard != CLIENTS ? c->sets[i].number == shard
		            : routed         ? c->sets[i].number >= PG_ROUTER_SET
		                             : !*at.run;
		if (p && p->pid && fits) {
			at.node.port = p->port;
			pg_node_run_dir(c, p, at.run);
		}
	}
	at.full = c->full != FULL_NOT;
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	if (!*at.run)
		return -ENOTCONN;
	*ret_place = at;
	return 0;
}

static int place_open(const struct place *at, const char *database, PGconn **ret_conn)
{
	return pg_sql_open(&at->node, at->run, database, OPEN_MS, ret_conn);
}

/* Bounds of a session that builds. What the database's owner has set for sessions does not count. */
/* Temporary files of clients can take a tenth of the disk (config.c), those of a build half of it: CREATE INDEX
 * CONCURRENTLY sorts a place for each word of each row of a GIN index, several times the size of the table. */
#define TEMPORARY                                                                                                      \
	"do $$ begin perform set_config('temp_file_limit', least(2147483647, 5 * setting::bigint)::text, false) from " \
	"pg_settings where name = 'temp_file_limit' and setting::bigint > 0; end $$"

static int session_set(struct building *b, PGconn *conn)
{
	char sql[512];
	snprintf(sql, sizeof sql,
	         "set lock_timeout = '%us'; set statement_timeout = 0; set maintenance_work_mem = '64MB'; set "
	         "max_parallel_maintenance_workers = 1; set timezone = 'UTC'; " TEMPORARY,
	         b->want->wait_seconds ? b->want->wait_seconds : 1);
	return pg_sql_do(conn, SHORT_MS, sql);
}

/* --- statements that take long */

struct watch {
	PGconn *conn; /* another connection to the same server; NULL: there is none */
	int pid;      /* of the one that works */
};

/* A count of words is ours and is done again: it does not keep a build waiting. */
#define PROGRESS                                                                                                       \
	"select (select string_agg(format('%%s (process %%s)', usename, pid), ', ') from (select usename, pid from "   \
	"pg_stat_activity where pid = any (pg_blocking_pids(%d)) limit 3) s), phase, coalesce(case when phase like "   \
	"'%%: loading tuples in tree' then 100 * tuples_done / nullif(tuples_total, 0) else 100 * blocks_done / "      \
	"nullif(blocks_total, 0) end, 0), (select count(pg_terminate_backend(pid)) from pg_stat_activity where pid = " \
	"any (pg_blocking_pids(%d)) and usename = '" PG_SUPER                                                          \
	"' and query ~ 'steward_search.recount') from (select) one left join pg_stat_progress_create_index p on "      \
	"p.pid = %d"

static void progress_look(struct building *b, const struct watch *w)
{
	char sql[sizeof PROGRESS + 32];
	PGresult *rows;
	const char *what;
	if (!w->conn)
		return;
	snprintf(sql, sizeof sql, PROGRESS, w->pid, w->pid, w->pid);
	if (pg_sql_rows(w->conn, 2000, sql, &rows) < 0)
		return;
	snprintf(b->blocker, sizeof b->blocker, "%s", pg_value(rows, 0, 0));
	unsigned percent =
	        pg_index_percent(pg_value(rows, 0, 1), (unsigned)strtoul(pg_value(rows, 0, 2), NULL, 10), &what);
	PQclear(rows);
	if (b->progress && b->progress->tell)
		b->progress->tell(b->progress->ctx, (b->part * 100 + percent) / b->parts, what);
}

static bool is_stopping(const struct building *b)
{
	return b->progress && b->progress->stop && atomic_load(b->progress->stop);
}

/* In words what the server refused, and whether it would do so again. */
static int refusal(struct building *b, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE),
	           *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	state = state ? state : "";
	b->kept_waiting = strcmp(state, "55P03") == 0;
	b->taken = strcmp(state, "42P07") == 0;
	if (b->kept_waiting)
		return fail(b,
		            "other transactions kept it waiting for more than %u seconds%s%s: end them and try again",
		            b->want->wait_seconds, b->blocker[0] ? ": " : "", b->blocker);
	if (strcmp(state, "23505") == 0)
		return fail(b, "rows of the table have equal keys, so that no index over them can be unique");
	/* Shutdown, crash, cancellation by hand, read-only after a failover, deadlock: tried again. */
	if (strncmp(state, "57", 2) == 0 || strncmp(state, "08", 2) == 0 || strncmp(state, "40", 2) == 0 ||
	    strcmp(state, "25006") == 0 || !*state) {
		snprintf(b->why, sizeof b->why, "%s", text ? text : "the connection broke");
		return -EIO;
	}
	return fail(b, "%s", text ? text : "the server refused");
}

/* -ETIMEDOUT: nothing yet. */
static int socket_wait(PGconn *conn, int ms)
{
	struct pollfd p = {PQsocket(conn), POLLIN, 0};
	int r = poll(&p, 1, ms);
	if (r < 0 && errno != EINTR)
		return -errno;
	return r > 0 ? 0 : -ETIMEDOUT;
}

static int too_long(struct building *b)
{
	if (b->want->most_seconds)
		return fail(b, "it took longer than the %u seconds that the operator allows", b->want->most_seconds);
	return fail(b, "the server does not answer");
}

/* Until the statement is over. Else the connection can only be closed. */
static int busy_wait(struct building *b, PGconn *conn, const struct watch *w)
{
	while (PQisBusy(conn)) {
		int r = socket_wait(conn, LOOK_MS);
		if (r == 0 && !PQconsumeInput(conn))
			return trouble(b, -EIO);
		if (r < 0 && r != -ETIMEDOUT)
			return r;
		if (r == -ETIMEDOUT)
			progress_look(b, w);
		if (is_stopping(b))
			return -ECANCELED;
		if (pg_mono_ms() > b->end_ms)
			return too_long(b);
	}
	return 0;
}

static int statement_run(struct building *b, PGconn *conn, const struct watch *w, const char *sql)
{
	int r = 0;
	b->blocker[0] = 0;
	b->why[0] = 0;
	b->kept_waiting = b->taken = false;
	if (!PQsendQuery(conn, sql)) {
		pg_why_set(NULL, "%s", PQerrorMessage(conn));
		return trouble(b, -EIO);
	}
	for (;;) {
		int waited = busy_wait(b, conn, w);
		if (waited < 0)
			return waited;
		PGresult *one = PQgetResult(conn);
		if (!one)
			return r;
		if (r == 0 && PQresultStatus(one) != PGRES_COMMAND_OK && PQresultStatus(one) != PGRES_TUPLES_OK)
			r = refusal(b, one);
		PQclear(one);
	}
}

/* --- what a build has left */

struct remains {
	char oid[16];
	const char *schema; /* NULL: there is nothing */
	bool valid;
};

static int remains_find(struct building *b, PGconn *conn, struct remains *ret_remains)
{
	char sql[400];
	PGresult *rows;
	snprintf(sql, sizeof sql,
	         "select c.oid, n.nspname, i.indisvalid from pg_class c join pg_namespace n on n.oid = relnamespace "
	         "join "
	         "pg_index i on i.indexrelid = c.oid where c.relname = '%s'",
	         b->name);
	int r = pg_sql_rows(conn, SHORT_MS, sql, &rows);
	if (r < 0)
		return trouble(b, r);
	*ret_remains = (struct remains){.schema = NULL};
	if (PQntuples(rows)) {
		snprintf(ret_remains->oid, sizeof ret_remains->oid, "%s", pg_value(rows, 0, 0));
		ret_remains->schema = arena_z(b->arena, str_of(pg_value(rows, 0, 1)));
		ret_remains->valid = *pg_value(rows, 0, 2) == 't';
	}
	PQclear(rows);
	return 0;
}

/* Also ends the session of a service that is gone, should it still be at it. */
static int remains_drop(struct building *b, PGconn *conn)
{
	struct pg_index_plan p = {.arena = b->arena, .conn = conn};
	struct watch none = {.conn = NULL};
	struct remains left;
	char sql[400];
	int64_t ended;
	int r = remains_find(b, conn, &left);
	if (r < 0 || !left.schema)
		return r;
	snprintf(sql, sizeof sql,
	         "select count(pg_terminate_backend(p.pid, 5000)) from pg_stat_progress_create_index p join "
	         "pg_stat_activity s on s.pid = p.pid where index_relid = %s and usename = '" PG_SUPER "'",
	         left.oid);
	r = pg_sql_int(conn, SHORT_MS, sql, &ended);
	if (r < 0)
		return trouble(b, r);
	/* Others go on with the table meanwhile. */
	struct str drop = arena_printf(b->arena, "drop index concurrently if exists %s.%s",
	                               pg_index_quote(&p, left.schema), pg_index_quote(&p, b->name));
	r = statement_run(b, conn, &none, drop.p);
	return r == -EINVAL ? -EBUSY : r;
}

/* --- building */

/* Under its own name, unless it is there already. */
static int one_build(struct building *b, const struct place *at, PGconn *conn, const char *on, const char *body)
{
	struct watch w = {.conn = NULL, .pid = PQbackendPID(conn)};
	struct remains left;
	int r = remains_find(b, conn, &left);
	if (r < 0 || (left.schema && left.valid))
		return r;
	r = remains_drop(b, conn);
	if (r < 0)
		return r;
	if (place_open(at, "postgres", &w.conn) < 0)
		w.conn = NULL; /* it is built all the same */
	struct str sql = arena_printf(b->arena, "create %sindex concurrently \"%s\" on %s %s",
	                              b->want->unique ? "unique " : "", b->name, on, body);
	r = statement_run(b, conn, &w, sql.p);
	PQfinish(w.conn);
	/* A session of a service that was killed can have waited before this one: the next try takes its index away. */
	return r == -EINVAL && b->taken ? -EIO : r;
}

static const char *mark_of(struct building *b)
{
	return arena_printf(b->arena, "built by Steward (%s)", b->want->id).p;
}

/* 1: the index is there under its final name, and is of this build. */
static int final_look(struct building *b, struct pg_index_plan *p)
{
	PGresult *rows;
	struct str sql = arena_printf(
	        b->arena,
	        "select obj_description(oid, 'pg_class') from pg_class where relname = %s and relnamespace = "
	        "%s::regnamespace",
	        pg_index_literal(p, b->want->name), pg_index_literal(p, pg_index_quote(p, p->table.schema)));
	int r = pg_sql_rows(p->conn, SHORT_MS, sql.p, &rows);
	if (r < 0)
		return trouble(b, r);
	bool there = PQntuples(rows), ours = there && strcmp(pg_value(rows, 0, 0), mark_of(b)) == 0;
	PQclear(rows);
	if (there && !ours)
		return fail(b, "options.name: the schema has something of the name \"%s\" already", b->want->name);
	return ours;
}

/* Statements that take a moment, in one transaction. */
static int finish(struct building *b, struct pg_index_plan *p, const char *statement)
{
	struct watch none = {.conn = NULL};
	struct str sql = arena_printf(b->arena, "begin; %s; comment on index %s.%s is %s; %scommit", statement,
	                              pg_index_quote(p, p->table.schema), pg_index_quote(p, b->want->name),
	                              pg_index_literal(p, mark_of(b)), b->want->search ? pg_search_put(p) : "");
	int r = statement_run(b, p->conn, &none, sql.p);
	return r;
}

static int collation_make(struct building *b, struct pg_index_plan *p)
{
	struct watch none = {.conn = NULL};
	return p->make ? statement_run(b, p->conn, &none, p->make) : 0;
}

/* Minutes, of a large table. */
static int cells_make(struct building *b, struct pg_index_plan *p)
{
	struct watch none = {.conn = NULL};
	if (b->progress && b->progress->tell)
		b->progress->tell(b->progress->ctx, 0, "dividing the vectors");
	return statement_run(b, p->conn, &none, p->train);
}

static int plain_build(struct building *b, struct pg_index_plan *p, const struct place *at)
{
	int r = one_build(b, at, p->conn, p->on, p->body);
	if (r < 0)
		return r;
	struct str rename = arena_printf(b->arena, "alter index %s.\"%s\" rename to %s",
	                                 pg_index_quote(p, p->table.schema), b->name, pg_index_quote(p, b->want->name));
	return finish(b, p, rename.p);
}

/* A session of ours there; nothing is left open when it fails. */
static int shard_open(struct building *b, unsigned shard, struct place *ret_at, PGconn **ret_conn)
{
	int r = place_find(b, shard, ret_at);
	if (r == 0)
		r = place_open(ret_at, "postgres", ret_conn);
	if (r < 0)
		return trouble(b, r);
	r = session_set(b, *ret_conn);
	if (r == 0)
		return 0;
	r = trouble(b, r);
	PQfinish(*ret_conn);
	return r;
}

static int shard_build(struct building *b, const struct pg_index_plan *p, unsigned shard, const char *remote)
{
	struct place at;
	PGconn *conn;
	int r = shard_open(b, shard, &at, &conn);
	if (r < 0)
		return r;
	r = one_build(b, &at, conn, arena_printf(b->arena, "sharded.%s", remote).p, p->body);
	PQfinish(conn);
	return r;
}

static int shard_clean(struct building *b, unsigned shard)
{
	struct place at;
	PGconn *conn;
	int r = shard_open(b, shard, &at, &conn);
	if (r < 0)
		return r;
	r = remains_drop(b, conn);
	PQfinish(conn);
	return r;
}

/* This one keeps writers out, and those who come while it waits for its lock wait behind it: it never waits long, but
 * often. */
static int router_make(struct building *b, struct pg_index_plan *p, const char *statement)
{
	int64_t end = pg_mono_ms() + (int64_t)b->want->wait_seconds * 1000;
	int r = pg_sql_do(p->conn, SHORT_MS, "set lock_timeout = '500ms'");
	if (r < 0)
		return trouble(b, r);
	while ((r = finish(b, p, statement)) < 0 && b->kept_waiting && pg_mono_ms() < end && !is_stopping(b)) {
		if (pg_sql_do(p->conn, SHORT_MS, "rollback") < 0)
			return -EIO;
		pg_sleep_ms(ROUTER_PAUSE_MS);
	}
	return is_stopping(b) && b->kept_waiting ? -ECANCELED : r;
}

/* The parts' names have been looked at by the router's own function: t and digits. */
static int spread_build(struct building *b, struct pg_index_plan *p)
{
	PGresult *rows;
	struct str sql = arena_printf(b->arena, "select server, remote from steward_parts.parts(%s)", p->table.oid);
	int r = pg_sql_rows(p->conn, SHORT_MS, sql.p, &rows);
	if (r < 0)
		return trouble(b, r);
	int count = PQntuples(rows);
	b->parts = (unsigned)count + 1;
	for (int i = 0; r == 0 && i < count; i++) {
		b->part = (unsigned)i;
		r = shard_build(b, p, (unsigned)strtoul(pg_value(rows, i, 0) + strlen("shard_"), NULL, 10),
		                pg_value(rows, i, 1));
	}
	struct str make =
	        arena_printf(b->arena, "create index %s on %s %s", pg_index_quote(p, b->want->name), p->on, p->body);
	if (r == 0)
		r = router_make(b, p, make.p);
	/* Shards that have not taken what was built have made another. */
	for (int i = 0; r == 0 && i < count; i++)
		r = shard_clean(b, (unsigned)strtoul(pg_value(rows, i, 0) + strlen("shard_"), NULL, 10));
	PQclear(rows);
	return r;
}

/* --- the engine's functions */

/* What a server said, as text that can be kept: names in it can be of any encoding, and cut short. */
static const char *words_keep(struct arena *a, const char *text)
{
	char *copy = arena_z(a, str_of(text));
	bool good = utf8_is_valid(str_of(copy));
	for (char *p = copy; *p; p++)
		if ((unsigned char)*p < ' ' || (!good && (unsigned char)*p > '~'))
			*p = '?';
	return copy;
}

/* Whether clients could connect to it. */
static int database_find(struct building *b, const struct place *at, PGconn **ret_conn)
{
	struct pg_index_plan p = {.arena = b->arena};
	int64_t there = 0;
	int r = place_open(at, "postgres", &p.conn);
	if (r < 0)
		return trouble(b, r);
	struct str sql = arena_printf(b->arena,
	                              "select count(*) from pg_database where datname = %s and datallowconn and not "
	                              "datistemplate",
	                              pg_index_literal(&p, b->want->database));
	r = pg_sql_int(p.conn, SHORT_MS, sql.p, &there);
	PQfinish(p.conn);
	if (r < 0)
		return trouble(b, r);
	if (!there)
		return -ENOENT;
	r = place_open(at, b->want->database, ret_conn);
	return r < 0 ? trouble(b, r) : 0;
}

static struct building building_of(struct engine *e, const struct engine_index *want, struct arena *a,
                                   struct engine_progress *progress)
{
	int64_t most_ms = want->most_seconds ? (int64_t)want->most_seconds * 1000 : CLEAN_MS;
	struct building b = {.engine = e,
	                     .want = want,
	                     .arena = a,
	                     .progress = progress,
	                     .parts = 1,
	                     .end_ms = pg_mono_ms() + most_ms};
	snprintf(b.name, sizeof b.name, BUILDING "%.24s", want->id);
	return b;
}

/* A connection to the database, and the plan of the statement. */
static int plan_open(struct building *b, struct place *at, struct pg_index_plan *p)
{
	int r = place_find(b, CLIENTS, at);
	if (r < 0)
		return trouble(b, r);
	r = database_find(b, at, &p->conn);
	if (r == -ENOENT)
		return pg_index_fault(p, "db", "the cluster has no such database");
	if (r == 0)
		r = pg_index_plan(p);
	return r == -EINVAL || r == 0 ? r : trouble(b, r);
}

static int pg_index_check(struct engine *e, const struct engine_index *want, struct arena *a, const char **ret_field,
                          const char **ret_why)
{
	struct building b = building_of(e, want, a, NULL);
	struct pg_index_plan p = {.arena = a, .want = want};
	struct place at;
	int r = plan_open(&b, &at, &p);
	if (r == 0)
		r = final_look(&b, &p);
	PQfinish(p.conn);
	if (r >= 0)
		return 0;
	bool taken = r == -EINVAL && !p.field;
	if (r != -EINVAL)
		log_debug("engine: cluster %s: an index cannot be looked at: %s", want->cluster_id, b.why);
	*ret_field = taken ? "options.name" : p.field;
	*ret_why = taken ? "the schema has something of that name already" : words_keep(a, p.why);
	return taken ? -EEXIST : r == -EINVAL ? r : -EAGAIN;
}

/* Of the router's shards, whichever of them a table was spread over. */
static int shards_clean(struct building *b)
{
	struct pg_cluster *c = pg_cluster_find(b->engine, b->want->cluster_id);
	unsigned *shards = arena_new_array(b->arena, unsigned, PG_SETS_MAX);
	size_t count = 0;
	bool routed = false;
	int r = 0;
	if (!c)
		return 0;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->set_count; i++) {
		routed |= c->sets[i].number >= PG_ROUTER_SET;
		if (c->sets[i].number < PG_ROUTER_SET)
			shards[count++] = c->sets[i].number;
	}
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	for (size_t i = 0; routed && r == 0 && i < count; i++)
		r = shard_clean(b, shards[i]);
	return r;
}

int pg_index_build_here(struct engine *e, const struct engine_index *want, struct engine_progress *progress,
                        struct arena *a, const char **ret_why)
{
	struct building b = building_of(e, want, a, progress);
	struct pg_index_plan p = {.arena = a, .want = want};
	struct place at;
	int r = plan_open(&b, &at, &p);
	if (r == -EINVAL)
		snprintf(b.why, sizeof b.why, "%s: %s", p.field, p.why);
	if (r == 0 && at.full)
		r = fail(&b, "the cluster's disk is full");
	if (r == 0) {
		r = session_set(&b, p.conn);
		r = r < 0 ? trouble(&b, r) : final_look(&b, &p);
	}
	/* It is done, but perhaps was cut short before the shards were rid of what they have not taken. */
	if (r == 1 && p.table.spread)
		r = shards_clean(&b) < 0 ? trouble(&b, -EIO) : 1;
	if (r == 0)
		r = collation_make(&b, &p);
	if (r == 0 && want->search && (r = pg_search_prepare(&p)) < 0)
		r = r == -EINVAL ? fail(&b, "%s", p.why) : trouble(&b, r);
	if (r == 0 && p.train)
		r = cells_make(&b, &p);
	if (r == 0)
		r = p.table.spread ? spread_build(&b, &p) : plain_build(&b, &p, &at);
	PQfinish(p.conn);
	if (r < 0)
		*ret_why = words_keep(a, b.why);
	return r < 0 ? r : 0;
}

static int pg_index_clean(struct engine *e, const struct engine_index *want, struct arena *a, const char **ret_why)
{
	struct building b = building_of(e, want, a, NULL);
	struct pg_index_plan p = {.arena = a, .want = want};
	struct place at;
	int r = place_find(&b, CLIENTS, &at);
	r = r < 0 ? trouble(&b, r) : database_find(&b, &at, &p.conn);
	if (r == 0) {
		r = session_set(&b, p.conn);
		r = r < 0 ? trouble(&b, r) : remains_drop(&b, p.conn);
	}
	if (r == 0 && (r = pg_vector_forget(&p)) < 0)
		r = trouble(&b, r);
	PQfinish(p.conn);
	if (r == 0 || r == -ENOENT)
		r = shards_clean(&b);
	if (r < 0)
		*ret_why = words_keep(a, b.why);
	return r;
}

/* --- search indexes that were built */

/* One that a build has given its final name, and marked. Its schema in the arena; NULL: there is none. */
static int built_find(struct building *b, struct pg_index_plan *p, const char **ret_schema)
{
	PGresult *rows;
	struct str sql = arena_printf(b->arena,
	                              "select nspname from pg_class c join pg_namespace n on n.oid = relnamespace "
	                              "where relkind = 'i' and relname = "
	                              "%s and obj_description(c.oid, 'pg_class') = %s",
	                              pg_index_literal(p, b->want->name), pg_index_literal(p, mark_of(b)));
	int r = pg_sql_rows(p->conn, SHORT_MS, sql.p, &rows);
	if (r < 0)
		return trouble(b, r);
	*ret_schema = PQntuples(rows) ? arena_z(b->arena, str_of(pg_value(rows, 0, 0))) : NULL;
	PQclear(rows);
	return 0;
}

static int built_drop(struct building *b, struct pg_index_plan *p)
{
	struct watch none = {.conn = NULL};
	const char *schema = NULL;
	int r = built_find(b, p, &schema);
	if (r < 0 || !schema)
		return r;
	struct str drop = arena_printf(b->arena, "drop index concurrently if exists %s.%s", pg_index_quote(p, schema),
	                               pg_index_quote(p, b->want->name));
	r = statement_run(b, p->conn, &none, drop.p);
	return r == -EINVAL ? -EBUSY : r;
}

static int pg_index_drop(struct engine *e, const struct engine_index *want, struct arena *a, const char **ret_why)
{
	struct building b = building_of(e, want, a, NULL);
	struct pg_index_plan p = {.arena = a, .want = want};
	struct place at;
	int r = place_find(&b, CLIENTS, &at);
	r = r < 0 ? trouble(&b, r) : database_find(&b, &at, &p.conn);
	if (r == 0) {
		r = session_set(&b, p.conn);
		r = r < 0 ? r : pg_search_forget(&p);
		r = r < 0 ? trouble(&b, r) : built_drop(&b, &p);
	}
	if (r == 0)
		r = remains_drop(&b, p.conn);
	PQfinish(p.conn);
	if (r < 0)
		*ret_why = words_keep(a, b.why);
	return r == -ENOENT ? 0 : r;
}

static int pg_index_look(struct engine *e, const struct engine_index *want, struct arena *a)
{
	struct building b = building_of(e, want, a, NULL);
	struct pg_index_plan p = {.arena = a, .want = want};
	struct place at;
	bool there = false, outgrown = false;
	int r = place_find(&b, CLIENTS, &at);
	r = r < 0 ? trouble(&b, r) : database_find(&b, &at, &p.conn);
	if (r == 0)
		r = pg_search_look(&p, &there);
	if (r == 0 && there && want->search->vectors)
		r = pg_vector_outgrown(&p, &outgrown);
	PQfinish(p.conn);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? -EAGAIN : outgrown ? INDEX_OUTGROWN : there;
}

/* --- how often words occur */

#define COUNT_SECONDS 120
/* Counting that takes too long is tried again much later. */
static int words_count(struct building *b, PGconn *conn)
{
	struct pg_index_plan p = {.arena = b->arena, .conn = conn};
	struct watch none = {.conn = NULL};
	const char *id = pg_index_literal(&p, b->want->id);
	struct str count = arena_printf(b->arena, "set statement_timeout = '%ds'; select steward_search.recount(%s)",
	                                COUNT_SECONDS, id);
	int r = statement_run(b, conn, &none, count.p);
	if (r == 0 || r == -ECANCELED)
		return r;
	log_debug("engine: cluster %s: the words of a search index were not counted: %s", b->want->cluster_id, b->why);
	struct str later =
	        arena_printf(b->arena,
	                     "insert into steward_search.counted(build, changes, rows, at, took) values (%s, "
	                     "0, 0, now(), '%ds') on conflict (build) do update set at = now(), took = "
	                     "excluded.took",
	                     id, COUNT_SECONDS);
	return pg_sql_do(conn, SHORT_MS, later.p);
}

static int pg_index_count(struct engine *e, const struct engine_index *want, const _Atomic bool *stop, struct arena *a)
{
	struct engine_progress progress = {.stop = stop};
	struct building b = building_of(e, want, a, &progress);
	struct place at;
	PGconn *conn = NULL;
	int r = place_find(&b, CLIENTS, &at);
	if (r == 0 && at.full)
		return 0;
	if (r == 0)
		r = database_find(&b, &at, &conn);
	if (r == 0)
		r = session_set(&b, conn);
	if (r == 0)
		r = words_count(&b, conn);
	PQfinish(conn);
	return r == -ECANCELED ? r : r < 0 ? -EAGAIN : 0;
}

/* --- what builds have left */

static int databases_look(struct building *b, const struct place *at, struct engine_index_strays *strays)
{
	PGconn *conn;
	PGresult *rows;
	int r = place_open(at, "postgres", &conn);
	if (r < 0)
		return r;
	r = pg_sql_rows(conn, SHORT_MS,
	                "select datname from pg_database where datallowconn and not datistemplate and datconnlimit <> "
	                "-2 order by oid",
	                &rows);
	PQfinish(conn);
	for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
		/* One that goes meanwhile, or takes no connections, is looked at another time. */
		if (place_open(at, pg_value(rows, i, 0), &conn) < 0)
			continue;
		if (pg_search_strays(b->arena, conn, pg_value(rows, i, 0), strays) < 0)
			log_debug("engine: cluster %s: what builds have left was not found out: %s",
			          b->want->cluster_id, pg_why_last());
		PQfinish(conn);
	}
	if (r == 0)
		PQclear(rows);
	return r;
}

static int pg_index_strays(struct engine *e, const char *cluster_id, struct arena *a,
                           struct engine_index_strays *ret_strays)
{
	struct engine_index none = {.cluster_id = cluster_id, .id = ""};
	struct building b = building_of(e, &none, a, NULL);
	struct place at;
	ret_strays->count = 0;
	int r = place_find(&b, CLIENTS, &at);
	return r < 0 || databases_look(&b, &at, ret_strays) < 0 ? -EAGAIN : 0;
}

const struct engine_index_ops pg_index = {.check = pg_index_check,
                                          .build = pg_index_build,
                                          .clean = pg_index_clean,
                                          .drop = pg_index_drop,
                                          .look = pg_index_look,
                                          .count = pg_index_count,
                                          .strays = pg_index_strays};

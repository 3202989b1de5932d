/* How vacuum keeps up: the age of transaction ids by database, vacuums that run, and the tables with most dead rows.
 * Asked when somebody looks, on sessions that end: the server's statistics tell all of it, and no table is read. */
#include "engine/postgres/observe/vacuum.h"

#include "base/arena.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/observe/inspect.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdlib.h>

#define ASK_MS 3000
#define ALL_MS 10000
#define DATABASES_MAX 64
#define TABLES_MAX 20 /* of a database */
#define RUNS_MAX 32

static const char ask_databases[] =
        "select datname, greatest(age(datfrozenxid), mxid_age(datminmxid)), datallowconn and not datistemplate, "
        "current_setting('autovacuum_freeze_max_age') from pg_database where datconnlimit <> -2 order by 2 desc limit "
        "64";

static const char ask_runs[] =
        "select datname, relid::regclass, phase, pid, heap_blks_total, heap_blks_scanned, relid from "
        "pg_stat_progress_vacuum order by pid limit 32";

/* What rows need: their number, and the mean width of their columns with the heads of rows and pages. */
static const char ask_tables[] =
        "with t as (select c.oid, case when n.nspname = 'public' then c.relname::text else n.nspname || '.' || "
        "c.relname "
        "end as name, pg_stat_get_live_tuples(c.oid) as live, pg_stat_get_dead_tuples(c.oid) as dead, c.relpages, "
        "c.reltuples, pg_relation_size(c.oid) as bytes, age(c.relfrozenxid) as xids, "
        "greatest(pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid)) as vacuumed, "
        "greatest(pg_stat_get_last_analyze_time(c.oid), pg_stat_get_last_autoanalyze_time(c.oid)) as analyzed "
        "from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'm') and n.nspname !~ "
        "'^(pg_|steward)' and n.nspname <> 'information_schema' order by dead desc, xids desc, bytes desc limit 20) "
        "select name, live, dead, bytes, case when reltuples >= 0 and width is not null then greatest(bytes - "
        "ceil(greatest(live, 0) * (28 + width) / 8168) * 8192, 0)::bigint else -1 end, xids, (extract(epoch from "
        "vacuumed) * "
        "1000)::bigint, (extract(epoch from analyzed) * 1000)::bigint from t left join lateral (select sum((1 - "
        "stanullfrac) * stawidth) as width from pg_statistic s where s.starelid = t.oid and not s.stainherit) w on "
        "true "
        "order by dead desc, xids desc, bytes desc";

static int64_t number_at(const PGresult *rows, int row, int column)
{
	return strtoll(pg_value(rows, row, column), NULL, 10);
}

static size_t bounded(const PGresult *rows, size_t most)
{
	size_t count = (size_t)PQntuples(rows);
	return count < most ? count : most;
}

static int databases_read(PGconn *conn, struct arena *a, struct engine_vacuum *v, bool *ret_enter)
{
	PGresult *rows;
	int r = pg_sql_rows(conn, ASK_MS, ask_databases, &rows);
	if (r < 0)
		return r;
	v->database_count = bounded(rows, DATABASES_MAX);
	v->databases = arena_new_array(a, struct engine_vacuum_database, v->database_count + 1);
	for (size_t i = 0; i < v->database_count; i++) {
		const char *name = pg_value(rows, (int)i, 0);
		v->databases[i] = (struct engine_vacuum_database){arena_z(a, str_of(name)), number_at(rows, (int)i, 1)};
		ret_enter[i] = *pg_value(rows, (int)i, 2) == 't';
	}
	v->freeze_age = number_at(rows, 0, 3);
	PQclear(rows);
	return 0;
}

static int runs_read(PGconn *conn, struct arena *a, struct engine_vacuum *v)
{
	PGresult *rows;
	int r = pg_sql_rows(conn, ASK_MS, ask_runs, &rows);
	if (r < 0)
		return r;
	v->run_count = bounded(rows, RUNS_MAX);
	v->runs = arena_new_array(a, struct engine_vacuum_run, v->run_count + 1);
	for (size_t i = 0; i < v->run_count; i++)
		v->runs[i] = (struct engine_vacuum_run){.database = engine_shown(a, pg_value(rows, (int)i, 0)),
		                                        .name = engine_shown(a, pg_value(rows, (int)i, 1)),
		                                        .phase = engine_shown(a, pg_value(rows, (int)i, 2)),
		                                        .pid = number_at(rows, (int)i, 3),
		                                        .blocks = number_at(rows, (int)i, 4),
		                                        .done = number_at(rows, (int)i, 5)};
	PQclear(rows);
	return 0;
}

static void tables_read(const PGresult *rows, struct arena *a, const char *database, struct engine_vacuum *v)
{
	size_t count = bounded(rows, TABLES_MAX);
	for (size_t i = 0; i < count; i++)
		v->tables[v->table_count++] =
		        (struct engine_vacuum_table){.database = engine_shown(a, database),
		                                     .name = engine_shown(a, pg_value(rows, (int)i, 0)),
		                                     .live = number_at(rows, (int)i, 1),
		                                     .dead = number_at(rows, (int)i, 2),
		                                     .bytes = number_at(rows, (int)i, 3),
		                                     .wasted = number_at(rows, (int)i, 4),
		                                     .xid_age = number_at(rows, (int)i, 5),
		                                     .vacuumed_ms = number_at(rows, (int)i, 6),
		                                     .analyzed_ms = number_at(rows, (int)i, 7)};
}

/* One that takes no connection, or takes too long, is left out, and so are those for which no time is left. */
static void databases_enter(const struct pg_cluster *c, const struct pg_node *n, struct arena *a, const bool *enter,
                            struct engine_vacuum *v)
{
	int64_t end = pg_mono_ms() + ALL_MS;
	v->tables = arena_new_array(a, struct engine_vacuum_table, v->database_count * TABLES_MAX + 1);
	v->whole = true;
	for (size_t i = 0; i < v->database_count; i++) {
		PGconn *conn;
		PGresult *rows;
		if (!enter[i])
			continue;
		int r = pg_mono_ms() > end ? -EAGAIN : pg_sql_open_node(c, n, v->databases[i].name, ASK_MS, &conn);
		if (r == 0) {
			r = pg_sql_rows(conn, ASK_MS, ask_tables, &rows);
			PQfinish(conn);
		}
		v->whole &= r == 0;
		if (r == 0) {
			tables_read(rows, a, v->databases[i].name, v);
			PQclear(rows);
		}
	}
}

int pg_vacuum_look(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
                   struct engine_vacuum *ret_vacuum)
{
	struct engine_vacuum v = {.databases = NULL};
	struct pg_cluster *c;
	struct pg_node n;
	PGconn *conn;
	bool enter[DATABASES_MAX] = {false};
	int r = pg_node_get(e, cluster_id, node, &c, &n);
	if (r < 0)
		return r;
	if (!n.pid || n.noted || pg_sql_open_node(c, &n, "postgres", ASK_MS, &conn) < 0) {
		pg_cluster_put(c);
		return -EAGAIN;
	}
	r = databases_read(conn, a, &v, enter);
	r = r < 0 ? r : runs_read(conn, a, &v);
	PQfinish(conn);
	if (r == 0)
		databases_enter(c, &n, a, enter, &v);
	pg_cluster_put(c);
	for (size_t i = 0; r == 0 && i < v.database_count; i++)
		v.databases[i].name = engine_shown(a, v.databases[i].name);
	if (r < 0)
		return -EAGAIN;
	*ret_vacuum = v;
	return 0;
}

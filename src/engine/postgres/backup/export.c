/* The tables of a snapshot as text: it is restored into a throwaway server, and each table of its databases is copied
 * out, a row a line of JSON. Of a sharded cluster the router says which tables the shards hold parts of; the parts
 * come from the shards' own snapshots, under the table's name. Rows come in pieces, so that they take no memory of the
 * service; what makes JSON of them is the throwaway server, whose processes have a bound.
 *
 * What makes JSON of a row calls casts that the database's users have made. So none of theirs is left there, and who
 * copies is no superuser, also not one that has become another.
 *
 * What users can put into a table or a database (a row of half a gigabyte, a name that is no text, settings that
 * refuse the exporter, a copy at which the server dies) fails that table or database alone: it is skipped, with its
 * reason. Only what fails all of them, the bucket or the throwaway server, fails the export. */
#include "engine/postgres/backup/export.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "catalog/formats.h"
#include "engine/postgres/archive/archive_read.h"
#include "engine/postgres/backup/backup.h"
#include "engine/postgres/backup/snapshot.h"
#include "engine/postgres/cluster/throwaway.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/progress.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/copy_stream.h"
#include "engine/postgres/sql/sql.h"
#include "engine/postgres/sql/sql_copy.h"

#include <errno.h>

#define THREADS 2
#define SQL_MS 60000
#define ROW_MAX "33554432" /* bytes of a row's JSON, of which a server holds several times as many */
#define TABLES_MAX 50000   /* of a database: each is an object, and some memory while the export lasts */
#define TRIES 3            /* at a table during which the server ends */
#define BACK_MS 60000      /* in which it is there again, where one of its processes was killed */

#define QUOTED(n) #n
#define NUMBER(n) QUOTED(n)

/* A table of a shard, and whose part it is. */
struct spread {
	const char *table, *schema, *name, *database;
};

struct run {
	struct engine *e;
	const struct engine_export *to;
	struct engine_progress *progress;
	struct arena *a;
	struct repository *repository;
	const struct engine_source *of;
	size_t current, count;
	struct spread *spread;
	size_t spread_count, spread_room;
	size_t tables;      /* so far */
	volatile bool stop; /* what progress says, for the repository */
	const struct pg_throwaway *server;
	volatile int bound; /* that it has reached: -ENOSPC or -ETIME */
	pthread_mutex_t telling;
};

static bool is_stopped(void *ctx)
{
	struct run *x = ctx;
	int bound = x->server && !x->bound ? pg_throwaway_check(x->server) : 0;
	if (bound < 0)
		x->bound = bound;
	if (x->bound || pg_is_stopped(x->progress))
		x->stop = true;
	return x->stop;
}

/* From several threads. */
static void export_tell(void *ctx, uint64_t done, uint64_t of)
{
	struct run *x = ctx;
	uint64_t share = of ? done * 50 / of : 0;
	pthread_mutex_lock(&x->telling);
	pg_tell(x->progress, (unsigned)((x->current * 100 + (share < 50 ? share : 50)) / x->count), "restoring");
	pthread_mutex_unlock(&x->telling);
	(void)!is_stopped(x);
}

/* Partitions come with the table that they are of. What has parts on shards has none here. */
static const char tables_sql[] =
        "select n.nspname, c.relname, c.relkind from pg_class c join pg_namespace n on n.oid = c.relnamespace where "
        "c.relkind in "
        "('r', 'p', 'm') and c.relpersistence <> 't' and not c.relispartition and n.nspname !~ "
        "'^(pg_|information_schema$|steward|sharded$)' and (c.relkind <> 'm' or c.relispopulated) and (c.relkind <> "
        "'p' "
        "or not exists (select from pg_partition_tree(c.oid) t join pg_foreign_table f on f.ftrelid = t.relid)) order "
        "by 1, 2 limit " NUMBER(TABLES_MAX) " + 1";

static const char spread_sql[] =
        "select n.nspname, c.relname, (select o.option_value from pg_options_to_table(f.ftoptions) o where "
        "o.option_name = 'table_name') as remote from pg_class c join pg_namespace n on n.oid = c.relnamespace join "
        "pg_inherits i on i.inhparent = c.oid join pg_foreign_table f on f.ftrelid = i.inhrelid where c.relkind = 'p' "
        "and n.nspname !~ '^(pg_|information_schema$|steward)' group by 1, 2, 3 order by 1, 2 limit " NUMBER(
                TABLES_MAX);

static int spread_find(struct run *x, PGconn *conn, const char *database)
{
	PGresult *rows;
	int r = pg_sql_rows(conn, SQL_MS, spread_sql, &rows);
	if (r < 0)
		return r;
	for (int i = 0; i < PQntuples(rows); i++) {
		bool known = false; /* by another router */
		for (size_t k = 0; k < x->spread_count && !known; k++)
			known = strcmp(x->spread[k].table, pg_value(rows, i, 2)) == 0;
		if (known)
			continue;
		if (x->spread_count == x->spread_room) {
			size_t room = x->spread_room ? x->spread_room * 2 : 16;
			x->spread = arena_grow(x->a, x->spread, x->spread_count, room, sizeof *x->spread);
			x->spread_room = room;
		}
		x->spread[x->spread_count++] = (struct spread){
		        arena_z(x->a, str_of(pg_value(rows, i, 2))), arena_z(x->a, str_of(pg_value(rows, i, 0))),
		        arena_z(x->a, str_of(pg_value(rows, i, 1))), arena_z(x->a, str_of(database))};
	}
	PQclear(rows);
	return 0;
}

/* Whom the copies are made as, in all databases. */
static const char exporter_sql[] =
        "do $$ declare d name; begin create role \"" PG_EXPORT "\" login bypassrls in role pg_read_all_data; "
        "for d in select datname from pg_database where datallowconn and datconnlimit <> -2 loop "
        "execute format('alter database %I connection limit -1', d); "
        "execute format('grant connect on database %I to \"" PG_EXPORT "\"', d); end loop; end $$";

/* Only a superuser makes functions of these languages. */
static const char casts_sql[] =
        "delete from pg_cast c using pg_proc p join pg_language l on l.oid = p.prolang where p.oid = c.castfunc and "
        "l.lanname not in ('internal', 'c')";

static int exporter_open(const struct pg_throwaway *t, const char *database, PGconn **ret_conn)
{
	PGconn *conn;
	int r = pg_throwaway_open(t, database, &conn);
	if (r < 0)
		return r;
	r = pg_sql_do(conn, SQL_MS, casts_sql);
	PQfinish(conn);
	return r < 0 ? r : pg_sql_open_as(&t->node, t->run, PG_EXPORT, database, 30000, ret_conn);
}

/* The text format would double what JSON has escaped; CSV whose quotes and separator no JSON text holds leaves it. Ends
 * of lines can stand between the words of a value that is JSON itself. Children of a table have rows of their own, and
 * are listed by themselves; partitions are not. Only a row that is short enough goes on: translate() takes four times
 * as much memory as it is given. */
static int statement_make(PGconn *conn, const char *schema, const char *name, bool only, struct buf *sql)
{
	char *own = PQescapeIdentifier(conn, schema, strlen(schema));
	char *table = PQescapeIdentifier(conn, name, strlen(name));
	bool valid = own && table;
	if (valid)
		buf_printf(
		        sql,
		        "copy (select case when octet_length(j) <= " ROW_MAX
		        " then translate(j, e'\\n\\r', '  ') end from (select row_to_json(t.*)::text j from %s %s.%s "
		        "t offset 0) q) to stdout (format csv, quote e'\\x01', delimiter e'\\x02')",
		        only ? "only" : "", own, table);
	else
		pg_why_set(NULL, "its name is not valid in the database's encoding");
	buf_c(sql, 0);
	PQfreemem(own);
	PQfreemem(table);
	return valid ? 0 : -EBADMSG;
}

/* What becomes of the bucket is not about the table, whatever its words for it are. */
static int bucket_result(int r)
{
	return r == -EBADMSG || r == -ECONNRESET ? -EIO : r;
}

/* -EBADMSG: the table is at fault; -ECONNRESET: the server has ended meanwhile. */
static int table_copy(struct run *x, PGconn *conn, const char *schema, const char *name, bool only,
                      const struct engine_table *as)
{
	const struct pg_stop stop = {.asked = is_stopped, .ctx = x};
	struct pg_copy rows = {.write = x->to->write, .ctx = x->to->ctx};
	struct buf sql = {0};
	int r = statement_make(conn, schema, name, only, &sql);
	r = r < 0 ? r : bucket_result(x->to->begin(x->to->ctx, as));
	if (r == 0) {
		r = pg_sql_copy(conn, sql.p, &stop, &rows);
		if (rows.left_out)
			pg_why_set(NULL, "it has a row of more than " ROW_MAX " bytes of JSON");
		r = r < 0 && rows.unwritten ? bucket_result(r) : r;
	}
	r = r < 0 ? r : bucket_result(x->to->end(x->to->ctx, rows.rows));
	buf_free(&sql);
	return r;
}

/* What users have named, and a server's words about it. */
static const char *plain_text(struct run *x, const char *words)
{
	return arena_z(x->a, utf8_shown(x->a, str_of(words)));
}

/* The reason is the last that was told. */
static int skip(struct run *x, const struct engine_table *as)
{
	char why[300];
	snprintf(why, sizeof why, "%.*s", (int)strcspn(pg_why_last(), "\n"), pg_why_last());
	const char *text = plain_text(x, why);
	log_warn("export of cluster %s: %s %s.%s is skipped: %s", x->of->cluster_id, plain_text(x, as->database),
	         plain_text(x, as->schema), plain_text(x, as->name), text);
	return x->to->skip(x->to->ctx, as, text);
}

static int database_open(const struct pg_throwaway *t, const char *database, PGconn **ret_conn)
{
	PGconn *conn;
	int r = exporter_open(t, database, &conn);
	if (r < 0)
		return r;
	/* There is no conversion from that, only a refusal of what is not valid: a name would fail the whole list. */
	const char *encoding = PQparameterStatus(conn, "server_encoding");
	if (encoding && strcmp(encoding, "SQL_ASCII") == 0 && PQsetClientEncoding(conn, "SQL_ASCII") < 0)
		r = -EIO;
	r = r < 0 ? r : pg_sql_do(conn, SQL_MS, "set statement_timeout = 0");
	if (r < 0) {
		PQfinish(conn);
		return r;
	}
	*ret_conn = conn;
	return 0;
}

/* In the place of a connection that is in the middle of something, or gone. A server of which a process was killed
 * ends all of them, and recovers first. */
static int database_reopen(struct run *x, const struct pg_throwaway *t, const char *database, PGconn **conn)
{
	int64_t end = pg_mono_ms() + BACK_MS;
	PQfinish(*conn);
	*conn = NULL;
	for (;; pg_sleep_ms(50)) {
		int r = is_stopped(x) ? -ECANCELED : database_open(t, database, conn);
		if (r == 0 || r == -ECANCELED || pg_process_ended(t->pidfd, 0) || pg_mono_ms() > end)
			return r;
	}
}

/* Copies a table, or skips it. One during which the server ends is begun anew; that happens to nobody's table often,
 * unless it is the table that ends it: memory that its rows take, or what is broken in it. */
static int table_take(struct run *x, const struct pg_throwaway *t, const char *database, PGconn **conn,
                      const char *schema, const char *name, bool only, const struct engine_table *as)
{
	int r = table_copy(x, *conn, schema, name, only, as);
	for (int tries = 1; r == -ECONNRESET && tries < TRIES; tries++) {
		log_warn("export of cluster %s: %s: %s is begun anew", x->of->cluster_id, pg_why_last(),
		         plain_text(x, as->name));
		r = database_reopen(x, t, database, conn);
		r = r < 0 ? r : table_copy(x, *conn, schema, name, only, as);
	}
	x->tables++;
	if (r != -EBADMSG && r != -ECONNRESET)
		return r;
	r = skip(x, as);
	return r < 0 ? r : database_reopen(x, t, database, conn);
}

static int tables_take(struct run *x, const struct pg_throwaway *t, const char *database, const char *set,
                       PGconn **conn, const PGresult *rows, bool shard)
{
	int r = 0;
	for (int i = 0; r == 0 && i < PQntuples(rows) && i < TABLES_MAX; i++) {
		const struct engine_table as = {database, pg_value(rows, i, 0), pg_value(rows, i, 1), set};
		r = table_take(x, t, database, conn, as.schema, as.name, *pg_value(rows, i, 2) == 'r', &as);
	}
	if (r == 0 && PQntuples(rows) > TABLES_MAX) {
		const struct engine_table others = {database, "", "", set};
		pg_why_set(NULL, "it has more than " NUMBER(TABLES_MAX) " tables: the others are left out");
		r = skip(x, &others);
	}
	for (size_t i = 0; r == 0 && shard && strcmp(database, "postgres") == 0 && i < x->spread_count; i++) {
		const struct spread *s = &x->spread[i];
		const struct engine_table as = {s->database, s->schema, s->name, set};
		r = table_take(x, t, database, conn, "sharded", s->table, true, &as);
	}
	return r;
}

static int database_copy(struct run *x, const struct pg_throwaway *t, const char *database, const char *set,
                         bool router, bool shard)
{
	PGconn *conn = NULL;
	PGresult *rows = NULL;
	int r = database_open(t, database, &conn);
	r = r < 0 || !router ? r : spread_find(x, conn, database);
	r = r < 0 ? r : pg_sql_rows(conn, SQL_MS, tables_sql, &rows);
	/* The service's own database has no owner among users: what is wrong there is wrong with the server. */
	if (r < 0 && strcmp(database, "postgres") != 0) {
		const struct engine_table as = {database, "", "", set};
		PQfinish(conn);
		return is_stopped(x) ? -ECANCELED : skip(x, &as);
	}
	if (r == 0) {
		if (x->to->count)
			x->to->count(x->to->ctx, x->tables + (size_t)PQntuples(rows) + (shard ? x->spread_count : 0));
		r = tables_take(x, t, database, set, &conn, rows, shard);
		PQclear(rows);
	}
	PQfinish(conn);
	return r;
}

static int databases_copy(struct run *x, const struct pg_throwaway *t, const char *set, bool router, bool shard)
{
	PGconn *conn;
	PGresult *rows;
	int r = pg_throwaway_open(t, "postgres", &conn);
	if (r < 0)
		return r;
	r = pg_sql_do(conn, SQL_MS, exporter_sql);
	r = r < 0 ? r
	          : pg_sql_rows(conn, SQL_MS,
	                        "select datname from pg_database where datallowconn and datconnlimit <> -2 and not "
	                        "datistemplate order by 1",
	                        &rows);
	PQfinish(conn);
	if (r < 0)
		return r;
	for (int i = 0; r == 0 && i < PQntuples(rows); i++)
		r = database_copy(x, t, pg_value(rows, i, 0), set, router, shard);
	PQclear(rows);
	return r;
}

static int set_export(struct run *x, const char *set, bool router, bool shard, const char **ret_why)
{
	const struct repo_progress p = {.tell = export_tell, .ctx = x, .cancel = &x->stop};
	const struct pg_stop stop = {is_stopped, x};
	struct pg_throwaway t;
	struct pg_target target;
	struct repo_manifest *m;
	char data[PG_PATH];
	int r = repo_manifest_open(x->repository, x->of->cluster_id, x->of->snapshot_id, set, &m);
	if (r < 0) {
		pg_why_set(ret_why, "%s", repository_why());
		return r;
	}
	const json_t *facts = repo_manifest_facts(m);
	r = pg_throwaway_room(x->e, repo_manifest_amount(m)->bytes);
	r = r < 0 ? r : pg_throwaway_new(x->e, x->of, (unsigned)json_number(facts, "major"), &t);
	if (r < 0) {
		pg_why_set(ret_why, "a throwaway server cannot be made: %s",
		           r == -ENOENT || r == -ENOSPC ? pg_why_last() : strerror(-r));
		repo_manifest_close(m);
		return r;
	}
	x->server = &t;
	pg_path_set(data, "%s/data", t.dir);
	r = repo_restore(m, data, t.user->uid, t.user->gid, THREADS, &p);
	if (r < 0)
		pg_why_set(ret_why, "%s", repository_why());
	pg_snapshot_target(facts, &target);
	r = r < 0 ? r : pg_throwaway_recover(&t, facts, &target, &stop, ret_why);
	r = r < 0 ? r : databases_copy(x, &t, set, router, shard);
	char why[600];
	snprintf(why, sizeof why, "%s", r < 0 ? (*ret_why ? *ret_why : pg_why_last()) : "");
	x->server = NULL;
	int ended = pg_throwaway_end(&t);
	if (r < 0)
		pg_why_set(ret_why, "%s", why);
	repo_manifest_close(m);
	return r < 0 ? r : ended;
}

int pg_backup_export(struct engine *e, const struct engine_source *of, const struct engine_export *to,
                     struct engine_progress *progress, struct arena *a, const char **ret_why)
{
	struct run x = {.e = e, .to = to, .progress = progress, .a = a, .of = of, .telling = PTHREAD_MUTEX_INITIALIZER};
	struct str *sets;
	const char *why = NULL;
	uint64_t number;
	bool routed = false;
	int r = pg_repository_get(e, of->region, of->group_id, &x.repository, ret_why);
	if (r < 0)
		return r;
	r = pg_snapshot_sets(x.repository, of, a, &sets, &x.count);
	if (r < 0)
		why = r == -ENOENT ? "there is no such snapshot, or it is not complete" : repository_why();
	/* Routers first: they know the tables. */
	for (int pass = 0; r == 0 && pass < 2; pass++)
		for (size_t i = 0; r == 0 && i < x.count; i++) {
			bool router = !str_to_u64(sets[i], UINT32_MAX, &number);
			if (router != (pass == 0))
				continue;
			routed |= router;
			r = set_export(&x, arena_z(a, sets[i]), router, routed && !router, &why);
			x.current++;
		}
	repository_put(x.repository);
	if (r < 0 && x.bound) {
		r = x.bound;
		why = r == -ENOSPC ? "the disk was getting full meanwhile, and the databases need the rest of it"
		                   : "it took longer than an export may";
	} else if (r < 0 && x.stop) {
		r = -ECANCELED;
	}
	if (r < 0)
		*ret_why = arena_z(a, str_of(why ? why : strerror(-r)));
	else
		pg_tell(progress, 100, "done");
	return r;
}

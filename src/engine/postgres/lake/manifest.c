/* The manifest lies where the rows were, because only there can "the rows are gone" and "the file has them" be one
 * decision: the commit of one transaction. Whatever happens to the database afterwards happens to both: a failover that
 * loses the commit, or a restore to an earlier time, brings back the rows and takes away the file's row. The file is
 * unnamed then, until a restore to a later time names it again.
 *
 * What stands in these tables a tenant's superuser may have written. They get nothing by it but the loss of their own
 * files: names are ids, looked for in the archive's own place, and nothing else is taken from here. */
#include "engine/postgres/lake/manifest.h"

#include "base/buf.h"
#include "base/id.h"
#include "engine/postgres/lake/table.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdlib.h>

#define ASK_MS 20000
#define LIST_MS 60000

/* A user's schema of that name gets another: what is in it would run with the service's rights. */
static const char schema_sql[] =
        "do $$ declare x record; begin\n"
        "for x in select oid from pg_namespace where nspname = 'steward_archive' and pg_get_userbyid(nspowner) <> "
        "'" PG_SUPER "' loop\n"
        "  execute format('alter schema steward_archive rename to %I', 'not_steward_archive_' || x.oid);\n"
        "end loop;\n"
        "if to_regclass('steward_archive.unnamed') is not null then return; end if;\n"
        "create schema if not exists steward_archive;\n"
        "create table if not exists steward_archive.files (number bigint generated always as identity, archive text "
        "not "
        "null, file text primary key, columns jsonb not null, rows bigint not null, bytes bigint not null, sha256 text "
        "not null, moved timestamptz not null, newest timestamptz not null);\n"
        "create index if not exists files_of on steward_archive.files (archive, number);\n"
        "create table if not exists steward_archive.unnamed (archive text not null, file text primary key, since "
        "timestamptz not null);\n"
        "end $$";

int pg_lake_manifest_make(PGconn *conn)
{
	return pg_sql_do(conn, ASK_MS, schema_sql);
}

/* It can be gone since, with a restore, and a user's in its place. */
static int manifest_check(PGconn *conn)
{
	int64_t count = 0;
	int r = pg_sql_int(conn, ASK_MS,
	                   "select count(*) from pg_namespace where nspname = 'steward_archive' and "
	                   "pg_get_userbyid(nspowner) = '" PG_SUPER "'",
	                   &count);
	if (r < 0 || count)
		return r;
	pg_why_set(NULL, "the database has no list of its archives' files");
	return -ENOENT;
}

int pg_lake_manifest_hold(PGconn *conn, struct arena *a, const char *archive)
{
	int64_t held = 0;
	int r = manifest_check(conn);
	if (r < 0)
		return r;
	r = pg_sql_int(conn, ASK_MS,
	               arena_printf(a, "select pg_try_advisory_xact_lock(hashtextextended(%s, 0))::int",
	                            pg_lake_literal(conn, a, arena_printf(a, "steward archive %s", archive).p))
	                       .p,
	               &held);
	return r < 0 ? r : held ? 0 : -EAGAIN;
}

/* A time of the service's clock, which tests move. */
static const char *time_sql(struct arena *a, int64_t ms)
{
	return arena_printf(a, "to_timestamp(%lld / 1000.0)", (long long)ms).p;
}

int pg_lake_manifest_add(PGconn *conn, struct arena *a, const struct pg_lake_file *f)
{
	const char *sql =
	        arena_printf(a,
	                     "insert into steward_archive.files (archive, file, columns, rows, bytes, sha256, moved, "
	                     "newest) values (%s, %s, %s, %llu, %llu, %s, %s, %s)",
	                     pg_lake_literal(conn, a, f->archive), pg_lake_literal(conn, a, f->file),
	                     pg_lake_literal(conn, a, f->columns), (unsigned long long)f->rows,
	                     (unsigned long long)f->bytes, pg_lake_literal(conn, a, f->sha256),
	                     time_sql(a, f->moved_ms), time_sql(a, f->newest_ms))
	                .p;
	return pg_sql_do(conn, ASK_MS, sql);
}

int pg_lake_manifest_remove(PGconn *conn, struct arena *a, const char *archive, const char *file)
{
	int64_t gone = 0;
	const char *sql = arena_printf(a,
	                               "with gone as (delete from steward_archive.files where archive = %s and file = "
	                               "%s returning 1) select count(*) from gone",
	                               pg_lake_literal(conn, a, archive), pg_lake_literal(conn, a, file))
	                          .p;
	int r = pg_sql_int(conn, ASK_MS, sql, &gone);
	return r < 0 ? r : gone == 1 ? 0 : -ENOENT;
}

static const char *cell(struct arena *a, const PGresult *rows, int row, int column)
{
	return arena_z(a, str_of(pg_value(rows, row, column)));
}

int pg_lake_manifest_is_there(PGconn *conn)
{
	int r = manifest_check(conn);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* Nothing is asked of a schema that is a user's. */
static int rows_ask(PGconn *conn, const char *sql, PGresult **ret_rows)
{
	int r = manifest_check(conn);
	return r < 0 ? r : pg_sql_rows(conn, LIST_MS, sql, ret_rows);
}

#define FILES                                                                                                    \
	"select file, columns, rows, bytes, sha256, (extract(epoch from moved) * 1000)::bigint, (extract(epoch " \
	"from newest) * 1000)::bigint from steward_archive.files where archive = %s "

static struct engine_lake_file file_read(struct arena *a, const PGresult *rows, int i)
{
	return (struct engine_lake_file){.id = cell(a, rows, i, 0),
	                                 .columns = cell(a, rows, i, 1),
	                                 .rows = strtoull(pg_value(rows, i, 2), NULL, 10),
	                                 .bytes = strtoull(pg_value(rows, i, 3), NULL, 10),
	                                 .sha256 = cell(a, rows, i, 4),
	                                 .moved_ms = strtoll(pg_value(rows, i, 5), NULL, 10),
	                                 .newest_ms = strtoll(pg_value(rows, i, 6), NULL, 10)};
}

int pg_lake_manifest_list(PGconn *conn, struct arena *a, const char *archive, size_t skip, size_t most,
                          struct engine_lake_file **ret_files, size_t *ret_count)
{
	PGresult *rows;
	int r = rows_ask(conn,
	                 arena_printf(a, FILES "order by number offset %zu limit %zu",
	                              pg_lake_literal(conn, a, archive), skip, most)
	                         .p,
	                 &rows);
	if (r < 0)
		return r;
	size_t count = (size_t)PQntuples(rows);
	count = count < most ? count : most;
	struct engine_lake_file *files = arena_new_array(a, struct engine_lake_file, count + 1);
	for (size_t i = 0; i < count; i++)
		files[i] = file_read(a, rows, (int)i);
	PQclear(rows);
	*ret_files = files;
	*ret_count = count;
	return 0;
}

int pg_lake_manifest_find(PGconn *conn, struct arena *a, const char *archive, const char *file,
                          struct engine_lake_file *ret_file)
{
	PGresult *rows;
	const char *of = pg_lake_literal(conn, a, archive), *named = pg_lake_literal(conn, a, file);
	int r = rows_ask(conn, arena_printf(a, FILES "and file = %s", of, named).p, &rows);
	if (r < 0)
		return r;
	if (PQntuples(rows))
		*ret_file = file_read(a, rows, 0);
	else
		r = -ENOENT;
	PQclear(rows);
	return r;
}

#define SUMS                                                                                                         \
	"select count(*), coalesce(sum(rows), 0)::bigint, coalesce(sum(bytes), 0)::bigint, coalesce((extract(epoch " \
	"from min(moved)) * 1000)::bigint, 0), coalesce((extract(epoch from max(moved)) * 1000)::bigint, 0) from "

static int sums_read(PGconn *conn, const char *sql, struct engine_lake_held *ret_held)
{
	PGresult *rows;
	int r = rows_ask(conn, sql, &rows);
	if (r < 0)
		return r;
	*ret_held = (struct engine_lake_held){.files = strtoull(pg_value(rows, 0, 0), NULL, 10),
	                                      .rows = strtoull(pg_value(rows, 0, 1), NULL, 10),
	                                      .bytes = strtoull(pg_value(rows, 0, 2), NULL, 10),
	                                      .oldest_moved_ms = strtoll(pg_value(rows, 0, 3), NULL, 10),
	                                      .newest_moved_ms = strtoll(pg_value(rows, 0, 4), NULL, 10)};
	PQclear(rows);
	return 0;
}

int pg_lake_manifest_sums(PGconn *conn, struct arena *a, const char *archive, struct engine_lake_held *ret_held)
{
	const char *of = pg_lake_literal(conn, a, archive);
	return sums_read(conn, arena_printf(a, SUMS "steward_archive.files where archive = %s", of).p, ret_held);
}

static int expire(PGconn *conn, struct arena *a, const char *archive, int64_t before_ms, struct engine_lake_held *gone)
{
	const char *of = pg_lake_literal(conn, a, archive),
	           *before = before_ms == INT64_MAX ? "'infinity'" : time_sql(a, before_ms);
	int r = pg_lake_manifest_hold(conn, a, archive);
	return r < 0 ? r
	             : sums_read(conn,
	                         arena_printf(a,
	                                      "with gone as (delete from steward_archive.files where archive = %s and "
	                                      "newest <= %s returning rows, bytes, moved) " SUMS "gone",
	                                      of, before)
	                                 .p,
	                         gone);
}

/* What a statement has left undone is undone. */
static int transaction_end(PGconn *conn, int r)
{
	int ended = PQstatus(conn) == CONNECTION_OK ? pg_sql_do(conn, ASK_MS, r < 0 ? "rollback" : "commit") : -EIO;
	return r < 0 ? r : ended;
}

int pg_lake_manifest_expire(PGconn *conn, struct arena *a, const char *archive, int64_t before_ms,
                            struct engine_lake_held *ret_gone)
{
	int r = pg_sql_do(conn, ASK_MS, "begin");
	return transaction_end(conn, r < 0 ? r : expire(conn, a, archive, before_ms, ret_gone));
}

/* --- files that no row names */

struct found {
	PGconn *conn;
	struct arena *arena;
	struct buf names; /* ", ('...')" of each */
	size_t count;
};

static int file_note(void *ctx, const char *file)
{
	struct found *f = ctx;
	if (!id_is_valid(str_of(file)))
		return 0;
	buf_printf(&f->names, "%s(%s)", f->count++ ? ", " : "", pg_lake_literal(f->conn, f->arena, file));
	return 0;
}

/* Notes those that nobody names, from now on; forgets those that are named again, or gone. */
static int unnamed_note(struct found *f, const char *archive, int64_t now_ms)
{
	const char *of = pg_lake_literal(f->conn, f->arena, archive);
	if (f->count == 0)
		return pg_sql_do(
		        f->conn, ASK_MS,
		        arena_printf(f->arena, "delete from steward_archive.unnamed where archive = %s", of).p);
	buf_c(&f->names, 0);
	const char *sql =
	        arena_printf(f->arena,
	                     "with there (file) as (values %s), gone as (delete from steward_archive.unnamed u where "
	                     "archive = %s and (file not in (select file from there) or exists (select from "
	                     "steward_archive.files f where f.archive = %s and f.file = u.file))) insert into "
	                     "steward_archive.unnamed select %s, file, %s from there where not exists (select from "
	                     "steward_archive.files f where f.archive = %s and f.file = there.file) on conflict do "
	                     "nothing",
	                     f->names.p, of, of, of, time_sql(f->arena, now_ms), of)
	                .p;
	return pg_sql_do(f->conn, LIST_MS, sql);
}

/* Without a row they are nobody's, so it does not matter when the service ends between these. */
static int unnamed_drop(PGconn *conn, struct arena *a, const char *archive, const struct pg_lake_store *store,
                        int64_t oldest_ms, struct engine_lake_swept *swept)
{
	const char *before = oldest_ms == INT64_MAX ? "'infinity'" : time_sql(a, oldest_ms);
	PGresult *rows;
	int r = pg_sql_rows(conn, LIST_MS,
	                    arena_printf(a, "select file, since < %s from steward_archive.unnamed where archive = %s",
	                                 before, pg_lake_literal(conn, a, archive))
	                            .p,
	                    &rows);
	if (r < 0)
		return r;
	for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
		if (!id_is_valid(str_of(pg_value(rows, i, 0))))
			continue;
		if (*pg_value(rows, i, 1) != 't') {
			swept->kept++;
			continue;
		}
		r = store->drop(store->ctx, pg_value(rows, i, 0));
		swept->dropped += r == 0;
	}
	PQclear(rows);
	return r;
}

static int sweep(PGconn *conn, struct arena *a, const char *archive, const struct pg_lake_store *store, int64_t now_ms,
                 int64_t oldest_ms, struct engine_lake_swept *swept)
{
	struct found f = {.conn = conn, .arena = a};
	int r = pg_lake_manifest_hold(conn, a, archive);
	r = r < 0 ? r : store->list(store->ctx, file_note, &f);
	r = r < 0 ? r : unnamed_note(&f, archive, now_ms);
	r = r < 0 ? r : unnamed_drop(conn, a, archive, store, oldest_ms, swept);
	buf_free(&f.names);
	return r;
}

int pg_lake_manifest_sweep(PGconn *conn, struct arena *a, const char *archive, const struct pg_lake_store *store,
                           int64_t now_ms, int64_t oldest_ms, struct engine_lake_swept *ret_swept)
{
	*ret_swept = (struct engine_lake_swept){0};
	int r = pg_sql_do(conn, ASK_MS, "begin");
	return transaction_end(conn, r < 0 ? r : sweep(conn, a, archive, store, now_ms, oldest_ms, ret_swept));
}

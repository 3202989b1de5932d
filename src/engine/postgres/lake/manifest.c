/* The manifest lies where the rows were, because only there can "the rows are gone" and "the file has them" be one
 * decision: the commit of one transaction. Whatever happens to the database afterwards happens to both: a failover that
 * loses the commit, or a restore to an earlier time, brings back the rows and takes away the file's row. The file is
 * unnamed then, until a restore to a later time names it again.
 *
 * What stands in these tables a tenant's superuser may have written. They get nothing by it but the loss of their own
 * files: names are ids, looked for in the archive's own place, and nothing else is taken from here. */
#include "engine/postgres/lake/manifest.h"

#include "base/buf.h"
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
        "not null, moved timestamptz not null);\n"
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
	                     "insert into steward_archive.files (archive, file, columns, rows, bytes, sha256, moved) "
	                     "values (%s, %s, %s, %llu, %llu, %s, %s)",
	                     pg_lake_literal(conn, a, f->archive), pg_lake_literal(conn, a, f->file),
	                     pg_lake_literal(conn, a, f->columns), (unsigned long long)f->rows,
	                     (unsigned long long)f->bytes, pg_lake_literal(conn, a, f->sha256),
	                     time_sql(a, f->moved_ms))
	                .p;
	return pg_sql_do(conn, ASK_MS, sql);
}

static const char *cell(struct arena *a, const PGresult *rows, int row, int column)
{
	return arena_z(a, str_of(pg_value(rows, row, column)));
}

int pg_lake_manifest_list(PGconn *conn, struct arena *a, const char *archive, struct pg_lake_file **ret_files,
                          size_t *ret_count)
{
	PGresult *rows;
	int r = manifest_check(conn);
	r = r < 0 ? r
	          : pg_sql_rows(
	                    conn, LIST_MS,
	                    arena_printf(a,
	                                 "select file, columns, rows, bytes, sha256, (extract(epoch from moved) * "
	                                 "1000)::bigint from steward_archive.files where archive = %s order by number",
	                                 pg_lake_literal(conn, a, archive))
	                            .p,
	                    &rows);
	if (r < 0)
		return r;
	size_t count = (size_t)PQntuples(rows);
	struct pg_lake_file *files = arena_new_array(a, struct pg_lake_file, count + 1);
	for (size_t i = 0; i < count; i++)
		files[i] = (struct pg_lake_file){.archive = archive,
		                                 .file = cell(a, rows, (int)i, 0),
		                                 .columns = cell(a, rows, (int)i, 1),
		                                 .rows = strtoull(pg_value(rows, (int)i, 2), NULL, 10),
		                                 .bytes = strtoull(pg_value(rows, (int)i, 3), NULL, 10),
		                                 .sha256 = cell(a, rows, (int)i, 4),
		                                 .moved_ms = strtoll(pg_value(rows, (int)i, 5), NULL, 10)};
	PQclear(rows);
	*ret_files = files;
	*ret_count = count;
	return 0;
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
                        int64_t oldest_ms, uint64_t *ret_dropped)
{
	const char *before = oldest_ms == INT64_MAX ? "'infinity'" : time_sql(a, oldest_ms);
	PGresult *rows;
	int r = pg_sql_rows(conn, LIST_MS,
	                    arena_printf(a,
	                                 "select file from steward_archive.unnamed where archive = %s and since < %s",
	                                 pg_lake_literal(conn, a, archive), before)
	                            .p,
	                    &rows);
	if (r < 0)
		return r;
	for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
		if (!id_is_valid(str_of(pg_value(rows, i, 0))))
			continue;
		r = store->drop(store->ctx, pg_value(rows, i, 0));
		*ret_dropped += r == 0;
	}
	PQclear(rows);
	return r;
}

static int sweep(PGconn *conn, struct arena *a, const char *archive, const struct pg_lake_store *store, int64_t now_ms,
                 int64_t oldest_ms, uint64_t *ret_dropped)
{
	struct found f = {.conn = conn, .arena = a};
	int r = pg_lake_manifest_hold(conn, a, archive);
	r = r < 0 ? r : store->list(store->ctx, file_note, &f);
	r = r < 0 ? r : unnamed_note(&f, archive, now_ms);
	r = r < 0 ? r : unnamed_drop(conn, a, archive, store, oldest_ms, ret_dropped);
	buf_free(&f.names);
	return r;
}

int pg_lake_manifest_sweep(PGconn *conn, struct arena *a, const char *archive, const struct pg_lake_store *store,
                           int64_t now_ms, int64_t oldest_ms, uint64_t *ret_dropped)
{
	*ret_dropped = 0;
	int r = pg_sql_do(conn, ASK_MS, "begin");
	r = r < 0 ? r : sweep(conn, a, archive, store, now_ms, oldest_ms, ret_dropped);
	int ended = PQstatus(conn) == CONNECTION_OK ? pg_sql_do(conn, ASK_MS, r < 0 ? "rollback" : "commit") : -EIO;
	return r < 0 ? r : ended;
}

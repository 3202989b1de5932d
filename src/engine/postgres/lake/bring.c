/* One transaction takes a file's name out of the manifest and puts its rows into the table:
 *
 *   begin; the table is held; the file -> steward-lake -> COPY into a temporary table; INSERT ... SELECT; rows that
 *   stay -> steward-lake -> another file, and its name into the manifest; the first file's name goes; commit
 *
 * As with rows that leave, the commit is the one decision, and whatever is killed before it leaves a file that nobody
 * names.
 *
 * Rows are written by the service's own role. So nothing of a tenant's may run with that: no trigger, check or
 * generated column of users' functions, and no type whose input or comparison is theirs. Defaults are not asked, since
 * each column has its value. Foreign keys are looked up by the owner of the table that they point at; its indexes must
 * not be made by users' functions either, and it is held as well. */
#include "engine/postgres/lake/bring.h"

#include "base/id.h"
#include "base/json.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/lake/manifest.h"
#include "engine/postgres/lake/writer.h"
#include "engine/postgres/model/planned.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/copy_stream.h"
#include "engine/postgres/sql/sql.h"
#include "engine/postgres/sql/sql_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHORT_MS 20000
#define LONG_MS 600000
#define STAGED "pg_temp.steward_brought"

struct work {
	PGconn *conn;
	const struct pg_lake_bring *want;
	const struct pg_stop *stop;
	struct arena *arena;
	struct pg_lake_table table;
	struct engine_lake_file file;
	const char *copied, *inserted; /* lists of columns: of the file; of the table, without generated ones */
	const char *condition;         /* NULL: all rows */
	uint64_t brought;
};

/* --- what may not run with the rows */

#define USERS_CODE                                                                                                     \
	"exists (select from pg_depend d left join pg_operator o on refclassid = 'pg_operator'::regclass and o.oid = " \
	"refobjid join pg_proc p on p.oid = coalesce(o.oprcode::oid, refobjid) where refclassid in "                   \
	"('pg_proc'::regclass, 'pg_operator'::regclass) and pg_get_userbyid(proowner) <> '" PG_SUPER "' and "          \
	"(classid = 'pg_constraint'::regclass and objid in (select oid from pg_constraint where conrelid = rel) or "   \
	"classid = 'pg_attrdef'::regclass and objid in (select k.oid from pg_attrdef k join pg_attribute on attrelid " \
	"= adrelid and attnum = adnum where adrelid = rel and attgenerated <> '')))"
#define USERS_TYPES                                                                                                  \
	"exists (with recursive t as (select atttypid o from pg_attribute where attrelid = rel and attnum > 0 and "  \
	"not "                                                                                                       \
	"attisdropped union select typelem from t join pg_type on oid = t.o where typelem <> 0) select from t join " \
	"pg_type on oid = t.o where typtype not in ('b', 'e') and typnamespace <> 'pg_catalog'::regnamespace)"
#define USERS_KEYS                                                                                                     \
	"exists (select from pg_constraint f join pg_class c on c.oid = confrelid where contype = 'f' and conrelid = " \
	"rel and (relkind <> 'r' or " PG_PLANNED_CODE(                                                                 \
	        "confrelid") " or exists (select from pg_attribute join pg_type y on y.oid = atttypid where attrelid " \
	                     "= conrelid and attnum = any (conkey) and typnamespace <> 'pg_catalog'::regnamespace)))"
#define JUDGE                                                                                                      \
	"select exists (select from pg_trigger where tgrelid = rel and not tgisinternal and tgenabled <> 'D' and " \
	"tgtype & 4 <> 0), " USERS_CODE ", " USERS_TYPES ", " USERS_KEYS " from (select %s::oid as rel) w"

/* In the order of the columns of JUDGE. */
static const char *const refused[] = {
        "has a trigger for rows that are added: it would not run, so rows cannot come back to it",
        "has checks or generated columns made by functions or operators of users, which would run with the service's "
        "rights: rows cannot come back to it",
        "has columns of domains, composite types or ranges of users: rows cannot come back to it",
        "has foreign keys to a partitioned table, to one with indexes made by functions of users, or of types of "
        "users: rows cannot come back to it"};

/* What the keys point at stays as it is until the end, too. */
static int keys_hold(struct work *w)
{
	PGresult *rows;
	int r = pg_sql_rows(
	        w->conn, SHORT_MS,
	        arena_printf(w->arena,
	                     "select distinct confrelid::regclass from pg_constraint join pg_class c on "
	                     "c.oid = confrelid where contype = 'f' and conrelid = %s and relkind = 'r' and "
	                     "confrelid <> conrelid",
	                     w->table.oid)
	                .p,
	        &rows);
	if (r < 0)
		return r;
	for (int i = 0; r == 0 && i < PQntuples(rows); i++)
		if (pg_sql_do(w->conn, SHORT_MS,
		              arena_printf(w->arena, "lock table only %s in share update exclusive mode",
		                           pg_value(rows, i, 0))
		                      .p) < 0)
			r = PQstatus(w->conn) == CONNECTION_OK ? -EAGAIN : -EIO;
	PQclear(rows);
	return r;
}

static int table_judge(struct work *w)
{
	PGresult *rows;
	int r = pg_sql_rows(w->conn, SHORT_MS, arena_printf(w->arena, JUDGE, w->table.oid).p, &rows);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < sizeof refused / sizeof *refused; i++)
		if (*pg_value(rows, 0, (int)i) != 'f') {
			pg_why_set(NULL, "%s %s", w->want->table, refused[i]);
			r = -EINVAL;
		}
	PQclear(rows);
	return r;
}

/* --- what the file has */

static int file_choose(struct work *w)
{
	struct engine_lake_file *list;
	size_t count = 0;
	int r = 0;
	if (w->want->file) {
		r = pg_lake_manifest_find(w->conn, w->arena, w->want->archive, w->want->file, &w->file);
	} else {
		r = pg_lake_manifest_list(w->conn, w->arena, w->want->archive, 0, 1, &list, &count);
		if (r == 0 && count)
			w->file = list[0];
		else if (r == 0)
			r = -ENOENT;
	}
	if (r == -ENOENT)
		pg_why_set(NULL, "the archive has no such file");
	return r;
}

static bool is_generated(const PGresult *rows, const char *name)
{
	for (int i = 0; i < PQntuples(rows); i++)
		if (strcmp(pg_value(rows, i, 0), name) == 0)
			return true;
	return false;
}

/* A column of the file must be one of the table's still, and of what it was. */
static int column_add(struct work *w, const json_t *one, struct buf *copied)
{
	struct str name = json_field(one, "name");
	const struct pg_lake_column *c = pg_lake_table_column(&w->table, name);
	struct buf sql = {0};
	char type[PG_LAKE_TYPE] = "";
	if (c)
		pg_lake_value_sql(c, &sql, type);
	buf_free(&sql);
	if (!c || !str_is(json_field(one, "type"), type)) {
		pg_why_set(NULL, "%s has no column %.*s any more as it was when its rows were archived", w->want->table,
		           STR_ARG(name));
		return -EINVAL;
	}
	buf_printf(copied, "%s%s", copied->n ? ", " : "", c->quoted);
	return 0;
}

static int columns_match(struct work *w)
{
	const json_t *columns = doc_json(w->arena, str_of(w->file.columns));
	struct buf copied = {0};
	int r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(columns); i++)
		r = column_add(w, json_array_get(columns, i), &copied);
	w->copied = buf_keep(&copied, w->arena).p;
	return r;
}

/* All but generated ones, also those that came since: the default of what is not named would be asked. */
static int columns_choose(struct work *w)
{
	struct buf inserted = {0};
	PGresult *generated;
	int r = pg_sql_rows(w->conn, SHORT_MS,
	                    arena_printf(w->arena,
	                                 "select attname from pg_attribute where attrelid = %s and attnum > 0 and not "
	                                 "attisdropped and attgenerated <> ''",
	                                 w->table.oid)
	                            .p,
	                    &generated);
	if (r < 0)
		return r;
	for (size_t i = 0; i < w->table.column_count; i++)
		if (!is_generated(generated, w->table.columns[i].name))
			buf_printf(&inserted, "%s%s", inserted.n ? ", " : "", w->table.columns[i].quoted);
	PQclear(generated);
	w->inserted = buf_keep(&inserted, w->arena).p;
	return 0;
}

static int condition_make(struct work *w)
{
	struct buf sql = {0};
	int r = w->want->query ? pg_lake_query_make(&w->table, w->want->query, w->arena, &sql) : 0;
	const char *text = buf_keep(&sql, w->arena).p;
	w->condition = w->want->query ? text : NULL;
	return r;
}

static int transaction_begin(struct work *w)
{
	int r = pg_lake_begin(w->conn);
	r = r < 0 ? r : pg_lake_manifest_hold(w->conn, w->arena, w->want->archive);
	r = r < 0 ? r : file_choose(w);
	r = r < 0 ? r : pg_lake_table_hold(w->conn, w->want->table, w->arena, &w->table);
	r = r < 0 ? r : keys_hold(w);
	r = r < 0 ? r : table_judge(w);
	r = r < 0 ? r : columns_match(w);
	r = r < 0 ? r : columns_choose(w);
	return r < 0 ? r : condition_make(w);
}

/* --- into a temporary table */

static int bytes_copy(void *ctx, const char *bytes, size_t n)
{
	struct work *w = ctx;
	if (PQputCopyData(w->conn, bytes, (int)n) == 1)
		return 0;
	pg_why_set(NULL, "copy: %s", PQerrorMessage(w->conn));
	return -EIO;
}

static int copy_begin(struct work *w)
{
	PGresult *begun = PQexec(w->conn, arena_printf(w->arena, "copy " STAGED " (%s) from stdin", w->copied).p);
	int r = PQresultStatus(begun) == PGRES_COPY_IN ? 0 : -EIO;
	if (r < 0)
		pg_why_set(NULL, "copy: %s", PQresultErrorMessage(begun));
	PQclear(begun);
	return r;
}

static int copy_end(struct work *w)
{
	int r = PQputCopyEnd(w->conn, NULL) == 1 ? 0 : -EIO;
	for (PGresult *one; (one = PQgetResult(w->conn)); PQclear(one))
		if (PQresultStatus(one) != PGRES_COMMAND_OK && r == 0) {
			pg_why_set(NULL, "%s", PQresultErrorMessage(one));
			r = -EINVAL; /* the table does not take what it had */
		}
	return r;
}

static const char *read_header(struct work *w)
{
	struct buf json = {0};
	json_open(&json, '{');
	json_key(&json, "columns");
	json_raw(&json, str_of(w->file.columns));
	json_pair_bool(&json, "read", true);
	json_close(&json, '}');
	return buf_keep(&json, w->arena).p;
}

static int rows_stage(struct work *w, int descriptor)
{
	struct pg_lake_writer reader;
	int r = pg_sql_do(
	        w->conn, SHORT_MS,
	        arena_printf(w->arena, "create temp table steward_brought (like %s) on commit drop", w->table.quoted)
	                .p);
	r = r < 0 ? r : pg_lake_reader_open(&reader, str_of(read_header(w)), descriptor, w->stop);
	if (r < 0)
		return r;
	r = copy_begin(w);
	r = r < 0 ? r : pg_lake_reader_take(&reader, w->file.rows, bytes_copy, w);
	r = r < 0 ? r : copy_end(w);
	pg_lake_writer_close(&reader);
	return r;
}

static int file_stage(struct work *w)
{
	int descriptor = memfd_create("rows", MFD_CLOEXEC);
	if (descriptor < 0)
		return -errno;
	int r = w->want->get(w->want->ctx, &w->file, descriptor);
	r = r < 0 ? r : rows_stage(w, descriptor);
	close(descriptor);
	return r;
}

/* --- into the table, or into another file */

static int rows_insert(struct work *w)
{
	PGresult *rows;
	int r = pg_sql_rows(w->conn, LONG_MS,
	                    arena_printf(w->arena,
	                                 "insert into %s (%s) overriding system value select %s from " STAGED "%s%s",
	                                 w->table.quoted, w->inserted, w->inserted, w->condition ? " where " : "",
	                                 w->condition ? w->condition : "")
	                            .p,
	                    &rows);
	if (r == -EPROTO)
		return strstr(pg_why_last(), "duplicate key value") || strstr(pg_why_last(), "exclusion constraint")
		               ? -EEXIST
		               : -EINVAL;
	if (r < 0)
		return r;
	w->brought = strtoull(PQcmdTuples(rows), NULL, 10);
	PQclear(rows);
	return 0;
}

static const char *write_header(struct work *w, const char *columns)
{
	struct buf json = {0};
	json_open(&json, '{');
	json_key(&json, "columns");
	json_raw(&json, str_of(columns));
	json_key(&json, "order");
	json_open(&json, '[');
	for (size_t i = 0; i < w->want->order_count; i++)
		if (pg_lake_table_column(&w->table, str_of(w->want->order[i])))
			json_z(&json, w->want->order[i]);
	json_close(&json, ']');
	json_close(&json, '}');
	return buf_keep(&json, w->arena).p;
}

static int rest_name(struct work *w, const struct pg_lake_writer *writer, const char *file, const char *columns,
                     const char *sum)
{
	const struct pg_lake_file f = {.archive = w->want->archive,
	                               .file = file,
	                               .columns = columns,
	                               .rows = w->file.rows - w->brought,
	                               .bytes = writer->bytes,
	                               .sha256 = sum,
	                               .moved_ms = w->file.moved_ms,
	                               .newest_ms = w->file.newest_ms};
	return pg_lake_manifest_add(w->conn, w->arena, &f);
}

static int rest_put(struct work *w, struct pg_lake_writer *writer, const char *file, const char *columns, uint64_t rows)
{
	char sum[PG_LAKE_SHA256];
	if (rows != w->file.rows - w->brought) {
		pg_why_set(NULL, "the rows that stay are not all that are left");
		return -EIO;
	}
	pg_lake_writer_full(writer, rows);
	int r = w->want->put.put(w->want->put.ctx, file, pg_lake_writer_read, writer);
	if (r == 0 && !writer->whole) {
		pg_why_set(NULL, "the object store has not read all of the file");
		r = -EIO;
	}
	if (r < 0)
		return r;
	pg_lake_writer_sum(writer, sum);
	return rest_name(w, writer, file, columns, sum);
}

static int rest_write(struct work *w)
{
	const char *values, *columns, *file = id_make(w->arena).p;
	struct pg_lake_writer writer;
	struct pg_copy copy = {.write = pg_lake_writer_write, .ctx = &writer, .binary = true};
	pg_lake_table_values(&w->table, w->arena, &values, &columns);
	int r = pg_lake_writer_open(&writer, str_of(write_header(w, columns)), w->want->bytes_max, w->stop);
	if (r < 0)
		return r;
	r = pg_sql_copy(w->conn,
	                arena_printf(w->arena,
	                             "copy (select %s from " STAGED " where not (%s)) to stdout (format binary)",
	                             values, w->condition)
	                        .p,
	                w->stop, &copy);
	r = r == -EBADMSG ? -EIO : r;
	r = r < 0 ? r : rest_put(w, &writer, file, columns, copy.rows);
	pg_lake_writer_close(&writer);
	return r;
}

static int rows_bring(struct work *w)
{
	int r = file_stage(w);
	r = r < 0 ? r : rows_insert(w);
	if (r == 0 && w->brought && w->brought < w->file.rows)
		r = rest_write(w);
	if (r == 0 && w->brought)
		r = pg_lake_manifest_remove(w->conn, w->arena, w->want->archive, w->file.id);
	return r;
}

int pg_lake_bring(PGconn *conn, const struct pg_lake_bring *want, const struct pg_stop *stop, struct arena *a,
                  struct engine_lake_moved *ret_moved)
{
	struct work w = {.conn = conn, .want = want, .stop = stop, .arena = a};
	struct engine_lake_held held = {0};
	int r = transaction_begin(&w);
	r = r < 0 ? r : rows_bring(&w);
	r = r < 0 ? r : pg_lake_manifest_sums(conn, a, want->archive, &held);
	r = r < 0 ? r : pg_sql_do(conn, SHORT_MS, w.brought ? "commit" : "rollback");
	if (r < 0)
		return r;
	*ret_moved = (struct engine_lake_moved){.rows = w.brought,
	                                        .bytes = w.file.rows ? w.file.bytes * w.brought / w.file.rows : 0,
	                                        .over = !held.files};
	return 0;
}

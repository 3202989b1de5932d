/* One transaction deletes rows, hands them to the file, and names the file in the manifest:
 *
 *   begin; the table is held; COPY (DELETE ... RETURNING) -> steward-lake -> the object store; the manifest's row;
 *   commit
 *
 * Whatever is killed before the commit, the rows are back and a file, if there is one, has no name: the sweep takes it.
 * The commit is the one decision. When it is not known whether it happened, nobody needs to know: the next batch finds
 * the rows, or it does not. A file's name is never used twice, so a batch that was believed dead and writes on harms
 * nothing: its transaction has ended, and no row names what it writes.
 *
 * A table is looked through page by page, once: to ask for the next rows that fulfil the condition would go over the
 * pages that are empty by now again and again. Rows that somebody has locked are left out, so neither waits for the
 * other; what changed since the statement began is not visible to it, and stays. */
#include "engine/postgres/lake/move.h"

#include "base/id.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/lake/manifest.h"
#include "engine/postgres/lake/query.h"
#include "engine/postgres/lake/writer.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/copy_stream.h"
#include "engine/postgres/sql/sql.h"
#include "engine/postgres/sql/sql_copy.h"
#include "filter/filter.h"

#include <errno.h>
#include <stdlib.h>

#define SHORT_MS 20000
#define COMMIT_MS 60000
#define PREVIEW_MS 30000
#define PREVIEW_PAGES 32768 /* 256 MB */
#define PAGES_AT_ONCE 2048  /* 16 MB of a table are looked through in a transaction */

/* With constraint_exclusion, which a database's owner can set for it, checks are evaluated by the planner. */
static const char begin_sql[] =
        "begin isolation level read committed; set local statement_timeout = '10min'; set local "
        "idle_in_transaction_session_timeout = '10min'; set local row_security = off; set local constraint_exclusion = "
        "off";

int pg_lake_begin(PGconn *conn)
{
	return pg_sql_do(conn, SHORT_MS, begin_sql);
}

struct batch {
	PGconn *conn;
	const struct pg_lake_move *want;
	const struct pg_lake_put *store;
	const struct pg_stop *stop;
	struct arena *arena;
	struct pg_lake_table table;
	const char *file, *condition, *columns; /* JSON, as in the manifest */
	const char *header;                     /* for steward-lake */
	const char *values;                     /* of SQL */
	const char *field;                      /* of the wish, that was looked at last */
	uint32_t page, page_end;
};

static const char *text_keep(struct batch *b, struct buf *text)
{
	return buf_keep(text, b->arena).p;
}

/* --- the statement */

static int age_make(struct batch *b, struct buf *sql)
{
	struct pg_lake_age age = {.format = b->want->format, .before_ms = b->want->before_ms};
	struct str rest;
	const struct pg_lake_column *c =
	        pg_lake_field(b->table.columns, b->table.column_count, str_of(b->want->field), &rest);
	struct buf path = {0};
	const char *why = "is no column of the table";
	pg_lake_path_sql(rest, &path);
	if (rest.n)
		age.path = text_keep(b, &path);
	if (c && pg_lake_age_sql(c, &age, sql, &why))
		return 0;
	pg_why_set(NULL, "%s %s", b->want->field, why);
	return -EINVAL;
}

int pg_lake_query_make(const struct pg_lake_table *t, const char *query, struct arena *a, struct buf *sql)
{
	const char *fault;
	struct buf why = {0};
	const json_t *filter = filter_parse_ordered(str_of(query), a, &fault);
	if (!filter) {
		pg_why_set(NULL, "the query %s", fault);
		return -EINVAL;
	}
	bool valid = pg_lake_query_sql(t->columns, t->column_count, filter, sql, &why);
	if (!valid)
		pg_why_set(NULL, "%.*s", STR_ARG(why));
	buf_free(&why);
	return valid ? 0 : -EINVAL;
}

static int condition_make(struct batch *b)
{
	struct buf sql = {0};
	b->field = b->want->query ? "criteria.query" : "criteria.dateField";
	int r = b->want->query ? pg_lake_query_make(&b->table, b->want->query, b->arena, &sql) : age_make(b, &sql);
	for (size_t i = 0; r == 0 && i < b->table.column_count; i++)
		pg_lake_fits_sql(&b->table.columns[i], &sql);
	b->condition = text_keep(b, &sql);
	return r;
}

static int header_make(struct batch *b)
{
	struct buf json = {0};
	json_open(&json, '{');
	json_key(&json, "columns");
	json_raw(&json, str_of(b->columns));
	json_key(&json, "order");
	json_open(&json, '[');
	for (size_t i = 0; i < b->want->order_count; i++) {
		b->field = arena_printf(b->arena, "partitionFields[%zu].fieldName", i).p;
		if (!pg_lake_table_column(&b->table, str_of(b->want->order[i]))) {
			pg_why_set(NULL, "%s is no column of the table", b->want->order[i]);
			buf_free(&json);
			return -EINVAL;
		}
		json_z(&json, b->want->order[i]);
	}
	json_close(&json, ']');
	json_close(&json, '}');
	b->header = text_keep(b, &json);
	return 0;
}

/* Rows are chosen and locked first, and then deleted where they lie. */
static const char *statement_make(struct batch *b)
{
	return arena_printf(b->arena,
	                    "copy (delete from only %s where ctid = any (array(select ctid from only %s where ctid >= "
	                    "'(%u,0)' and ctid < '(%u,0)' and %s limit %u for update skip locked)) returning %s) to "
	                    "stdout (format binary)",
	                    b->table.quoted, b->table.quoted, b->page, b->page_end, b->condition, b->want->rows_max,
	                    b->values)
	        .p;
}

/* --- the batch */

static int rows_copy(struct batch *b, struct pg_lake_writer *w, uint64_t *ret_rows)
{
	struct pg_copy rows = {.write = pg_lake_writer_write, .ctx = w, .binary = true};
	int r = pg_sql_copy(b->conn, statement_make(b), b->stop, &rows);
	/* What a tenant's values make of the statement is no fault of the table's definition. */
	if (r == -EBADMSG)
		r = -EIO;
	*ret_rows = rows.rows;
	return r;
}

static int file_name(struct batch *b, const struct pg_lake_writer *w, uint64_t rows, const char *sum)
{
	const struct pg_lake_file f = {.archive = b->want->archive,
	                               .file = b->file,
	                               .columns = b->columns,
	                               .rows = rows,
	                               .bytes = w->bytes,
	                               .sha256 = sum,
	                               .moved_ms = b->want->now_ms,
	                               .newest_ms = b->want->query ? b->want->now_ms : b->want->before_ms};
	return pg_lake_manifest_add(b->conn, b->arena, &f);
}

static int file_put(struct batch *b, struct pg_lake_writer *w, uint64_t rows)
{
	char sum[PG_LAKE_SHA256];
	pg_lake_writer_full(w, rows);
	int r = b->store->put(b->store->ctx, b->file, pg_lake_writer_read, w);
	if (r == 0 && !w->whole) {
		pg_why_set(NULL, "the object store has not read all of the file");
		r = -EIO;
	}
	if (r < 0)
		return r;
	pg_lake_writer_sum(w, sum);
	return file_name(b, w, rows, sum);
}

static int rows_move(struct batch *b, struct pg_lake_moved *moved)
{
	struct pg_lake_writer w;
	int r = pg_lake_writer_open(&w, str_of(b->header), b->want->bytes_max, b->stop);
	if (r < 0)
		return r;
	r = rows_copy(b, &w, &moved->rows);
	if (r == 0 && moved->rows)
		r = file_put(b, &w, moved->rows);
	moved->bytes = w.bytes;
	pg_lake_writer_close(&w);
	return r < 0 && r != -ECANCELED && w.too_large ? -EFBIG : r; /* whatever was made of it on its way */
}

/* All that the table has to say to the wish. */
static int table_look(struct batch *b)
{
	b->field = "collName";
	int r = pg_lake_table_hold(b->conn, b->want->table, b->arena, &b->table);
	r = r < 0 ? r : condition_make(b);
	if (r < 0)
		return r;
	pg_lake_table_values(&b->table, b->arena, &b->values, &b->columns);
	return header_make(b);
}

static int batch_prepare(struct batch *b, uint32_t page)
{
	int r = pg_lake_begin(b->conn);
	r = r < 0 ? r : pg_lake_manifest_hold(b->conn, b->arena, b->want->archive);
	r = r < 0 ? r : table_look(b);
	if (r < 0)
		return r;
	b->page = page < b->table.pages ? page : b->table.pages;
	b->page_end = b->table.pages - b->page > PAGES_AT_ONCE ? b->page + PAGES_AT_ONCE : b->table.pages;
	return 0;
}

static int transaction_run(struct batch *b, uint32_t page, struct pg_lake_moved *moved)
{
	*moved = (struct pg_lake_moved){0};
	int r = batch_prepare(b, page);
	r = r < 0 || b->page == b->page_end ? r : rows_move(b, moved);
	return r < 0 ? r : pg_sql_do(b->conn, COMMIT_MS, moved->rows ? "commit" : "rollback");
}

int pg_lake_move(PGconn *conn, const struct pg_lake_move *want, const struct pg_lake_put *store,
                 const struct pg_stop *stop, struct arena *a, uint32_t *page, struct pg_lake_moved *ret_moved)
{
	struct batch b = {.conn = conn, .want = want, .store = store, .stop = stop, .arena = a};
	b.file = id_make(a).p;
	int r = transaction_run(&b, *page, ret_moved);
	if (r == -EFBIG && want->rows_max <= 1) {
		pg_why_set(NULL, "a row has more than %llu bytes", (unsigned long long)want->bytes_max);
		r = -EINVAL;
	}
	if (r < 0)
		return r;
	/* As many as there may be: there are perhaps more on these pages. */
	*page = ret_moved->rows == want->rows_max ? b.page : b.page_end;
	ret_moved->over = *page == b.table.pages;
	return 0;
}

/* --- what would move */

/* A part of a large table stands for all of it: whoever asks waits. */
static const char *preview_make(const struct batch *b, double percent)
{
	const char *sample = percent < 100 ? arena_printf(b->arena, " tablesample system (%g)", percent).p : "";
	return arena_printf(b->arena,
	                    "select count(*), coalesce(sum(pg_column_size(t.*)), 0)::bigint from only %s t%s where %s",
	                    b->table.quoted, sample, b->condition)
	        .p;
}

static int preview(const struct batch *b, struct engine_lake_preview *ret_preview)
{
	double percent = b->table.pages > PREVIEW_PAGES ? 100.0 * PREVIEW_PAGES / b->table.pages : 100;
	PGresult *rows;
	int r = pg_sql_rows(b->conn, PREVIEW_MS, preview_make(b, percent), &rows);
	if (r < 0)
		return r;
	double count = strtod(pg_value(rows, 0, 0), NULL), bytes = strtod(pg_value(rows, 0, 1), NULL);
	PQclear(rows);
	*ret_preview = (struct engine_lake_preview){.rows = (uint64_t)(count * 100 / percent),
	                                            .bytes = (uint64_t)(bytes * 100 / percent),
	                                            .estimated = percent < 100};
	return 0;
}

int pg_lake_check(PGconn *conn, const struct pg_lake_move *want, struct arena *a,
                  struct engine_lake_preview *ret_preview, const char **ret_field)
{
	struct batch b = {.conn = conn, .want = want, .arena = a};
	int r = pg_lake_begin(conn);
	r = r < 0 ? r : table_look(&b);
	if (r == -ENOENT || r == -EINVAL)
		*ret_field = b.field;
	if (r == 0 && ret_preview)
		r = preview(&b, ret_preview);
	return r < 0 ? r : pg_sql_do(conn, SHORT_MS, "rollback");
}

/* Verifies a store or a copy of one, in one snapshot, so that it may be in use. It only reads. */
#include "store/check.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Calls row() for each row. Negative when the query cannot be run to its end. */
static int each_row(struct check *c, struct tx *conn, const char *sql, void (*row)(struct check *c, sqlite3_stmt *st))
{
	sqlite3_stmt *st = NULL;
	int r = sqlite3_prepare_v2(conn->db, sql, -1, &st, NULL);
	while (r == SQLITE_OK || r == SQLITE_ROW) {
		r = sqlite3_step(st);
		if (r == SQLITE_ROW)
			row(c, st);
	}
	sqlite3_finalize(st);
	if (r == SQLITE_DONE)
		return 0;
	check_fault(c, "cannot be read: %s", sqlite3_errmsg(conn->db));
	return -EIO;
}

static void row_integrity(struct check *c, sqlite3_stmt *st)
{
	struct str line = column_str(st, 0);
	if (!str_is(line, "ok"))
		check_fault(c, "file: %.*s", STR_ARG(line));
}

static void row_list(struct check *c, sqlite3_stmt *st)
{
	int64_t n[6];
	for (int i = 0; i < 6; i++)
		n[i] = sqlite3_column_int64(st, 2 + i);
	check_list(c, column_str(st, 0), column_str(st, 1), n, n + 3);
}

static void row_block(struct check *c, sqlite3_stmt *st)
{
	check_block(c, column_str(st, 0), column_str(st, 1), sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3),
	            sqlite3_column_int64(st, 4), sqlite3_column_int64(st, 5));
}

static void row_body(struct check *c, sqlite3_stmt *st)
{
	struct str kind = column_str(st, 0), id = column_str(st, 1), body = column_str(st, 2);
	int faults = c->faults;
	check_body(c, kind, id, body);
	if (c->faults == faults && sqlite3_column_type(st, 3) != SQLITE_NULL &&
	    sqlite3_column_int64(st, 3) != doc_sum(kind, id, body))
		check_fault(c, "document %.*s %.*s: was changed after it was written", STR_ARG(kind), STR_ARG(id));
}

static void row_ref(struct check *c, sqlite3_stmt *st)
{
	check_ref(c, column_str(st, 0), column_str(st, 1), column_str(st, 2));
}

struct event_row event_row_of(sqlite3_stmt *st)
{
	return (struct event_row){
	        .seq = sqlite3_column_int64(st, 0),
	        .event = {.id = column_str(st, 1),
	                  .org_id = column_str(st, 2),
	                  .group_id = column_str(st, 3),
	                  .type = column_str(st, 4),
	                  .created_ms = sqlite3_column_int64(st, 5),
	                  .body = column_str(st, 6),
	                  .cluster = column_str(st, 9),
	                  .raw = column_str(st, 10),
	                  .for_org = sqlite3_column_type(st, 11) != SQLITE_NULL,
	                  .for_group = sqlite3_column_type(st, 12) != SQLITE_NULL},
	};
}

static void row_event(struct check *c, sqlite3_stmt *st)
{
	struct event_row row = event_row_of(st);
	check_event(c, &row, column_str(st, 7), column_str(st, 8));
}

static void row_positions(struct check *c, sqlite3_stmt *st)
{
	check_positions(c, column_str(st, 0), sqlite3_column_int64(st, 1), sqlite3_column_int64(st, 2),
	                sqlite3_column_int64(st, 3));
}

/* clang-format off */
/* %d: the bits of a block. */
static const char sql_lists[] =
	"SELECT kind, parent, coalesce(max(count), 0), coalesce(max(head), 0), coalesce(max(next_seq), 0),"
	" coalesce(max(docs), 0), coalesce(max(docs_head), 0), coalesce(max(docs_next), 0) FROM"
	" (SELECT kind, parent, count, head, next_seq, NULL AS docs, NULL AS docs_head, NULL AS docs_next FROM list"
	"  UNION ALL SELECT kind, parent, NULL, NULL, NULL, count(*), sum(seq >> %d = 0), max(seq) + 1 FROM doc"
	"  GROUP BY kind, parent) GROUP BY kind, parent"
	" HAVING max(count) IS NOT max(docs) OR max(head) IS NOT max(docs_head) OR max(next_seq) < max(docs_next)";

/* %d: the level, the level, the bits of a block of that level, the bits of a block, those of the level again. */
static const char sql_blocks[] =
	"SELECT kind, parent, %d, block, coalesce(max(count), 0), coalesce(max(docs), 0) FROM"
	" (SELECT kind, parent, block, count, NULL AS docs FROM list_block WHERE level = %d"
	"  UNION ALL SELECT kind, parent, seq >> %d AS block, NULL, count(*) FROM doc WHERE seq >> %d > 0"
	"  GROUP BY kind, parent, seq >> %d) GROUP BY kind, parent, block HAVING max(count) IS NOT max(docs)";
/* clang-format on */

/* Checks the events between the ends that meta has. */
static int check_events(struct check *c, struct tx *conn)
{
	int r = check_chain_begin(c, event_chain_read(conn, &c->ends));
	if (r == 0)
		r = each_row(c, conn, "SELECT " CHECK_EVENT_COLUMNS " FROM event ORDER BY seq", row_event);
	if (r == 0)
		check_chain_end(c);
	if (r == 0)
		r = each_row(c, conn, CHECK_POSITIONS("org"), row_positions);
	return r < 0 ? r : each_row(c, conn, CHECK_POSITIONS("group"), row_positions);
}

static int check_all(struct check *c, struct tx *conn)
{
	char sql[1024];
	int r = each_row(c, conn, "PRAGMA integrity_check", row_integrity);
	snprintf(sql, sizeof sql, sql_lists, BLOCK_BITS);
	if (r == 0)
		r = each_row(c, conn, sql, row_list);
	for (int level = 0; r == 0 && level < BLOCK_LEVELS; level++) {
		int bits = BLOCK_BITS * (level + 1);
		snprintf(sql, sizeof sql, sql_blocks, level, level, bits, BLOCK_BITS, bits);
		r = each_row(c, conn, sql, row_block);
	}
	if (r == 0)
		r = each_row(c, conn, "SELECT kind, id, body, sum FROM doc", row_body);
	if (r == 0)
		r = each_row(c, conn, CHECK_REFS, row_ref);
	if (r == 0)
		r = check_events(c, conn);
	return r;
}

int sqlite_check(const char *path, FILE *out)
{
	char *file = store_path(path);
	struct check c = {.out = out};
	struct tx *conn = NULL;
	int r = access(file, R_OK) < 0 ? -errno : 0;
	if (r < 0)
		fprintf(out, "%s: %s\n", file, strerror(-r));
	if (r == 0)
		r = conn_open(file, SQLITE_OPEN_READONLY, &conn);
	if (r == 0)
		r = migrations_verify(conn, file, out);
	if (r == 0)
		r = conn_exec(conn, "BEGIN");
	if (r == 0) {
		/* A file so damaged that it cannot be read to its end counts as faulty, not as an error of the
		 * check. */
		r = check_all(&c, conn);
		r = r < 0 && c.faults == 0 ? r : c.faults;
	}
	conn_close(conn);
	free(file);
	return r;
}

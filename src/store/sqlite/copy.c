/* SQLite's side of a copy: rows by key, in statements made from the table's description. */
#include "store/copy.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

static const char *path_in(const char *place)
{
	return str_starts(str_of(place), STR("sqlite:")) ? place + 7 : place;
}

/* Opens the lock that a service holds on its data directory; -1: no service has ever run there. */
static int lock_open(const char *path)
{
	const char *slash = strrchr(path, '/');
	char lock[4096];
	snprintf(lock, sizeof lock, "%.*s/lock", slash ? (int)(slash - path) : 1, slash ? path : ".");
	return open(lock, O_RDWR | O_CLOEXEC);
}

static int side_open(const char *place, struct copy_side *side)
{
	char *path = store_path(path_in(place));
	side->lock = -1;
	int r = access(path, R_OK | W_OK) < 0 ? -errno : 0;
	if (r < 0)
		fprintf(stderr, "steward: there is no store at %s: %s\n", path, strerror(-r));
	if (r == 0)
		r = conn_open(path, SQLITE_OPEN_READWRITE, &side->tx);
	if (r == 0)
		r = migrations_verify(side->tx, path, stderr);
	if (r == 0)
		side->lock = lock_open(path);
	free(path);
	return r;
}

static void side_close(struct copy_side *side)
{
	conn_close(side->tx);
	if (side->lock >= 0)
		close(side->lock);
}

static int side_busy(struct copy_side *side)
{
	if (side->lock < 0 || flock(side->lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	fprintf(stderr, "steward: a service runs on the source: stop it first\n");
	return -EBUSY;
}

static int side_count(struct copy_side *side, const struct copy_table *t, int64_t *ret_count)
{
	char sql[COPY_SQL];
	copy_count(sql, t);
	return conn_int(side->tx, sql, ret_count);
}

static void cell_bind(sqlite3_stmt *st, int i, const struct cell *c, enum cell_type type)
{
	if (c->null)
		sqlite3_bind_null(st, i);
	else if (type == CELL_NUMBER)
		sqlite3_bind_int64(st, i, c->number);
	else if (type == CELL_BYTES)
		sqlite3_bind_blob64(st, i, c->text.p, c->text.n, SQLITE_STATIC);
	else
		bind_str(st, i, c->text);
}

static int statement(struct copy_side *side, const char *sql, sqlite3_stmt **ret_st)
{
	if (sqlite3_prepare_v2(side->tx->db, sql, -1, ret_st, NULL) == SQLITE_OK)
		return 0;
	fprintf(stderr, "steward: %s\n", sqlite3_errmsg(side->tx->db));
	return -EIO;
}

static int side_read(struct copy_side *side, const struct copy_table *t, const struct cell *after, struct arena *a,
                     struct cell **ret_cells, size_t *ret_rows)
{
	char sql[COPY_SQL];
	unsigned columns = copy_columns(t);
	sqlite3_stmt *st = NULL;
	copy_select(sql, t, after, "rowid");
	int r = statement(side, sql, &st);
	if (r < 0)
		return r;
	for (unsigned i = 0; after && i < t->keys; i++)
		cell_bind(st, (int)i + 1, &after[i], t->columns[i].type);
	struct cell *cells = arena_new_array(a, struct cell, (size_t)COPY_PAGE * columns);
	size_t rows = 0;
	while (rows < COPY_PAGE && (r = sqlite3_step(st)) == SQLITE_ROW) {
		for (unsigned i = 0; i < columns; i++)
			cells[rows * columns + i] = (struct cell){
			        .null = sqlite3_column_type(st, (int)i) == SQLITE_NULL,
			        .number = sqlite3_column_int64(st, (int)i),
			        .text = t->columns[i].type == CELL_NUMBER ? STR_NONE
			                                                  : arena_dup(a, column_str(st, (int)i))};
		rows++;
	}
	sqlite3_finalize(st);
	if (rows < COPY_PAGE && r != SQLITE_DONE)
		return -EIO;
	*ret_cells = cells;
	*ret_rows = rows;
	return 0;
}

static int rows_insert(struct copy_side *side, const struct copy_table *t, const struct cell *cells, size_t rows)
{
	char sql[COPY_SQL];
	unsigned columns = copy_columns(t);
	sqlite3_stmt *st = NULL;
	if (!rows)
		return 0;
	copy_insert(sql, t, "rowid");
	int r = statement(side, sql, &st);
	for (size_t i = 0; r == 0 && i < rows; i++) {
		for (unsigned k = 0; k < columns; k++)
			cell_bind(st, (int)k + 1, &cells[i * columns + k], t->columns[k].type);
		r = sqlite3_step(st) == SQLITE_DONE ? 0 : -EIO;
		sqlite3_reset(st);
	}
	if (r < 0)
		fprintf(stderr, "steward: %s: %s\n", t->name, sqlite3_errmsg(side->tx->db));
	sqlite3_finalize(st);
	return r;
}

static int side_note(struct copy_side *side, const char *key, struct str value)
{
	sqlite3_stmt *st = NULL;
	int r = statement(side,
	                  value.n ? "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)"
	                          : "DELETE FROM meta WHERE key = ?1",
	                  &st);
	if (r < 0)
		return r;
	bind_z(st, 1, key);
	if (value.n)
		bind_str(st, 2, value);
	r = sqlite3_step(st) == SQLITE_DONE ? 0 : -EIO;
	sqlite3_finalize(st);
	return r;
}

static int side_write(struct copy_side *side, const struct copy_table *t, const struct cell *cells, size_t rows,
                      struct str mark)
{
	int r = conn_exec(side->tx, "BEGIN IMMEDIATE");
	if (r == 0)
		r = rows_insert(side, t, cells, rows);
	if (r == 0)
		r = side_note(side, META_COPY, mark);
	if (r == 0)
		r = conn_exec(side->tx, "COMMIT");
	if (r < 0 && !sqlite3_get_autocommit(side->tx->db) && conn_exec(side->tx, "ROLLBACK") < 0)
		return -EIO;
	return r;
}

static int side_noted(struct copy_side *side, struct arena *a, const char *key, struct str *ret_value)
{
	sqlite3_stmt *st = NULL;
	int r = statement(side, "SELECT value FROM meta WHERE key = ?1", &st);
	if (r < 0)
		return r;
	bind_z(st, 1, key);
	r = sqlite3_step(st);
	if (r == SQLITE_ROW)
		*ret_value = arena_dup(a, column_str(st, 0));
	sqlite3_finalize(st);
	return r == SQLITE_ROW ? 0 : r == SQLITE_DONE ? -ENOENT : -EIO;
}

static int side_claim(struct copy_side *side, const char *key, struct str value)
{
	sqlite3_stmt *st = NULL;
	int r = statement(side,
	                  "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2 "
	                  "WHERE value = ?2",
	                  &st);
	if (r < 0)
		return r;
	bind_z(st, 1, key);
	bind_str(st, 2, value);
	r = sqlite3_step(st) != SQLITE_DONE ? -EIO : sqlite3_changes(side->tx->db) ? 0 : -EEXIST;
	sqlite3_finalize(st);
	return r;
}

const struct copy_ops sqlite_copy_ops = {side_open,  side_close, side_busy, side_count, side_read,
                                         side_write, side_noted, side_note, side_claim};

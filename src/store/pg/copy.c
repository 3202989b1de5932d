/* PostgreSQL's side of a copy: rows by key, in statements made from the table's description. A page is written in one
 * round trip. */
#include "store/copy.h"
#include "store/pg/pg.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

#define CONNECT_US 5000000

static int side_open(const char *place, struct copy_side *side)
{
	side->store = must_calloc(1, sizeof *side->store);
	side->store->ops = &postgres_ops;
	side->store->path = must_strdup(place);
	side->store->pg = must_calloc(1, sizeof *side->store->pg);
	side->tx = pg_tx_new(side->store, PG_TOOL);
	int r = pg_connect(side->tx, clock_mono_us() + CONNECT_US);
	if (r < 0)
		fprintf(stderr, "steward: the PostgreSQL store cannot be reached\n");
	return r < 0 ? r : pg_migrations_verify(side->tx, stderr);
}

static void side_close(struct copy_side *side)
{
	pg_tx_free(side->tx);
	if (!side->store)
		return;
	free(side->store->path);
	free(side->store->pg);
	free(side->store);
}

static int side_busy(struct copy_side *side)
{
	PGresult *result;
	int r = pg_once(side->tx, "SELECT count(*) FROM node WHERE " PG_ALIVE, NULL, &result);
	if (r < 0)
		return r;
	int64_t nodes = pg_number(result, 0, 0);
	PQclear(result);
	if (!nodes)
		return 0;
	fprintf(stderr,
	        "steward: %lld nodes run on the source: stop them first (one that was killed counts for 5 seconds)\n",
	        (long long)nodes);
	return -EBUSY;
}

static int side_count(struct copy_side *side, const struct copy_table *t, int64_t *ret_count)
{
	char sql[COPY_SQL];
	PGresult *result;
	copy_count(sql, t);
	int r = pg_once(side->tx, sql, NULL, &result);
	if (r < 0)
		return r;
	*ret_count = pg_number(result, 0, 0);
	PQclear(result);
	return 0;
}

static void cell_add(struct pg_args *args, const struct cell *c, enum cell_type type)
{
	if (type == CELL_NUMBER)
		pg_int(args, c->number);
	else if (type == CELL_BYTES)
		pg_bytes(args, c->text.n ? c->text.p : "", c->text.n);
	else
		pg_str(args, c->text);
	if (c->null)
		args->values[args->count - 1] = NULL;
}

static int side_read(struct copy_side *side, const struct copy_table *t, const struct cell *after, struct arena *a,
                     struct cell **ret_cells, size_t *ret_rows)
{
	char sql[COPY_SQL];
	unsigned columns = copy_columns(t);
	struct pg_args args = {0};
	PGresult *result;
	copy_select(sql, t, after, "n");
	for (unsigned i = 0; after && i < t->keys; i++)
		cell_add(&args, &after[i], t->columns[i].type);
	int rows = pg_once(side->tx, sql, &args, &result);
	if (rows < 0)
		return rows;
	struct cell *cells = arena_new_array(a, struct cell, (size_t)COPY_PAGE * columns);
	for (int k = 0; k < rows; k++)
		for (unsigned i = 0; i < columns; i++)
			cells[(unsigned)k * columns + i] = (struct cell){
			        .null = PQgetisnull(result, k, (int)i),
			        .number = t->columns[i].type == CELL_NUMBER ? pg_number(result, k, (int)i) : 0,
			        .text = t->columns[i].type == CELL_NUMBER ? STR_NONE
			                                                  : arena_dup(a, pg_column(result, k, (int)i))};
	PQclear(result);
	*ret_cells = cells;
	*ret_rows = (size_t)rows;
	return 0;
}

static int rows_insert(struct copy_side *side, const struct copy_table *t, const struct cell *cells, size_t rows)
{
	char sql[COPY_SQL];
	unsigned columns = copy_columns(t);
	int r = 0;
	copy_insert(sql, t, "n");
	for (size_t i = 0; r == 0 && i < rows; i++) {
		struct pg_args args = {0};
		for (unsigned k = 0; k < columns; k++)
			cell_add(&args, &cells[i * columns + k], t->columns[k].type);
		if (args.impossible) {
			fprintf(stderr, "steward: %s has a row that PostgreSQL cannot hold: a text that is not UTF-8\n",
			        t->name);
			return -EILSEQ;
		}
		r = pg_queue(side->tx, sql, &args);
	}
	return r;
}

static int side_write(struct copy_side *side, const struct copy_table *t, const struct cell *cells, size_t rows,
                      struct str mark)
{
	struct pg_args args = {0};
	pg_z(&args, META_COPY);
	if (mark.n)
		pg_str(&args, mark);
	int r = pg_queue(side->tx, "BEGIN", NULL);
	if (r == 0)
		r = rows_insert(side, t, cells, rows);
	if (r == 0)
		r = pg_queue(side->tx,
		             mark.n ? "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET "
		                      "value = $2"
		                    : "DELETE FROM meta WHERE key = $1",
		             &args);
	/* Jobs that are added later must come after the copied ones. */
	if (r == 0 && !mark.n)
		r = pg_queue(
		        side->tx,
		        "SELECT setval(pg_get_serial_sequence('job', 'n'), (SELECT coalesce(max(n), 0) + 1 FROM job))",
		        NULL);
	if (r == 0)
		r = pg_queue(side->tx, "COMMIT", NULL);
	if (r == 0)
		r = pg_settle(side->tx);
	return r;
}

static int side_noted(struct copy_side *side, struct arena *a, const char *key, struct str *ret_value)
{
	struct pg_args args = {0};
	PGresult *result;
	pg_z(&args, key);
	int r = pg_once(side->tx, "SELECT value FROM meta WHERE key = $1", &args, &result);
	if (r < 0)
		return r;
	if (r > 0)
		*ret_value = arena_dup(a, pg_column(result, 0, 0));
	PQclear(result);
	return r > 0 ? 0 : -ENOENT;
}

static int side_note(struct copy_side *side, const char *key, struct str value)
{
	struct pg_args args = {0};
	pg_z(&args, key);
	if (value.n)
		pg_str(&args, value);
	int r = pg_once(side->tx,
	                value.n ? "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET "
	                          "value = $2"
	                        : "DELETE FROM meta WHERE key = $1",
	                &args, NULL);
	return r < 0 ? r : 0;
}

static int side_claim(struct copy_side *side, const char *key, struct str value)
{
	struct pg_args args = {0};
	PGresult *result;
	pg_z(&args, key);
	pg_str(&args, value);
	int r = pg_once(side->tx,
	                "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2 "
	                "WHERE meta.value = $2 RETURNING value",
	                &args, &result);
	if (r < 0)
		return r;
	PQclear(result);
	return r > 0 ? 0 : -EEXIST;
}

const struct copy_ops postgres_copy_ops = {side_open,  side_close, side_busy, side_count, side_read,
                                           side_write, side_noted, side_note, side_claim};

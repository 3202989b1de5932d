/* Rows leave a table for a file: a batch at a time, each exactly once. */
#ifndef STEWARD_ENGINE_POSTGRES_LAKE_MOVE_H
#define STEWARD_ENGINE_POSTGRES_LAKE_MOVE_H

#include "base/arena.h"
#include "engine/postgres/lake/table.h"

#include <libpq-fe.h>
#include <sys/types.h>

struct pg_stop;

/* Texts are borrowed. */
struct pg_lake_move {
	const char *archive; /* its id */
	const char *table;   /* as people name it */
	const char *query;   /* which rows: JSON, see query.h; NULL: by a date */
	const char *field;   /* the date: a column, or COLUMN.NAME.NAME of a document in it */
	enum engine_date format;
	int64_t before_ms;
	const char *const *order; /* columns that the rows of a file are sorted by */
	size_t order_count;
	unsigned rows_max;  /* of a file, and so of a transaction */
	uint64_t bytes_max; /* of the rows, as the server sends them */
	int64_t now_ms;
};

/* An objects_put(): the object is there when it returns 0, and nothing is when it fails. */
struct pg_lake_put {
	int (*put)(void *ctx, const char *file, ssize_t (*read)(void *read_ctx, void *buf, size_t n), void *read_ctx);
	void *ctx;
};

struct pg_lake_moved {
	uint64_t rows, bytes; /* of the file; 0: none was needed */
	bool over;            /* the table was looked through to its end */
};

/* Whether rows can leave the table so, and what would move; nothing is changed. ret_preview may be NULL. -ENOENT,
 * -EINVAL, -EAGAIN as below; *ret_field: what of the wish is at fault, as engine_lake_ops.check names it. The
 * connection may be used on when it returns 0. */
must_check int pg_lake_check(PGconn *conn, const struct pg_lake_move *want, struct arena *a,
                             struct engine_lake_preview *ret_preview, const char **ret_field);

/* Moves some rows, from page *page of the table on, and says in *page where to go on. A few seconds; blocks. What was
 * moved is in the file and not in the table, or the other way round, whenever it ends. Rows that somebody holds or
 * changes now stay, until the table is looked through again.
 *
 * -EFBIG: they are too large for a file; fewer at a time may not be. -ENOENT: there is no such table. -EINVAL: rows
 * cannot be archived from it, or not by that field. -EAGAIN: not now. -ECANCELED: somebody has asked for the end.
 * Another: it failed, and may be tried again. pg_why_last() says why. When it fails the connection is not to be used
 * any more. */
must_check int pg_lake_move(PGconn *conn, const struct pg_lake_move *want, const struct pg_lake_put *store,
                            const struct pg_stop *stop, struct arena *a, uint32_t *page,
                            struct pg_lake_moved *ret_moved);

/* Begins a transaction in which nothing of a tenant's is evaluated that need not be. */
must_check int pg_lake_begin(PGconn *conn);
/* Adds what a query of the JSON query language is as a condition over the table's columns. -EINVAL. */
must_check int pg_lake_query_make(const struct pg_lake_table *t, const char *query, struct arena *a, struct buf *sql);

#endif

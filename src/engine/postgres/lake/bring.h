/* Rows of an archive's file come back into the table, each exactly once. */
#ifndef STEWARD_ENGINE_POSTGRES_LAKE_BRING_H
#define STEWARD_ENGINE_POSTGRES_LAKE_BRING_H

#include "engine/postgres/lake/move.h"

/* Texts are borrowed. */
struct pg_lake_bring {
	const char *archive, *table; /* as of a pg_lake_move */
	const char *query;           /* which rows; NULL: all */
	const char *file;            /* NULL: the first */
	const char *const *order;    /* of the rows that stay */
	size_t order_count;
	uint64_t bytes_max;
	/* Writes a file's bytes to the descriptor, and has proven that they are those that were written. */
	int (*get)(void *ctx, const struct engine_lake_file *f, int descriptor);
	void *ctx;
	struct pg_lake_put put; /* for the rows that stay */
};

/* A few seconds; blocks. The rows are in the table and not in the file, or the other way round, whenever it ends.
 * Errors as of pg_lake_move(); -EEXIST: the table has a row with the key of one of them; -EBADMSG: the file is not what
 * was written. When it fails the connection is not to be used any more. */
must_check int pg_lake_bring(PGconn *conn, const struct pg_lake_bring *want, const struct pg_stop *stop,
                             struct arena *a, struct engine_lake_moved *ret_moved);

#endif

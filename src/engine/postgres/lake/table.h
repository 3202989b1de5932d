/* A table that rows are archived from, as the database has it. */
#ifndef STEWARD_ENGINE_POSTGRES_LAKE_TABLE_H
#define STEWARD_ENGINE_POSTGRES_LAKE_TABLE_H

#include "base/arena.h"
#include "engine/postgres/lake/rows.h"

#include <libpq-fe.h>

struct pg_lake_table {
	const char *oid, *schema, *name;
	const char *quoted; /* with its schema */
	uint32_t pages;     /* that it has now */
	struct pg_lake_column *columns;
	size_t column_count;
};

/* In a transaction: finds it, keeps its definition as it is until the end, and looks at it. Texts are in the arena.
 * -ENOENT: there is none of that name. -EINVAL: rows cannot be archived from it, and pg_why_last() says why. -EAGAIN:
 * somebody holds it, or changes it now. */
must_check int pg_lake_table_hold(PGconn *conn, const char *name, struct arena *a, struct pg_lake_table *ret_table);
/* NULL: it has none of that name. */
const struct pg_lake_column *pg_lake_table_column(const struct pg_lake_table *t, struct str name);
/* What the server makes of the columns for steward-lake; and which they are, as JSON: [{"name", "type"}]. */
void pg_lake_table_values(const struct pg_lake_table *t, struct arena *a, const char **ret_values,
                          const char **ret_columns);
/* In the arena. */
const char *pg_lake_literal(PGconn *conn, struct arena *a, const char *text);

#endif

/* Views of an instance: pipelines of the JSON query language, as SQL. */
#ifndef STEWARD_ENGINE_POSTGRES_FEDERATION_VIEWS_H
#define STEWARD_ENGINE_POSTGRES_FEDERATION_VIEWS_H

#include "engine/postgres/lake/rows.h"

struct pg_view_columns {
	struct pg_lake_column *list;
	size_t count;
};

/* Adds the SELECT that the pipeline, a text of JSON, is over `from`, a quoted name with these columns.
 * *ret_columns: of what comes out. -EINVAL: *ret_why says why it is none; in the arena. Pure code: no server is
 * asked. */
must_check int pg_view_sql(const char *pipeline, const char *from, const struct pg_view_columns *columns,
                           struct arena *a, struct buf *sql, struct pg_view_columns *ret_columns, const char **ret_why);

#endif

/* The rows that a query of the JSON query language finds, as a condition of SQL. Pure code: no server is asked. */
#ifndef STEWARD_ENGINE_POSTGRES_LAKE_QUERY_H
#define STEWARD_ENGINE_POSTGRES_LAKE_QUERY_H

#include "base/buf.h"
#include "engine/postgres/lake/rows.h"

#include <jansson.h>

/* Adds the condition, in brackets, for a filter that filter_parse_ordered() has read. It is true or false for every
 * row, and fails for none. A field is a column, or COLUMN.NAME.NAME of a document in one. False: it cannot be one, and
 * the words in `why` begin with the field. */
must_check bool pg_lake_query_sql(const struct pg_lake_column *columns, size_t count, const json_t *filter,
                                  struct buf *sql, struct buf *why);

/* The column that a field lies in, and the rest of its name; STR_NONE: it is the column itself. NULL: there is none. */
const struct pg_lake_column *pg_lake_field(const struct pg_lake_column *columns, size_t count, struct str field,
                                           struct str *ret_rest);
/* "'a','b'" of "a.b". */
void pg_lake_path_sql(struct str rest, struct buf *sql);

#endif

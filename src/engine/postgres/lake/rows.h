/* Which rows an online archive takes, as a condition of SQL, and as what their values are written. Pure code: no server
 * is asked. */
#ifndef STEWARD_ENGINE_POSTGRES_LAKE_ROWS_H
#define STEWARD_ENGINE_POSTGRES_LAKE_ROWS_H

#include "base/buf.h"
#include "engine/lake.h"

/* A column of the table, below all domains. Texts that are quoted are as the server takes them. */
struct pg_lake_column {
	const char *name, *quoted;
	const char *type; /* PostgreSQL's name of it: "int4" */
	bool ours;        /* a type of PostgreSQL's own */
	int modifier;     /* of the type; -1: none */
};

/* Rows whose date is before that moment. The date is the column's, or of the document in it: `path` is quoted as an
 * array's elements are, "'a','b'"; NULL: the column's. */
struct pg_lake_age {
	enum engine_date format;
	const char *path;
	int64_t before_ms;
};

/* Adds the condition, in brackets. It is never true of a row without such a date, or with one that has no end, and
 * fails for no row. False: the column cannot hold it, and *ret_why, static, says what it may be. */
must_check bool pg_lake_age_sql(const struct pg_lake_column *c, const struct pg_lake_age *age, struct buf *sql,
                                const char **ret_why);

#define PG_LAKE_TYPE 24
/* As what steward-lake gets the values: its name of the type; and adds to `sql` what the server makes of the column. */
void pg_lake_value_sql(const struct pg_lake_column *c, struct buf *sql, char ret_type[PG_LAKE_TYPE]);
/* Adds the condition for values that the file can hold, each " and (...)". Nothing for most columns. */
void pg_lake_fits_sql(const struct pg_lake_column *c, struct buf *sql);

#endif

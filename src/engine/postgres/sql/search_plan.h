/* The statement that builds a search index, and what queries are told of it. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_SEARCH_PLAN_H
#define STEWARD_ENGINE_POSTGRES_SQL_SEARCH_PLAN_H

#include "base/str.h"

struct pg_index_plan;

/* Once the plan's table is known: looks at its columns and fills in the plan's fields. -EINVAL: see pg_index_plan(). */
int pg_search_plan(struct pg_index_plan *p);
/* Makes the functions in the plan's database, where they are not there as this service has them, and fills in the
 * plan's body. -EINVAL: why says what the database refused. */
int pg_search_prepare(struct pg_index_plan *p);
/* The statements, with a ";" behind each, by which queries find the index of the plan from then on. In the arena. */
const char *pg_search_put(struct pg_index_plan *p);
/* Queries do not find the build of the wish any more; nothing where another one took its place. */
int pg_search_forget(struct pg_index_plan *p);
/* Whether queries find the build of the wish, and can use it. */
int pg_search_look(struct pg_index_plan *p, bool *ret_there);

#endif

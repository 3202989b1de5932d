/* The statement that builds an index of vectors, and what comes before it. search_plan.c has what it shares with other
 * search indexes, and calls these. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_VECTOR_PLAN_H
#define STEWARD_ENGINE_POSTGRES_SQL_VECTOR_PLAN_H

#include <stdbool.h>

struct pg_index_plan;

/* As pg_search_plan(). */
int pg_vector_plan(struct pg_index_plan *p);
/* As pg_search_prepare(); fills in the plan's train, too. */
int pg_vector_prepare(struct pg_index_plan *p);
/* Makes or renews the schema of vectors in the plan's database. */
int pg_vector_schema(struct pg_index_plan *p);
/* Whether the table of a build has become so much larger that it should be divided anew. */
int pg_vector_outgrown(struct pg_index_plan *p, bool *ret_outgrown);
/* What the build of the wish was divided by is no more. */
int pg_vector_forget(struct pg_index_plan *p);

#endif

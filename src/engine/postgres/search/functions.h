/* The functions that search, as they are in databases. */
#ifndef STEWARD_ENGINE_POSTGRES_SEARCH_FUNCTIONS_H
#define STEWARD_ENGINE_POSTGRES_SEARCH_FUNCTIONS_H

/* Statements that make the schema, its table and its functions; NULL at the end. operators.h has the rest. */
extern const char *const pg_search_sql[];
/* What a comment on the schema says once all were run. */
extern const char pg_search_version[];

#endif

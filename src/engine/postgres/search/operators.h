/* The compiler of queries, as it is in databases. */
#ifndef STEWARD_ENGINE_POSTGRES_SEARCH_OPERATORS_H
#define STEWARD_ENGINE_POSTGRES_SEARCH_OPERATORS_H

/* Statements that make its functions, after those of functions.h; NULL at the end. */
extern const char *const pg_search_operators_sql[];

#endif

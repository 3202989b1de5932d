/* Vector search, as it is in databases. */
#ifndef STEWARD_ENGINE_POSTGRES_SEARCH_VECTORS_H
#define STEWARD_ENGINE_POSTGRES_SEARCH_VECTORS_H

/* Statements that make or renew the schema steward_vectors, whose comment then is the version; NULL at the end. */
extern const char *const pg_vectors_sql[];
extern const char pg_vectors_version[];
/* Statements that make the functions of the schema steward_search, after those of operators.h; NULL at the end. */
extern const char *const pg_search_vectors_sql[];

#endif

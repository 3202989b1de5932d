/* What search needs in a database, and what is left there that no search index has any more. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_SEARCH_SCHEMA_H
#define STEWARD_ENGINE_POSTGRES_SQL_SEARCH_SCHEMA_H

#include "engine/index.h"

#include <libpq-fe.h>

/* Makes the schema and its functions as this service has them, where they are not there or are another's. What a
 * tenant's objects stand on stays. All of it or nothing. */
int pg_search_schema_make(struct arena *a, PGconn *conn);
/* Adds what lies in the connection's database, and brings the functions there up to date. */
int pg_search_strays(struct arena *a, PGconn *conn, const char *database, struct engine_index_strays *strays);

#endif

/* What a server is asked when it is measured. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_SQL_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_SQL_H

#include "engine/postgres/observe/measure.h"

extern const enum process_input pg_asked[PG_ASKED];
extern const char pg_ask[], pg_ask_17[];
/* What the module counts, in the place of what pg_stat_database tells. */
extern const enum process_input pg_operations[PG_OPERATIONS];
extern const char pg_ask_operations[];
/* How far a primary's log is; null of a standby. */
extern const char pg_ask_position[];
/* The same with what the module counts, where it does. */
extern const char pg_ask_last[];
/* Its databases, and what one of them has in it. */
extern const char pg_ask_databases[], pg_ask_inside[];

#endif

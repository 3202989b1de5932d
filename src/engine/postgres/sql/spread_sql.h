/* Scripts that spread tables over shards. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_SPREAD_SQL_H
#define STEWARD_ENGINE_POSTGRES_SQL_SPREAD_SQL_H

extern const char *const pg_spread_sql_shard[], *const pg_spread_sql_begin[], *const pg_spread_sql_rest[];

#endif

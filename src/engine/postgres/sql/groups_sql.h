/* Scripts about what groups own and were granted. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_GROUPS_SQL_H
#define STEWARD_ENGINE_POSTGRES_SQL_GROUPS_SQL_H

extern const char pg_grants_sql_owners[], pg_grants_sql_definers[], pg_grants_sql_surplus[], pg_grants_sql_to_come[],
        pg_grants_sql_databases[];

#endif

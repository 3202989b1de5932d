/* Connections to servers, and statements with an end. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_SQL_H
#define STEWARD_ENGINE_POSTGRES_SQL_SQL_H

#include "engine/postgres/model/model.h"

#include <libpq-fe.h>

int pg_sql_open(const struct pg_node *n, const char *run_dir, const char *database, int timeout_ms, PGconn **ret_conn);
int pg_sql_open_as(const struct pg_node *n, const char *run_dir, const char *user, const char *database, int timeout_ms,
                   PGconn **ret_conn);
/* Begins to connect, for who goes on with PQconnectPoll(); `more`: options of the session beside the usual ones. NULL:
 * no memory. */
PGconn *pg_sql_begin(unsigned port, const char *run_dir, const char *user, const char *database, const char *more);
int pg_sql_open_node(const struct pg_cluster *c, const struct pg_node *n, const char *database, int timeout_ms,
                     PGconn **ret_conn);
int pg_sql_do(PGconn *conn, int timeout_ms, const char *sql);
int pg_sql_rows(PGconn *conn, int timeout_ms, const char *sql, PGresult **ret_rows);
int pg_sql_int(PGconn *conn, int timeout_ms, const char *sql, int64_t *ret_value);
/* The only way to a value of a result. A superuser can put a server of their own behind a node's socket, which answers
 * with fewer columns or rows than were asked for: such a value is empty. PQgetvalue() gives NULL, and the process,
 * which all tenants share, would end with it. */
static inline char *pg_value(const PGresult *rows, int row, int column)
{
	static char none[1];
	char *value = PQgetvalue(rows, row, column);
	return value ? value : none;
}
/* One number from a node, on a connection of its own, within seconds. */
int pg_sql_ask_node(struct pg_cluster *c, struct pg_node *n, const char *sql, int64_t *ret_value);

#endif

/* Talking to a node over its unix socket, never longer than asked: a hung server must not hang its keeper. */
#include "engine/postgres/sql/sql.h"

#include "base/log.h"
#include "engine/postgres/host/logins.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

static int wait_for(PGconn *conn, short events, int64_t end)
{
	for (;;) {
		struct pollfd p = {PQsocket(conn), events, 0};
		int64_t left = end - pg_mono_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		int r = poll(&p, 1, (int)left);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

static int fault(PGconn *conn, const char *what)
{
	pg_why_set(NULL, "%s: %s", what, PQerrorMessage(conn));
	return -EIO;
}

/* What a database's owner may have set for all who connect to it, the superuser among them, does not count here. A
 * hostile user's locks hold the service up for seconds only, and a statement that nobody waits for any more ends: its
 * sessions would otherwise wait on, until no connection is left for the next. With exit_on_error the first thing that
 * could not be done in a database, because somebody held it, ended the visit, and all else that was to be taken back
 * there stayed. */
static const char session_options[] =
        "-c synchronous_commit=on -c search_path=pg_catalog -c client_min_messages=warning -c role=none "
        "-c local_preload_libraries= -c default_transaction_read_only=off -c default_transaction_deferrable=off "
        "-c default_transaction_isolation=read\\ committed -c statement_timeout=10min -c lock_timeout=10s "
        "-c extra_float_digits=1 -c jit=off -c idle_in_transaction_session_timeout=2min -c idle_session_timeout=0 -c "
        "client_connection_check_interval=2s "
        "-c "
        "standard_conforming_strings=on -c default_tablespace= "
        "-c temp_tablespaces= -c exit_on_error=off -c transform_null_equals=off -c quote_all_identifiers=off "
        "-c DateStyle=ISO,MDY -c IntervalStyle=postgres -c bytea_output=hex -c array_nulls=on -c "
        "check_function_bodies=on";

/* What the service asks is not written down as slow, nor kept as a statement, with verifiers of passwords in it
 * perhaps, and counts for no advice. Nobody else may say so. */
static const char super_options[] =
        " -c auto_explain.log_min_duration=-1 -c pg_qualstats.enabled=off -c pg_stat_statements.track=none "
        "-c plpgsql.extra_errors=none -c plpgsql.extra_warnings=none";

/* A user's code can warn whoever runs it, and libpq would write that into the service's own log. */
static void notice_drop(void *ctx, const PGresult *result)
{
	(void)ctx;
	(void)result;
}

PGconn *pg_sql_begin(unsigned port, const char *run_dir, const char *user, const char *database, const char *more)
{
	char port_text[16], options[sizeof session_options + sizeof super_options + 256];
	bool super = strcmp(user, PG_SUPER) == 0;
	snprintf(port_text, sizeof port_text, "%u", port);
	snprintf(options, sizeof options, "%s%s%s", session_options, super ? super_options : "", more);
	/* Everything that the environment could say otherwise is said here. */
	const char *names[] = {"host",     "port",
	                       "user",     "dbname",
	                       "sslmode",  "gssencmode",
	                       "passfile", "application_name",
	                       "options",  "client_encoding",
	                       NULL};
	const char *values[] = {run_dir,        port_text, user,    database, "disable", "disable",
	                        "/nonexistent", "steward", options, "UTF8",   NULL};
	PGconn *conn = PQconnectStartParams(names, values, 0);
	if (conn)
		PQsetNoticeReceiver(conn, notice_drop, NULL);
	return conn;
}

int pg_sql_open_as(const struct pg_node *n, const char *run_dir, const char *user, const char *database, int timeout_ms,
                   PGconn **ret_conn)
{
	int64_t end = pg_mono_ms() + timeout_ms;
	PGconn *conn = pg_sql_begin(n->port, run_dir, user, database, "");
	if (!conn)
		return -ENOMEM;
	int r = PQstatus(conn) == CONNECTION_BAD ? fault(conn, "connect") : 0;
	PostgresPollingStatusType s = PGRES_POLLING_WRITING;
	while (r == 0 && s != PGRES_POLLING_OK) {
		r = wait_for(conn, s == PGRES_POLLING_READING ? POLLIN : POLLOUT, end);
		if (r < 0)
			break;
		s = PQconnectPoll(conn);
		if (s == PGRES_POLLING_FAILED)
			r = fault(conn, "connect");
	}
	if (r < 0) {
		PQfinish(conn);
		return r;
	}
	/* The context of an error can hold a statement with a verifier in it, and errors are logged and kept. */
	PQsetErrorVerbosity(conn, PQERRORS_TERSE);
	*ret_conn = conn;
	return 0;
}

int pg_sql_open(const struct pg_node *n, const char *run_dir, const char *database, int timeout_ms, PGconn **ret_conn)
{
	return pg_sql_open_as(n, run_dir, PG_SUPER, database, timeout_ms, ret_conn);
}

int pg_sql_open_node(const struct pg_cluster *c, const struct pg_node *n, const char *database, int timeout_ms,
                     PGconn **ret_conn)
{
	char run[PG_PATH];
	pg_node_run_dir(c, n, run);
	int r = pg_sql_open(n, run, database, timeout_ms, ret_conn);
	/* A client that has yet to say its password takes a place as well, of those that are kept for the superuser
	 * too: some hundred of them, without any password, would keep the service out, and with it every revocation. */
	for (int i = 0; i < 3 && r == -EIO && strstr(pg_why_last(), "too many clients"); i++) {
		pg_logins_sweep(n);
		pg_sleep_ms(20);
		r = pg_sql_open(n, run, database, timeout_ms, ret_conn);
	}
	return r;
}

/* The last result of all statements, or the first that failed. */
static int results_take(PGconn *conn, int64_t end, PGresult **ret_rows)
{
	PGresult *last = NULL;
	int r = 0;
	for (;;) {
		while (r == 0 && PQisBusy(conn)) {
			r = wait_for(conn, POLLIN, end);
			if (r == 0 && !PQconsumeInput(conn))
				r = fault(conn, "query");
		}
		if (r == -ETIMEDOUT || r == -EIO)
			break;
		PGresult *next = PQgetResult(conn);
		if (!next)
			break;
		PQclear(last);
		last = next;
		ExecStatusType status = PQresultStatus(last);
		if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
			pg_why_set(NULL, "query: %s", PQresultErrorMessage(last));
			r = -EPROTO;
			break;
		}
	}
	if (r == 0 && last) {
		*ret_rows = last;
		return 0;
	}
	PQclear(last);
	if (r == -ETIMEDOUT)
		pg_why_set(NULL, "query: no answer in time");
	return r < 0 ? r : -EIO;
}

/* The rest after a fault, so that the connection can be used again; not where it does not come in time. */
static void rest_drop(PGconn *conn, int64_t end)
{
	for (PGresult *more = NULL;; PQclear(more)) {
		while (PQisBusy(conn))
			if (wait_for(conn, POLLIN, end) < 0 || !PQconsumeInput(conn))
				return;
		if (!(more = PQgetResult(conn)))
			return;
	}
}

int pg_sql_rows(PGconn *conn, int timeout_ms, const char *sql, PGresult **ret_rows)
{
	if (!PQsendQuery(conn, sql))
		return fault(conn, "query");
	int64_t end = pg_mono_ms() + timeout_ms;
	int r = results_take(conn, end, ret_rows);
	if (r == -EPROTO)
		rest_drop(conn, end);
	return r;
}

int pg_sql_do(PGconn *conn, int timeout_ms, const char *sql)
{
	PGresult *rows;
	int r = pg_sql_rows(conn, timeout_ms, sql, &rows);
	if (r == 0)
		PQclear(rows);
	return r;
}

int pg_sql_int(PGconn *conn, int timeout_ms, const char *sql, int64_t *ret_value)
{
	PGresult *rows;
	int r = pg_sql_rows(conn, timeout_ms, sql, &rows);
	if (r < 0)
		return r;
	if (PQntuples(rows) < 1 || PQgetisnull(rows, 0, 0))
		r = -ENODATA;
	else
		*ret_value = strtoll(pg_value(rows, 0, 0), NULL, 10);
	PQclear(rows);
	return r;
}

int pg_sql_ask_node(struct pg_cluster *c, struct pg_node *n, const char *sql, int64_t *ret_value)
{
	PGconn *conn;
	int r = pg_sql_open_node(c, n, "postgres", 2000, &conn);
	if (r < 0)
		return r;
	r = pg_sql_int(conn, 2000, sql, ret_value);
	PQfinish(conn);
	return r;
}

/* steward-sql: runs what a person has typed into the console's editor, as their own user of the database, in a process
 * of its own.
 *
 * What the statement gives back may be anything: libpq reads each row as a whole into memory, however long it is, and
 * has no bound. Here the process has one, and a row of a gigabyte ends it instead of the service. The process has no
 * keys, no store and no environment; the password comes by its standard input and goes no further than the server. Once
 * it is connected, and before it sends the statement, it gives up its user and every system call but those for that
 * connection.
 *
 * Standard input: {"host": directory of the server's socket, "port", "user", "password", "database", "text", "write":
 * bool, "seconds", "rows", "bytes"}. Standard output: {"results": [{"columns": [{"name","type"}], "rows": [[text or
 * null]], "command", "more"}], "notices": [texts], "milliseconds", "error": {...}, "open": bool}, or {"refused": why,
 * "code": the server's SQLSTATE, or ""} when there is no connection.
 *
 * To read is the rule: then one statement runs in a transaction that cannot write and is rolled back. The extended
 * protocol takes one statement alone, so none can end the transaction first. With `write` any number run, as in psql.
 * What they may do the database says. */
#include "confine/confine.h"
#include "confine/pipes.h"

#include <jansson.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define INPUT_MAX (256u << 10)
#define MEMORY_MAX (384ul << 20)
#define RESULTS_MAX 20
#define COLUMNS_MAX 400
#define NOTICES_MAX 20
#define VALUE_MAX 10000 /* bytes of a value that are shown */
#define GRACE 3         /* seconds after the server should have ended the statement */
#define CONNECT_MAX 5   /* seconds */

struct run {
	PGconn *conn;
	json_t *out, *results, *notices, *rows; /* rows: of the result that is being read, or NULL */
	json_t *now;
	int64_t row_max, byte_max, row_count, byte_count;
	int write, full;
};

static int64_t number(const json_t *in, const char *name)
{
	return json_integer_value(json_object_get(in, name));
}

static const char *text(const json_t *in, const char *name)
{
	const char *value = json_string_value(json_object_get(in, name));
	return value ? value : "";
}

/* A database that keeps bytes without an encoding sends them as they are. */
static json_t *json_of(const char *bytes, size_t n)
{
	json_t *value = json_stringn(bytes, n);
	if (value)
		return value;
	char *plain = malloc(n + 1);
	if (!plain)
		return json_null();
	memcpy(plain, bytes, n);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)plain[i] >= 0x80)
			plain[i] = '?';
	value = json_stringn(plain, n);
	free(plain);
	return value ? value : json_null();
}

static json_t *json_of_text(const char *value)
{
	return value ? json_of(value, strlen(value)) : json_null();
}

/* Cut between two characters. */
static size_t shown_length(const char *value, size_t n)
{
	if (n <= VALUE_MAX)
		return n;
	n = VALUE_MAX;
	while (n > 0 && ((unsigned char)value[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static void notice_take(void *ctx, const PGresult *result)
{
	struct run *r = ctx;
	if (json_array_size(r->notices) < NOTICES_MAX)
		json_array_append_new(r->notices, json_of_text(PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)));
}

/* --- results */

static void result_begin(struct run *r, const PGresult *from)
{
	json_t *columns = json_array();
	for (int i = 0; i < PQnfields(from) && i < COLUMNS_MAX; i++)
		json_array_append_new(columns, json_pack("{s:o, s:I}", "name", json_of_text(PQfname(from, i)), "type",
		                                         (json_int_t)PQftype(from, i)));
	r->rows = json_array();
	r->row_count = 0;
	r->now = json_pack("{s:o, s:o}", "columns", columns, "rows", r->rows);
	if (json_array_size(r->results) < RESULTS_MAX)
		json_array_append(r->results, r->now);
}

static void result_end(struct run *r, const char *command)
{
	if (!r->now)
		return;
	json_object_set_new(r->now, "command", json_of_text(command));
	json_decref(r->now);
	r->now = r->rows = NULL;
}

static void row_add(struct run *r, const PGresult *from)
{
	if (r->row_count >= r->row_max || r->byte_count >= r->byte_max || json_array_size(r->results) > RESULTS_MAX) {
		json_object_set_new(r->now, "more", json_true());
		r->full = 1;
		return;
	}
	json_t *row = json_array();
	for (int i = 0; i < PQnfields(from) && i < COLUMNS_MAX; i++) {
		const char *value = PQgetvalue(from, 0, i);
		size_t n = (size_t)PQgetlength(from, 0, i), shown = shown_length(value, n);
		r->byte_count += (int64_t)shown + 4;
		json_array_append_new(row, PQgetisnull(from, 0, i) ? json_null() : json_of(value, shown));
		if (shown < n)
			json_object_set_new(r->now, "cut", json_true());
	}
	json_array_append_new(r->rows, row);
	r->row_count++;
}

static void error_take(struct run *r, const PGresult *from)
{
	static const struct {
		const char *name;
		int field;
	} fields[] = {{"code", PG_DIAG_SQLSTATE},
	              {"message", PG_DIAG_MESSAGE_PRIMARY},
	              {"detail", PG_DIAG_MESSAGE_DETAIL},
	              {"hint", PG_DIAG_MESSAGE_HINT},
	              {"position", PG_DIAG_STATEMENT_POSITION}};
	json_t *error = json_object();
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		const char *value = PQresultErrorField(from, fields[i].field);
		if (value)
			json_object_set_new(error, fields[i].name, json_of(value, shown_length(value, strlen(value))));
	}
	if (!json_object_get(error, "message"))
		json_object_set_new(error, "message", json_of_text(PQresultErrorMessage(from)));
	json_object_set_new(r->out, "error", error);
}

static void error_say(struct run *r, const char *message)
{
	json_object_set_new(r->out, "error", json_pack("{s:s}", "message", message));
}

/* 0: go on; 1: no more is wanted. */
static int result_take(struct run *r, const PGresult *from)
{
	switch (PQresultStatus(from)) {
	case PGRES_SINGLE_TUPLE:
		if (!r->now)
			result_begin(r, from);
		row_add(r, from);
		return r->full && !r->write; /* what writes has to be read to its end, or it would be undone */
	case PGRES_TUPLES_OK:
		if (!r->now)
			result_begin(r, from);
		result_end(r, PQcmdStatus((PGresult *)(uintptr_t)from));
		return 0;
	case PGRES_COMMAND_OK:
		result_begin(r, from);
		result_end(r, PQcmdStatus((PGresult *)(uintptr_t)from));
		return 0;
	case PGRES_EMPTY_QUERY: return 0;
	case PGRES_COPY_IN:
	case PGRES_COPY_OUT:
	case PGRES_COPY_BOTH:
		error_say(r, "COPY from or to the client is not possible here. Use psql for that.");
		return 1;
	default: error_take(r, from); return 0;
	}
}

/* The server ends a statement of which no more is wanted when the connection is closed, within the interval at which it
 * looks for that. */
static void results_read(struct run *r)
{
	int over = 0;
	PGresult *one;
	while (!over && (one = PQgetResult(r->conn))) {
		over = result_take(r, one);
		PQclear(one);
	}
	result_end(r, NULL);
}

/* --- the server */

/* PQconnectdb(), step by step. */
static PostgresPollingStatusType server_connect(PGconn *conn)
{
	PostgresPollingStatusType state = PGRES_POLLING_WRITING;
	struct timespec from, now;
	clock_gettime(CLOCK_MONOTONIC, &from);
	while (state == PGRES_POLLING_READING || state == PGRES_POLLING_WRITING) {
		struct pollfd fd = {PQsocket(conn), state == PGRES_POLLING_READING ? POLLIN : POLLOUT, 0};
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (PQstatus(conn) == CONNECTION_BAD || now.tv_sec - from.tv_sec > CONNECT_MAX ||
		    poll(&fd, 1, 1000) < 0)
			return PGRES_POLLING_FAILED;
		if (fd.revents)
			state = PQconnectPoll(conn);
	}
	return state;
}

static PGconn *server_open(const json_t *in)
{
	char port[16], options[512];
	int write = json_is_true(json_object_get(in, "write"));
	snprintf(port, sizeof port, "%d", (int)number(in, "port"));
	snprintf(options, sizeof options,
	         "-c statement_timeout=%ds -c lock_timeout=%ds -c idle_in_transaction_session_timeout=30s -c "
	         "client_connection_check_interval=2s -c default_transaction_read_only=%s",
	         (int)number(in, "seconds"), (int)number(in, "seconds"), write ? "off" : "on");
	const char *names[] = {"host",
	                       "port",
	                       "user",
	                       "password",
	                       "dbname",
	                       "sslmode",
	                       "gssencmode",
	                       "passfile",
	                       "application_name",
	                       "options",
	                       "client_encoding",
	                       NULL};
	const char *values[] = {text(in, "host"),     port,      text(in, "user"), text(in, "password"),
	                        text(in, "database"), "disable", "disable",        "/nonexistent",
	                        "Steward console",    options,   "UTF8",           NULL};
	PGconn *conn = PQconnectStartParams(names, values, 0);
	/* Where it fails there is no result to ask for the SQLSTATE: the message has it, of this verbosity alone. */
	PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
	if (server_connect(conn) == PGRES_POLLING_OK)
		PQsetErrorVerbosity(conn, PQERRORS_DEFAULT);
	return conn;
}

/* The message is "...FATAL:  28P01: password authentication failed...", and lines of where in the server's source it
 * arose. What stands before it is the path of the socket, which says nothing to the person. */
static json_t *refusal(PGconn *conn)
{
	static const size_t state = 5; /* the letters of a SQLSTATE */
	const char *fatal = strstr(PQerrorMessage(conn), "FATAL:  ");
	const char *code = fatal ? fatal + strlen("FATAL:  ") : "", *end = strstr(code, ": ");
	if (!end || (size_t)(end - code) != state)
		return json_pack("{s:s, s:s}", "refused", "it does not answer", "code", "");
	return json_pack("{s:o, s:s%}", "refused", json_of(end + 2, strcspn(end + 2, "\n")), "code", code, state);
}

static int statement_send(struct run *r, const char *sql)
{
	if (r->write)
		return PQsendQuery(r->conn, sql);
	PGresult *begun = PQexec(r->conn, "begin transaction read only");
	int sent = PQresultStatus(begun) == PGRES_COMMAND_OK;
	PQclear(begun);
	return sent && PQsendQueryParams(r->conn, sql, 0, NULL, NULL, NULL, NULL, 0);
}

static json_t *ask(const json_t *in)
{
	struct run r = {.out = json_object(),
	                .results = json_array(),
	                .notices = json_array(),
	                .row_max = number(in, "rows"),
	                .byte_max = number(in, "bytes"),
	                .write = json_is_true(json_object_get(in, "write"))};
	struct timespec from, to;
	r.conn = server_open(in);
	if (PQstatus(r.conn) != CONNECTION_OK)
		return refusal(r.conn);
	/* The service's own roles come in by the user that this process runs as, without a password. */
	if (!PQconnectionUsedPassword(r.conn))
		return json_pack("{s:s, s:s}", "refused", "this user does not sign in with a password", "code",
		                 "28000");
	confine_to_connection(&(struct confine_bounds){.memory = MEMORY_MAX}, PQsocket(r.conn));
	PQsetNoticeReceiver(r.conn, notice_take, &r);
	clock_gettime(CLOCK_MONOTONIC, &from);
	if (statement_send(&r, text(in, "text")) && PQsetSingleRowMode(r.conn))
		results_read(&r);
	else
		error_say(&r, "the statement could not be sent");
	clock_gettime(CLOCK_MONOTONIC, &to);
	json_object_set_new(r.out, "open", json_boolean(r.write && PQtransactionStatus(r.conn) != PQTRANS_IDLE));
	json_object_set_new(r.out, "results", r.results);
	json_object_set_new(r.out, "notices", r.notices);
	json_object_set_new(
	        r.out, "milliseconds",
	        json_real((double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6));
	PQfinish(r.conn);
	return r.out;
}

/* --- the process */

static void bounds_set(unsigned seconds)
{
	const struct rlimit time = {seconds, seconds}, none = {0, 0}, files = {16, 16};
#ifndef __SANITIZE_ADDRESS__ /* whose shadow is larger than any memory */
	const struct rlimit memory = {MEMORY_MAX, MEMORY_MAX};
	if (setrlimit(RLIMIT_AS, &memory) < 0)
		_exit(1);
#endif
	if (setrlimit(RLIMIT_CPU, &time) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 ||
	    setrlimit(RLIMIT_NOFILE, &files) < 0)
		_exit(1);
}

int main(void)
{
	char *bytes = malloc(INPUT_MAX);
	size_t n = bytes ? pipe_read(bytes, INPUT_MAX) : 0;
	json_t *in = n && n < INPUT_MAX ? json_loadb(bytes, n, 0, NULL) : NULL;
	if (!in)
		return 1;
	unsigned seconds = (unsigned)number(in, "seconds") + GRACE;
	bounds_set(seconds);
	alarm(seconds);
	char *said = json_dumps(ask(in), JSON_COMPACT);
	_exit(said && pipe_write(said) == 0 ? 0 : 1);
}

/* Logs that are read while they are written and rotated: every line once, in order, forwards and backwards. */
#include "base/arena.h"
#include "base/clock.h"
#include "check.h"
#include "engine/postgres/observe/log_cursor.h"
#include "engine/postgres/observe/logins.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define LINES_MAX 20000

static char folder[] = "/tmp/log-XXXXXX";
static int taken[LINES_MAX];
static size_t taken_count, stop_at;

static void file_path(unsigned number, char ret_path[96])
{
	snprintf(ret_path, 96, "%s/postgresql-202611%02u-000000.json", folder, number + 1);
}

static void write_to(unsigned file, const char *text, size_t n)
{
	char path[96];
	file_path(file, path);
	FILE *f = fopen(path, "a");
	CHECK(f && fwrite(text, 1, n, f) == n);
	if (f)
		fclose(f);
}

static void line_write(unsigned file, unsigned number)
{
	char text[64];
	write_to(file, text, (size_t)snprintf(text, sizeof text, "line %u\n", number));
}

static void files_remove(void)
{
	char path[96];
	for (unsigned i = 0; i < 31; i++) {
		file_path(i, path);
		unlink(path);
	}
	snprintf(path, sizeof path, "%s/postgresql-20261101-000000.log", folder);
	unlink(path);
}

static int line_take(void *ctx, struct str line)
{
	char text[64];
	if (taken_count == stop_at)
		return 7;
	str_copy(line, text, sizeof text);
	if (taken_count < LINES_MAX)
		taken[taken_count++] = strncmp(text, "line ", 5) == 0 ? (int)strtol(text + 5, NULL, 10) : -1;
	return 0;
}

static void begin(void)
{
	taken_count = 0;
	stop_at = SIZE_MAX;
}

static bool taken_are(int from, int to)
{
	int step = from <= to ? 1 : -1;
	bool good = taken_count == (size_t)(abs(to - from) + 1);
	for (size_t i = 0; good && i < taken_count; i++)
		good = taken[i] == from + step * (int)i;
	return good;
}

static void test_follow(void)
{
	struct pg_log_cursor c = {.offset = 0};
	begin();
	CHECK(pg_log_follow("/nonexistent", &c, line_take, NULL) == -ENOENT);
	CHECK(pg_log_follow(folder, &c, line_take, NULL) == 0 && taken_count == 0);
	line_write(0, 0);
	line_write(0, 1);
	write_to(0, "line ", 5);
	CHECK(pg_log_follow(folder, &c, line_take, NULL) == 0 && taken_are(0, 1));
	CHECK(pg_log_follow(folder, &c, line_take, NULL) == 0 && taken_are(0, 1));
	write_to(0, "2\n", 2);
	line_write(1, 3);
	line_write(2, 4);
	/* Whoever does not take a line gets it again. */
	stop_at = 4;
	CHECK(pg_log_follow(folder, &c, line_take, NULL) == 7 && taken_are(0, 3));
	stop_at = SIZE_MAX;
	CHECK(pg_log_follow(folder, &c, line_take, NULL) == 0 && taken_are(0, 4));
	line_write(2, 5);
	CHECK(pg_log_follow(folder, &c, line_take, NULL) == 0 && taken_are(0, 5));
	/* Its file is gone: on with the next. */
	files_remove();
	line_write(4, 6);
	CHECK(pg_log_follow(folder, &c, line_take, NULL) == 0 && taken_are(0, 6));
	files_remove();
}

static void long_write(unsigned file)
{
	size_t n = 3 * PG_LOG_LINE_MAX;
	char *text = must_malloc(n);
	memset(text, 'x', n);
	write_to(file, text, n);
	free(text);
}

static void test_long_lines(void)
{
	struct pg_log_cursor c = {.offset = 0};
	begin();
	line_write(0, 0);
	long_write(0);
	CHECK(pg_log_follow(folder, &c, line_take, NULL) == 0 && taken_are(0, 0));
	write_to(0, "line 9\n", 7);
	line_write(0, 1);
	CHECK(pg_log_follow(folder, &c, line_take, NULL) == 0 && taken_are(0, 1));
	begin();
	CHECK(pg_log_back(folder, 0, INT64_MAX, line_take, NULL) == 0 && taken_are(1, 0));
	files_remove();
}

/* Line by line, with another file now and then. */
static void test_while_written(void)
{
	struct pg_log_cursor c = {.offset = 0};
	unsigned written = 0;
	begin();
	for (unsigned file = 0; file < 20; file++)
		for (unsigned i = 0; i < 500; i++) {
			line_write(file, written++);
			if (i % 97 == 0)
				CHECK(pg_log_follow(folder, &c, line_take, NULL) == 0 && taken_count == written);
		}
	CHECK(pg_log_follow(folder, &c, line_take, NULL) == 0 && taken_are(0, (int)written - 1));
	begin();
	CHECK(pg_log_back(folder, 0, INT64_MAX, line_take, NULL) == 0 && taken_are((int)written - 1, 0));
	begin();
	stop_at = 700;
	CHECK(pg_log_back(folder, 0, INT64_MAX, line_take, NULL) == 7 &&
	      taken_are((int)written - 1, (int)written - 700));
	/* Files of other times are not read at all. */
	int64_t day;
	CHECK(clock_parse(STR("2026-11-10"), &day));
	begin();
	CHECK(pg_log_back(folder, 0, day, line_take, NULL) == 0 && taken_are(4999, 0));
	begin();
	CHECK(pg_log_back(folder, INT64_MAX / 2, INT64_MAX, line_take, NULL) == 0 && taken_count == 0);
	files_remove();
}

/* --- logins */

static void log_write(unsigned file, const char *rest)
{
	char text[2048];
	write_to(file, text,
	         (size_t)snprintf(text, sizeof text, "{\"timestamp\":\"2026-11-05 10:00:00.000 UTC\",%s}\n", rest));
}

#define SESSION(id) \
	"\"user\":\"ann\",\"dbname\":\"shop\",\"pid\":1,\"remote_host\":\"10.1.2.3\",\"session_id\":\"" id "\""
#define AT(doing, severity) ",\"ps\":\"" doing "\",\"error_severity\":\"" severity "\""

static size_t logins(const struct engine_logins *wanted, struct arena *a, struct engine_login **ret_list)
{
	size_t count = 0;
	CHECK(pg_logins_read(folder, wanted, a, ret_list, &count) == 0);
	return count;
}

static void test_logins(void)
{
	struct arena *a = arena_new();
	struct engine_logins w = {.to_ms = INT64_MAX, .max = 100};
	struct engine_login *l;
	struct ip ip;
	/* A login whose two lines lie in two files, and one that is refused after both. */
	log_write(0, SESSION("1.1") AT("authentication",
	                               "LOG") ",\"message\":\"connection authenticated: identity=\\\"ann\\\" "
	                                      "method=cert (/a (b)/conf/pg_hba.conf:4)\"");
	log_write(1, SESSION("1.1") AT("authentication", "LOG") ",\"message\":\"connection authorized: user=ann\"");
	log_write(1, SESSION("1.2") AT("authentication",
	                               "LOG") ",\"message\":\"connection authenticated: identity=\\\"x\\\"\"");
	log_write(1, SESSION("1.2") AT("authentication", "LOG") ",\"message\":\"connection authorized: user=ann\"");
	log_write(1, SESSION("1.2") AT("startup",
	                               "FATAL") ",\"state_code\":\"42501\",\"message\":\"permission denied\","
	                                        "\"detail\":\"Not this one.\\nConnection matched file \\\"/a/hba\\\" "
	                                        "line 12: \\\"ldapbindpasswd=secret\\\"\"");
	log_write(1, SESSION("1.2") AT("authentication", "LOG") ",\"message\":\"connection authenticated: \"");
	/* What a session says, or ends with. */
	log_write(1, SESSION("1.3") AT("DO", "LOG") ",\"message\":\"connection authorized: user=ghost\"");
	log_write(1, SESSION("1.4")
	                     AT("idle", "FATAL") ",\"state_code\":\"57P01\",\"message\":\"terminating connection\"");
	log_write(1, "\"user\":\"steward_engine\",\"remote_host\":\"[local]\",\"session_id\":\"1.5\"" AT(
	                     "authentication", "LOG") ",\"message\":\"connection authorized: user=steward_engine\"");
	log_write(1, "\"remote_host\":\"10.1.2.3\",\"session_id\":\"1.6\"" AT(
	                     "", "FATAL") ",\"state_code\":\"0A000\",\"message\":\"unsupported frontend protocol\"");
	CHECK(logins(&w, a, &l) == 2);
	CHECK(!l[0].success && str_is(l[0].reason, "permission denied: Not this one. (SQLSTATE 42501)"));
	CHECK(str_is(l[0].line,
	             "permission denied: Not this one. (SQLSTATE 42501); rule: pg_hba.conf:12; identity=\"x\""));
	CHECK(l[1].success && str_is(l[1].user, "ann") && str_is(l[1].database, "shop"));
	CHECK(str_is(l[1].line, "connection authorized: user=ann; identity=\"ann\" method=cert (pg_hba.conf:4)"));
	/* As many as are wanted, of those that are; a login is whole also when it is the last. */
	w.result = ENGINE_LOGIN_SUCCESS;
	w.max = 1;
	CHECK(logins(&w, a, &l) == 1 && l[0].success && memmem(l[0].line.p, l[0].line.n, "cert", 4));
	w.result = ENGINE_LOGIN_REFUSAL;
	CHECK(logins(&w, a, &l) == 1 && !l[0].success);
	CHECK(ip_parse(STR("10.1.2.4"), &ip));
	w = (struct engine_logins){.to_ms = INT64_MAX, .max = 100, .address = &ip};
	CHECK(logins(&w, a, &l) == 0);
	CHECK(ip_parse(STR("10.1.2.3"), &ip) && logins(&w, a, &l) == 2);
	w.from_ms = w.to_ms - 1;
	CHECK(logins(&w, a, &l) == 0);
	/* The time is over before the first line, or long not yet. */
	bool cut = false;
	w = (struct engine_logins){.to_ms = INT64_MAX, .max = 100, .end_us = INT64_MAX, .ret_cut = &cut};
	CHECK(logins(&w, a, &l) == 2 && !cut);
	w.end_us = 1;
	CHECK(logins(&w, a, &l) == 0 && cut);
	w = (struct engine_logins){.to_ms = INT64_MAX};
	CHECK(logins(&w, a, &l) == 0);
	CHECK(pg_logins_read("/nonexistent", &w, a, &l, &(size_t){0}) == 0);
	files_remove();
	arena_free(a);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	test_follow();
	test_long_lines();
	test_while_written();
	test_logins();
	CHECK(rmdir(folder) == 0);
	return CHECK_DONE();
}

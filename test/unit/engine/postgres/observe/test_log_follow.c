/* What is sent on of a server's log: ranges that give the same lines again, both logs from one reading, long lines in
 * pieces, files that come and go, and lines that a crash has cut off. */
#include "base/arena.h"
#include "base/buf.h"
#include "check.h"
#include "engine/postgres/observe/log_follow.h"

#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/follow-XXXXXX";

struct taken {
	struct buf text[2];
	size_t lines, most;
	int64_t at;
};

static void append(unsigned file, const char *text, size_t n)
{
	char path[96];
	snprintf(path, sizeof path, "%s/postgresql-202611%02u-000000.json", folder, file + 1);
	FILE *f = fopen(path, "a");
	CHECK(f && fwrite(text, 1, n, f) == n);
	if (f)
		fclose(f);
}

static void say(unsigned file, const char *rest)
{
	char line[512];
	append(file, line,
	       (size_t)snprintf(line, sizeof line, "{\"timestamp\":\"2026-11-17 01:02:03.456 UTC\"%s}\n", rest));
}

static void files_remove(void)
{
	char path[96];
	for (unsigned i = 0; i < 9; i++) {
		snprintf(path, sizeof path, "%s/postgresql-202611%02u-000000.json", folder, i + 1);
		unlink(path);
	}
}

static int take(void *ctx, const struct engine_log_line *line)
{
	struct taken *t = ctx;
	if (t->lines == t->most)
		return 1;
	CHECK(line->position >= t->at && line->text.n <= ENGINE_LOG_PIECE);
	t->at = line->position;
	t->lines++;
	buf_str(&t->text[line->kind == ENGINE_LOG_AUDIT], line->text);
	return 0;
}

static void taken_free(struct taken *t)
{
	buf_free(&t->text[0]);
	buf_free(&t->text[1]);
	*t = (struct taken){.most = SIZE_MAX};
}

static bool has(const struct taken *t, int kind, const char *text)
{
	return t->text[kind].n && memmem(t->text[kind].p, t->text[kind].n, text, strlen(text));
}

static int follow(struct engine_log_range *range, struct taken *t, bool redact)
{
	const struct engine_log log = {.cluster_id = "c", .node = "n", .logins_ms = 1, .redact = redact};
	return pg_log_range(folder, &log, range, take, t);
}

static void ranges(void)
{
	struct taken t = {.most = 2}, again = {.most = SIZE_MAX};
	struct engine_log_range range = {.fixed = false};
	say(0, ",\"message\":\"one\"");
	say(0, ",\"message\":\"AUDIT: SESSION,1\"");
	say(0, ",\"remote_host\":\"[local]\",\"message\":\"connection received\"");
	say(0, ",\"user\":\"steward_engine\",\"remote_host\":\"[local]\",\"message\":\"connection authorized: own\"");
	say(0, ",\"user\":\"app\",\"remote_host\":\"[local]\",\"message\":\"disconnection: console\"");
	say(0, ",\"user\":\"app\",\"message\":\"connection authorized\"");
	say(0, ",\"message\":\"two\"");
	CHECK(follow(&range, &t, false) == 0 && range.more && !range.lost);
	CHECK(has(&t, 0, "one") && has(&t, 1, "AUDIT") && !has(&t, 0, "two"));
	/* The same range again, with more behind it. */
	struct engine_log_range same = {.from = range.from, .to = range.to, .fixed = true};
	append(0, "{\"timestamp\":\"2026-11-17 01", 27);
	CHECK(follow(&same, &again, false) == 0 && again.text[0].n == t.text[0].n && again.text[1].n == t.text[1].n);
	taken_free(&t);
	taken_free(&again);
	range = (struct engine_log_range){.from = range.to};
	CHECK(follow(&range, &t, false) == 0 && !range.more && has(&t, 1, "authorized") && has(&t, 0, "two"));
	CHECK(!has(&t, 0, "received") && !has(&t, 1, "received") && !has(&t, 1, "own") && has(&t, 1, "console"));
	taken_free(&t);
	/* What was being written is cut off by a crash; the next file goes on. */
	struct engine_log_place before = range.to;
	say(1, ",\"user\":\"app\",\"message\":\"secret\"");
	range = (struct engine_log_range){.from = before};
	CHECK(follow(&range, &t, true) == 0 && t.lines == 1 && has(&t, 0, "redacted\"}\n") && !has(&t, 0, "secret"));
	CHECK(strcmp(range.to.file, before.file) > 0 && range.to.position > before.position + 27 && !range.lost);
	taken_free(&t);
	/* The file of the place is gone: a gap of one byte, and it is told. */
	files_remove();
	say(2, ",\"message\":\"three\"");
	before = range.to;
	range = (struct engine_log_range){.from = before};
	CHECK(follow(&range, &t, false) == 0 && range.lost && has(&t, 0, "three"));
	CHECK(range.to.position == before.position + 1 + (int64_t)t.text[0].n);
	taken_free(&t);
	files_remove();
}

/* The service's own work on the server is not its tenants' to read, nor where its files lie. */
static void upkeep(void)
{
	struct taken t = {.most = SIZE_MAX};
	struct engine_log_range range = {.fixed = false};
	say(0, ",\"message\":\"received SIGHUP, reloading configuration files\"");
	say(0, ",\"message\":\"parameter \\\"ssl_crl_file\\\" changed to \\\"/var/lib/x\\\"\"");
	say(0, ",\"message\":\"listening on Unix socket \\\"/run/x/.s.PGSQL.5432\\\"\"");
	say(0,
	    ",\"message\":\"could not open file \\\"/var/lib/steward/pg_hba.conf\\\": No such file\",\"detail\":\"x\"");
	say(0, ",\"user\":\"app\",\"message\":\"parameter \\\"/mine\\\" of my own\"");
	say(0, ",\"user\":\"a (/b\",\"message\":\"connection authenticated: identity=\\\"app\\\" method=scram-sha-256 "
	       "(/var/lib/steward/conf/pg_hba.conf:6)\",\"backend_type\":\"client backend\"");
	say(0, ",\"user\":\"app\",\"state_code\":\"28000\",\"message\":\"no\",\"detail\":\"Connection matched file "
	       "\\\"/var/lib/steward/conf/pg_hba.conf\\\" line 6\"");
	say(0, ",\"user\":\"b\",\"dbname\":\"x (/y\",\"state_code\":\"28P01\",\"message\":\"refused\"");
	CHECK(follow(&range, &t, false) == 0 && t.lines == 5 &&
	      has(&t, 1, "\"x (/y\",\"state_code\":\"28P01\",\"message\":\"refused\""));
	CHECK(has(&t, 1,
	          "\"a (/b\",\"message\":\"connection authenticated: identity=\\\"app\\\" method=scram-sha-256\"}\n"));
	CHECK(has(&t, 1, "\"message\":\"no\",\"detail\":\"redacted\"}\n") && !has(&t, 1, "/var/lib"));
	CHECK(has(&t, 0, "could not open file \\\"a file of the host\\\"\"}\n") && !has(&t, 0, "/var/lib"));
	CHECK(has(&t, 0, "\\\"/mine\\\" of my own"));
	taken_free(&t);
	files_remove();
}

/* A line of several pieces, with what tells its kind in the last of them. */
static void long_lines(void)
{
	size_t n = 3 * ENGINE_LOG_PIECE + 1000;
	char *text = must_malloc(n);
	const char *begin = "{\"timestamp\":\"2026-11-17 01:02:03.456 UTC\",\"user\":\"",
	           *end = ",\"state_code\":\"28P01\"}\n";
	struct taken t = {.most = 2};
	struct engine_log_range range = {.fixed = false};
	memset(text, 'x', n);
	memcpy(text, begin, strlen(begin));
	memcpy(text + n - strlen(end), end, strlen(end));
	append(0, text, n - 1);
	CHECK(follow(&range, &t, false) == 0 && t.lines == 0 && range.to.position == 0);
	append(0, "\n", 1);
	say(0, ",\"message\":\"after\"");
	CHECK(follow(&range, &t, false) == 0 && t.lines == 2 && range.to.rest && range.more);
	CHECK(range.to.position == (int64_t)(2 * (ENGINE_LOG_PIECE - 1)));
	t.most = SIZE_MAX;
	range = (struct engine_log_range){.from = range.to};
	CHECK(follow(&range, &t, false) == 0 && !range.to.rest && t.text[1].n == n);
	CHECK(t.text[1].p && memcmp(t.text[1].p, text, n) == 0 && has(&t, 0, "after"));
	taken_free(&t);
	free(text);
	files_remove();
}

struct pieces {
	size_t count;
	bool whole; /* each ends with its character, and none is a newline alone */
};

static int piece_take(void *ctx, const struct engine_log_line *line)
{
	struct pieces *p = ctx;
	p->count++;
	p->whole &= line->text.n > 1 && ((unsigned char)line->text.p[0] & 0xc0) != 0x80;
	return 0;
}

/* Cut between characters, wherever they lie, and never so that a newline is left alone. */
static void pieces(void)
{
	const char *begin = "{\"timestamp\":\"2026-11-17 01:02:03.456 UTC\",\"message\":\"";
	const struct engine_log log = {.cluster_id = "c", .node = "n"};
	size_t n = ENGINE_LOG_PIECE + 1;
	char *text = must_malloc(n + 8);
	for (size_t shift = 0; shift < 8; shift++) {
		struct pieces p = {.whole = true};
		struct engine_log_range range = {.fixed = false};
		for (size_t i = 0; i < n + 8; i++)
			text[i] = "\xf0\x9f\x90\x98"[(i + shift) % 4];
		memset(text, 'x', 128);
		memcpy(text, begin, strlen(begin));
		text[n - 1 + (shift < 4 ? 0 : shift)] = '\n';
		append(0, text, n + (shift < 4 ? 0 : shift));
		CHECK(pg_log_range(folder, &log, &range, piece_take, &p) == 0 && p.count == 2 && p.whole);
		files_remove();
	}
	free(text);
}

/* What cannot be opened now is not lost. */
static void unreadable(void)
{
	char path[96];
	struct taken t = {.most = SIZE_MAX};
	struct engine_log_range range = {.fixed = false};
	snprintf(path, sizeof path, "%s/postgresql-20261101-000000.json", folder);
	CHECK(symlink("/dev/null", path) == 0);
	say(1, ",\"message\":\"later\"");
	CHECK(follow(&range, &t, false) < 0 && t.lines == 0);
	taken_free(&t);
	files_remove();
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	ranges();
	upkeep();
	long_lines();
	pieces();
	unreadable();
	CHECK(rmdir(folder) == 0);
	return CHECK_DONE();
}

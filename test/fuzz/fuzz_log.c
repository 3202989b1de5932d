/* A server's log: the marks of its lines, the cursor that follows its files, and who logged in. The input is what lies in up
 * to three files; the byte 1 ends a file, and 2 stands for so many bytes that a line is longer than what is read at once.
 *
 * Read at once or line by line, forwards or backwards, the lines are the same; a range that is asked for again gives the
 * same; and what may not be given is not. */
#include "base/arena.h"
#include "base/buf.h"
#include "engine/postgres/observe/log_cursor.h"
#include "engine/postgres/observe/log_follow.h"
#include "engine/postgres/observe/log_line.h"
#include "engine/postgres/observe/logins.h"
#include "fuzz.h"

#include <unistd.h>

#define FILES 3
#define STEPS 5 /* of one line, then of two ...; the rest at once */
#define LONG_BYTES 270000
#define ALL_BYTES (PG_LOG_LINE_MAX - 1) /* no line is passed over for its length */

static char folder[] = "/tmp/steward-fuzz-log-XXXXXX";

static void path_set(unsigned file, char ret_path[128])
{
	snprintf(ret_path, 128, "%s/postgresql-202611%02u-000000.json", folder, file + 1);
}

static void folder_remove(void)
{
	char path[128];
	for (unsigned i = 0; i < FILES; i++) {
		path_set(i, path);
		unlink(path);
	}
	rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	HOLDS(mkdtemp(folder) && atexit(folder_remove) == 0);
	return 0;
}

static void file_write(unsigned file, struct str text)
{
	char path[128];
	path_set(file, path);
	FILE *f = fopen(path, "w");
	HOLDS(f && fwrite(text.p ? text.p : "", 1, text.n, f) == text.n && fclose(f) == 0);
}

static void files_write(struct str input)
{
	struct buf b = {0};
	unsigned file = 0;
	size_t all = input.n;
	for (size_t i = 0; i < input.n; i++) {
		bool long_one = input.p[i] == 2 && all + LONG_BYTES < ALL_BYTES;
		if (input.p[i] == 1 && file + 1 < FILES) {
			file_write(file++, buf_view(&b));
			b.n = 0;
		} else if (long_one) {
			buf_reserve(&b, LONG_BYTES);
			memset(b.p + b.n, 'x', LONG_BYTES);
			b.n += LONG_BYTES;
			all += LONG_BYTES;
		} else {
			buf_c(&b, input.p[i]);
		}
	}
	while (file < FILES) {
		file_write(file++, buf_view(&b));
		b.n = 0;
	}
	buf_free(&b);
}

/* --- the cursor */

struct lines {
	struct buf text;
	size_t count, most; /* `most`: then it has no room */
	bool backwards;
};

static int line_take(void *ctx, struct str line)
{
	struct lines *l = ctx;
	if (l->count == l->most)
		return 1;
	HOLDS(!memchr(line.p, '\n', line.n));
	l->count++;
	if (l->backwards) { /* its bytes backwards, so that all of it turned around is the text */
		buf_c(&l->text, '\n');
		for (size_t i = line.n; i > 0; i--)
			buf_c(&l->text, line.p[i - 1]);
	} else {
		buf_str(&l->text, line);
		buf_c(&l->text, '\n');
	}
	return 0;
}

static void cursor_holds(void)
{
	struct lines once = {.most = SIZE_MAX}, steps = {.most = 1}, back = {.most = SIZE_MAX, .backwards = true};
	struct pg_log_cursor c = {.offset = 0}, s = {.offset = 0};
	HOLDS(pg_log_follow(folder, &c, line_take, &once) == 0);
	while (pg_log_follow(folder, &s, line_take, &steps) == 1 && steps.most < STEPS)
		steps.most++;
	if (steps.most == STEPS) { /* many lines: the rest at once */
		steps.most = SIZE_MAX;
		HOLDS(pg_log_follow(folder, &s, line_take, &steps) == 0);
	}
	HOLDS(str_eq(buf_view(&once.text), buf_view(&steps.text)));
	HOLDS(strcmp(c.file, s.file) == 0 && c.offset == s.offset);
	HOLDS(pg_log_back(folder, 0, INT64_MAX, line_take, &back) == 0 && back.count == once.count);
	HOLDS(back.text.n == once.text.n);
	for (size_t i = 0; i < back.text.n; i++)
		HOLDS(back.text.p[i] == once.text.p[once.text.n - 1 - i]);
	buf_free(&once.text);
	buf_free(&steps.text);
	buf_free(&back.text);
}

/* --- ranges */

struct given {
	struct buf text[2];
	size_t count, most;
	int64_t position;
};

static int piece_take(void *ctx, const struct engine_log_line *line)
{
	struct given *g = ctx;
	if (g->count == g->most)
		return 1;
	HOLDS(line->text.n && line->text.n <= ENGINE_LOG_PIECE && line->position >= g->position);
	g->position = line->position;
	g->count++;
	buf_str(&g->text[line->kind == ENGINE_LOG_AUDIT], line->text);
	return 0;
}

static void given_hold(const struct given *a, const struct given *b)
{
	HOLDS(str_eq(buf_view(&a->text[0]), buf_view(&b->text[0])) &&
	      str_eq(buf_view(&a->text[1]), buf_view(&b->text[1])));
}

static void given_free(struct given *g)
{
	buf_free(&g->text[0]);
	buf_free(&g->text[1]);
}

static void ranges_hold(bool redact)
{
	const struct engine_log log = {
	        .cluster_id = "c", .node = "n", .logins_ms = 1, .denials_ms = 1, .redact = redact};
	struct given once = {.most = SIZE_MAX}, again = {.most = SIZE_MAX}, steps = {.most = 1};
	struct engine_log_range r = {.fixed = false}, step = {.fixed = false};
	HOLDS(pg_log_range(folder, &log, &r, piece_take, &once) == 0 && !r.more && !r.lost);
	r.fixed = true;
	HOLDS(pg_log_range(folder, &log, &r, piece_take, &again) == 0 && !r.lost);
	given_hold(&once, &again);
	HOLDS(pg_log_range(folder, &log, &step, piece_take, &steps) == 0);
	for (step.from = step.to; step.more; step.from = step.to) {
		steps.most = steps.most < STEPS ? steps.most + 1 : SIZE_MAX;
		HOLDS(pg_log_range(folder, &log, &step, piece_take, &steps) == 0);
	}
	given_hold(&once, &steps);
	given_free(&once);
	given_free(&again);
	given_free(&steps);
}

/* --- lines */

/* What follows a cut ends the line as its server would; without a cut nothing follows. */
static bool is_ended(struct str line, size_t cut, const char *rest)
{
	return *rest ? str_ends(str_of(rest), STR("\"}\n")) : cut == line.n;
}

/* The marks are found wherever a line is cut into pieces that overlap. What follows a cut is nothing of the line. */
static void line_holds(struct str line)
{
	unsigned marks = pg_log_marks(line.p, line.n);
	for (size_t cut = 0; cut <= line.n; cut += 1 + line.n / 16) {
		size_t kept = cut < PG_LOG_OVERLAP ? cut : PG_LOG_OVERLAP;
		HOLDS((pg_log_marks(line.p, cut) | pg_log_marks(line.p + cut - kept, line.n - cut + kept)) == marks);
	}
	for (int redact = 0; redact < 2; redact++) {
		const char *field = pg_log_cut_field(marks, redact), *rest;
		size_t n = field ? pg_log_cut(line, field, &rest) : 0;
		HOLDS(n <= line.n && (!field || !rest || is_ended(line, n, rest)));
		HOLDS(!field || !memmem(line.p, n, field, strlen(field)) || !rest || pg_log_marks(line.p, n) <= marks);
	}
	int64_t ms;
	HOLDS(!pg_log_line_time(line, &ms) || line.n > 23);
}

static void logins_hold(void)
{
	struct arena *a = arena_new();
	struct engine_login *list;
	size_t count;
	const struct engine_logins wanted = {.cluster_id = "c", .node = "n", .to_ms = INT64_MAX, .max = 5};
	HOLDS(pg_logins_read(folder, &wanted, a, &list, &count) == 0 && count <= wanted.max);
	for (size_t i = 0; i < count; i++)
		HOLDS(list[i].success || list[i].reason.n <= list[i].line.n);
	arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = fuzz_input(data, size), line, rest;
	char *exact = fuzz_copy(input);
	rest = (struct str){exact, input.n};
	for (bool more = true; more;) {
		more = str_cut(rest, '\n', &line, &rest);
		line_holds(line);
	}
	files_write(input);
	cursor_holds();
	ranges_hold(false);
	ranges_hold(true);
	logins_hold();
	free(exact);
	return 0;
}

/* The log of queries: a file for each day, with a line of JSON for each query, which the endpoint's processes add
 * when it ends (module/federation.c). One day is in memory at a time. What is no line of a query is left out: the
 * files are the databases' user's. */
#include "engine/postgres/federation/queries.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/nolink.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/paths.h"
#include "module/usage.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#define DAYS 30
#define LONGEST_MS (2 * USAGE_DAY_MS) /* of a query; it stands in the file of the day that it began on */

struct line {
	int64_t at_ms;
	size_t place;
	struct str text;
};

static void day_name(int64_t ms, char ret_name[9])
{
	char text[CLOCK_TEXT]; /* 2025-01-31T... */
	clock_format(ms, text);
	snprintf(ret_name, 9, "%.4s%.2s%.2s", text, text + 5, text + 8);
}

static int line_compare(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	if (x->at_ms != y->at_ms)
		return x->at_ms < y->at_ms ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static const char *text_of(const json_t *o, const char *name)
{
	const char *z = json_string_value(json_object_get(o, name));
	return z ? z : "";
}

static uint64_t count_of(const json_t *o, const char *name)
{
	json_int_t v = json_number(o, name);
	return v > 0 ? (uint64_t)v : 0;
}

static json_t *line_read(struct str text)
{
	json_t *o = json_loadb(text.p, text.n, 0, NULL);
	if (o && !json_is_object(o)) {
		json_decref(o);
		o = NULL;
	}
	return o;
}

static int line_visit(struct str text, engine_federation_visit *visit, void *ctx)
{
	json_t *o = line_read(text);
	if (!o)
		return 0;
	const struct engine_federation_query q = {.at_ms = json_number(o, "at"),
	                                          .took_ms = (int64_t)count_of(o, "took"),
	                                          .user = text_of(o, "user"),
	                                          .client = text_of(o, "client"),
	                                          .database = text_of(o, "database"),
	                                          .statement = text_of(o, "statement"),
	                                          .id = text_of(o, "id"),
	                                          .bytes = count_of(o, "bytes"),
	                                          .rows = count_of(o, "rows"),
	                                          .files = count_of(o, "files"),
	                                          .fault = json_string_value(json_object_get(o, "fault")),
	                                          .limited = json_flag(o, "limited")};
	int r = visit(ctx, &q);
	json_decref(o);
	return r;
}

/* {"at":MILLISECONDS, ... */
static bool line_at(struct str text, int64_t *ret_ms)
{
	static const char begin[] = "{\"at\":";
	uint64_t ms = 0;
	size_t n = sizeof begin - 1, digits = 0;
	if (text.n < n + 16 || memcmp(text.p, begin, n) != 0)
		return false;
	while (n + digits < text.n && digits < 15 && text.p[n + digits] >= '0' && text.p[n + digits] <= '9')
		digits++;
	if (!str_to_u64((struct str){text.p + n, digits}, INT64_MAX, &ms))
		return false;
	*ret_ms = (int64_t)ms;
	return true;
}

static int day_walk(const char *path, int64_t from_ms, int64_t to_ms, engine_federation_visit *visit, void *ctx)
{
	char *text;
	/* The last line may have been added beyond the bound. */
	int r = pg_file_read(path, USAGE_QUERIES_BYTES + (1 << 20), &text);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct str rest = str_of(text), one;
	struct line *lines = NULL;
	size_t count = 0, room = 0;
	while (rest.n) {
		struct line l = {.place = count};
		str_cut(rest, '\n', &one, &rest);
		l.text = one;
		if (!line_at(one, &l.at_ms) || l.at_ms < from_ms || l.at_ms >= to_ms)
			continue;
		if (count == room) {
			room = room ? 2 * room : 256;
			lines = must_realloc(lines, room * sizeof *lines);
		}
		lines[count++] = l;
	}
	if (count)
		qsort(lines, count, sizeof *lines, line_compare);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = line_visit(lines[i].text, visit, ctx);
	free(lines);
	free(text);
	return r;
}

int pg_queries_walk(const char *dir, int64_t from_ms, int64_t to_ms, engine_federation_visit *visit, void *ctx,
                    struct arena *a)
{
	int64_t now = clock_now_ms(), first = now - DAYS * USAGE_DAY_MS;
	int r = 0;
	(void)a;
	from_ms = from_ms > first ? from_ms : first;
	to_ms = to_ms < now + USAGE_DAY_MS ? to_ms : now + USAGE_DAY_MS;
	for (int64_t day = from_ms - from_ms % USAGE_DAY_MS; r == 0 && day < to_ms; day += USAGE_DAY_MS) {
		char name[9], path[PG_PATH];
		day_name(day, name);
		pg_path_set(path, "%s/" USAGE_QUERIES "/%s", dir, name);
		r = day_walk(path, from_ms, to_ms, visit, ctx);
	}
	return r;
}

void pg_queries_sweep(const char *dir)
{
	char oldest[9], path[PG_PATH], file[PG_PATH];
	day_name(clock_now_ms() - DAYS * USAGE_DAY_MS - LONGEST_MS, oldest);
	pg_path_set(path, "%s/" USAGE_QUERIES, dir);
	DIR *d = nolink_opendir(path);
	for (struct dirent *entry; d && (entry = readdir(d));)
		if (strlen(entry->d_name) == 8 && strcmp(entry->d_name, oldest) < 0) {
			pg_path_set(file, "%s/%s", path, entry->d_name);
			nolink_unlink(file);
		}
	if (d)
		closedir(d);
}

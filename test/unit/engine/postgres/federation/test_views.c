/* Pipelines of views as SQL. */
#include "engine/postgres/federation/views.h"

#include "base/arena.h"
#include "check.h"

static struct pg_lake_column columns[] = {
        {.name = "id", .quoted = "\"id\"", .type = "int8", .ours = true, .modifier = -1},
        {.name = "word", .quoted = "\"word\"", .type = "text", .ours = true, .modifier = -1}};
static const struct pg_view_columns table = {columns, 2};

static bool becomes(const char *pipeline, const char *sql, size_t count)
{
	struct arena *a = arena_new();
	struct buf b = {0};
	struct pg_view_columns out = {0};
	const char *why = NULL;
	int r = pg_view_sql(pipeline, "public.\"t\"", &table, a, &b, &out, &why);
	bool same = r == 0 && str_eq(buf_view(&b), str_of(sql)) && out.count == count;
	if (!same)
		fprintf(stderr, "%s\n%.*s\n%s\n", pipeline, (int)b.n, b.n ? b.p : "", why ? why : "");
	buf_free(&b);
	arena_free(a);
	return same;
}

static bool fails(const char *pipeline, const char *words)
{
	struct arena *a = arena_new();
	struct buf b = {0};
	struct pg_view_columns out = {0};
	const char *why = NULL;
	int r = pg_view_sql(pipeline, "public.\"t\"", &table, a, &b, &out, &why);
	bool failed = r < 0 && why && strstr(why, words) && b.n == 0;
	if (!failed)
		fprintf(stderr, "%s: %s\n", pipeline, why ? why : "no words");
	buf_free(&b);
	arena_free(a);
	return failed;
}

int main(void)
{
#define FROM "select \"id\", \"word\" from public.\"t\""
	CHECK(becomes("[]", FROM, 2));
	CHECK(becomes("[{\"$project\": {\"word\": 0}}]", "select \"id\" from (" FROM ") s0", 1));
	CHECK(becomes("[{\"$project\": {\"_id\": 0, \"w\\\"\": \"$word\"}}]",
	              "select \"word\" as \"w\"\"\" from (" FROM ") s0", 1));
	CHECK(becomes("[{\"$sort\": {\"id\": -1}}, {\"$limit\": 3}]",
	              "select \"id\", \"word\" from (select \"id\", \"word\" from (" FROM
	              ") s0 order by \"id\" desc nulls last) s1 limit 3",
	              2));
	CHECK(becomes("[{\"$skip\": 5}]", "select \"id\", \"word\" from (" FROM ") s0 offset 5", 2));
	CHECK(fails("{}", "an array"));
	CHECK(fails("[{\"$match\": {\"x\": 1}}]", "x is no column"));
	CHECK(fails("[{\"$match\": 1}]", "$match must be an object"));
	CHECK(fails("[{\"$limit\": -1}]", "must not be negative"));
	CHECK(fails("[{\"$sort\": {\"id\": 1, \"id; drop table t\": 1}}]", "is no column"));
	CHECK(fails("[{\"$sort\": {\"id\": 2}}]", "1 or -1"));
	CHECK(fails("[{\"$sort\": {}}]", "1 or -1"));
	CHECK(fails("[{\"$project\": {\"word\": 0}}, {\"$project\": {\"word\": 1}}]",
	            "pipeline[1]: word is no column"));
	CHECK(fails("[{\"$project\": {\"id\": 0, \"word\": 0}}]", "leaves no column"));
	CHECK(fails("[{\"$project\": {\"a\": \"id\"}}]", "$project must be"));
	CHECK(fails("[{\"$lookup\": {}}]", "$lookup is no stage"));
	CHECK(fails("[{\"$limit\": 1, \"$skip\": 1}]", "one field"));
	CHECK(fails("[1]", "one field"));
	return CHECK_DONE();
}

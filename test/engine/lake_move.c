/* Moves a table's rows into files of a directory, without a cluster: what test/postgres/test_lake_move.py kills.
 *
 *   lake_move SOCKET_DIR PORT DATABASE STORE WISH     moves rows until the table was looked through
 *   lake_move ... where TABLE                         reads a query from each line, and prints its condition, or "! " and why
 *   lake_move ... sweep ARCHIVE OLDEST_MS             takes away files that no row names; now is NOW_MS of the environment
 *
 * WISH is JSON: archive, table, field, format (a number), beforeMs, order, rows, bytes. Prints a line for each batch, or what the
 * sweep has dropped. An object is put as others do it: whole, or not there. */
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/lake/manifest.h"
#include "engine/postgres/lake/move.h"
#include "engine/postgres/lake/query.h"
#include "engine/postgres/lake/table.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"
#include "filter/filter.h"
#include "objects/objects.h"

#include <errno.h>
#include <stdlib.h>

#define OPEN_MS 5000

static struct objects *objects;
static const char *archive;
static struct arena *arena;

static bool nobody_asks(void *ctx)
{
	return false;
}

static const char *object_name(const char *file)
{
	return arena_printf(arena, "%s/%s.parquet", archive, file).p;
}

static int object_put(void *ctx, const char *file, ssize_t (*read)(void *read_ctx, void *buf, size_t n), void *read_ctx)
{
	return objects_put(objects, object_name(file), read, read_ctx);
}

static int object_drop(void *ctx, const char *file)
{
	return objects_delete(objects, object_name(file));
}

struct visit {
	int (*visit)(void *ctx, const char *file);
	void *ctx;
};

static int object_visit(void *ctx, const struct object_info *info)
{
	struct visit *v = ctx;
	const char *name = strrchr(info->name, '/');
	return name ? v->visit(v->ctx, arena_dup(arena, (struct str){name + 1, strcspn(name + 1, ".")}).p) : 0;
}

static int objects_visit_all(void *ctx, int (*visit)(void *visit_ctx, const char *file), void *visit_ctx)
{
	struct visit v = {visit, visit_ctx};
	return objects_list(objects, arena_printf(arena, "%s/", archive).p, object_visit, &v);
}

static int fail(int r, const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", what, strerror(-r), pg_why_last());
	return 1;
}

static int sweep(PGconn *conn, const char *oldest)
{
	const struct pg_lake_store store = {.list = objects_visit_all, .drop = object_drop};
	const char *now = getenv("NOW_MS");
	struct engine_lake_swept swept;
	int r = pg_lake_manifest_sweep(conn, arena, archive, &store, now ? strtoll(now, NULL, 10) : clock_now_ms(),
	                               strcmp(oldest, "never") == 0 ? INT64_MAX : strtoll(oldest, NULL, 10), &swept);
	if (r < 0)
		return fail(r, "sweep");
	printf("%llu\n", (unsigned long long)swept.dropped);
	return 0;
}

static void condition_print(const struct pg_lake_table *t, struct str line)
{
	struct buf sql = {0}, why = {0};
	const char *fault = NULL;
	const json_t *filter = filter_parse_ordered(line, arena, &fault);
	if (filter && pg_lake_query_sql(t->columns, t->column_count, filter, &sql, &why))
		printf("%.*s\n", STR_ARG(sql));
	else
		printf("! %.*s\n", filter ? (int)why.n : (int)strlen(fault), filter ? why.p : fault);
	buf_free(&sql);
	buf_free(&why);
}

static int conditions_print(PGconn *conn, const char *table)
{
	struct pg_lake_table t;
	char line[20000];
	int r = pg_sql_do(conn, OPEN_MS, "begin");
	r = r < 0 ? r : pg_lake_table_hold(conn, table, arena, &t);
	if (r < 0)
		return fail(r, "table");
	while (fgets(line, sizeof line, stdin))
		condition_print(&t, (struct str){line, strcspn(line, "\n")});
	return 0;
}

static struct pg_lake_move wish_read(const json_t *in)
{
	const json_t *order = json_object_get(in, "order");
	const char **names = arena_new_array(arena, const char *, json_array_size(order) + 1);
	for (size_t i = 0; i < json_array_size(order); i++)
		names[i] = json_item(order, i).p;
	archive = json_field(in, "archive").p;
	return (struct pg_lake_move){.archive = archive,
	                             .table = json_field(in, "table").p,
	                             .query = json_field(in, "query").p,
	                             .field = json_field(in, "field").p,
	                             .format = (enum engine_date)json_number(in, "format"),
	                             .before_ms = json_number(in, "beforeMs"),
	                             .order = names,
	                             .order_count = json_array_size(order),
	                             .rows_max = (unsigned)json_number(in, "rows"),
	                             .bytes_max = (uint64_t)json_number(in, "bytes"),
	                             .now_ms = clock_now_ms()};
}

static int move(PGconn *conn, const struct pg_lake_move *want)
{
	const struct pg_lake_put store = {.put = object_put};
	const struct pg_stop stop = {.asked = nobody_asks};
	struct pg_lake_moved moved = {0};
	uint32_t page = 0;
	while (!moved.over) {
		int r = pg_lake_move(conn, want, &store, &stop, arena, &page, &moved);
		if (r < 0)
			return fail(r, "move");
		printf("%llu rows, %llu bytes, page %u\n", (unsigned long long)moved.rows,
		       (unsigned long long)moved.bytes, page);
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct pg_node node = {0};
	PGconn *conn;
	if (argc < 6)
		return 2;
	json_setup();
	arena = arena_new();
	const struct objects_options options = {.url = argv[4]};
	node.port = (unsigned)strtoul(argv[2], NULL, 10);
	int r = objects_open(&options, &objects);
	if (r < 0)
		return fail(r, objects_why());
	r = pg_sql_open(&node, argv[1], argv[3], OPEN_MS, &conn);
	if (r < 0)
		return fail(r, "connect");
	r = pg_lake_manifest_make(conn);
	if (r < 0)
		return fail(r, "manifest");
	if (strcmp(argv[5], "sweep") == 0 && argc == 8) {
		archive = argv[6];
		r = sweep(conn, argv[7]);
	} else if (strcmp(argv[5], "where") == 0 && argc == 7) {
		r = conditions_print(conn, argv[6]);
	} else {
		struct pg_lake_move want = wish_read(doc_json(arena, str_of(argv[5])));
		r = move(conn, &want);
	}
	PQfinish(conn);
	objects_close(objects);
	arena_free(arena);
	return r;
}

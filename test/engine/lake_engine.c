/* Online archives through the engine's operations, on a cluster of its own: what test/postgres/test_lake_engine.py
 * drives, and kills. Each run is a service that begins, does one thing, and ends; the cluster goes on.
 *
 *   lake_engine at DIR make          makes the cluster; prints its address and port
 *   lake_engine at DIR COMMAND WISH  prints a line of JSON for each answer
 *   lake_engine at DIR end           takes the cluster away
 *
 * COMMAND: check, move (until the table was looked through), batch (one move), held, files, read, bring, expire, sweep,
 * erase. WISH is JSON: the fields of struct engine_lake in the words below; of move also rows and bytes, of read and
 * bring the file, of bring the query `which`, of expire and sweep `than` in milliseconds. KEY=1 in the environment: the
 * project has encryption at rest; KEY=revoked: no longer. */
#include "harness.h"

#include "base/json.h"

#include <stdlib.h>

static const char *why, *field;

static const char *text_of(const json_t *in, const char *name, const char *otherwise)
{
	const char *z = json_string_value(json_object_get(in, name));
	return z ? z : otherwise;
}

static struct engine_lake wish_read(const json_t *in)
{
	const json_t *order = json_object_get(in, "order");
	const char **names = arena_new_array(arena, const char *, json_array_size(order) + 1);
	for (size_t i = 0; i < json_array_size(order); i++)
		names[i] = json_item(order, i).p;
	return (struct engine_lake){.cluster_id = text_of(in, "cluster", ID1),
	                            .group_id = GROUP,
	                            .region = text_of(in, "region", "US_EAST_1"),
	                            .id = text_of(in, "archive", "65f00000000000000000aa01"),
	                            .database = text_of(in, "database", "postgres"),
	                            .table = text_of(in, "table", "events"),
	                            .query = text_of(in, "query", NULL),
	                            .field = text_of(in, "field", "at"),
	                            .format = (enum engine_date)json_number(in, "format"),
	                            .before_ms = json_number(in, "beforeMs"),
	                            .order = names,
	                            .order_count = json_array_size(order)};
}

static int64_t than(const json_t *in)
{
	return json_object_get(in, "than") ? json_number(in, "than") : INT64_MAX;
}

static void answer_print(json_t *answer)
{
	json_dumpf(answer, stdout, JSON_SORT_KEYS | JSON_COMPACT);
	json_decref(answer);
	printf("\n");
	fflush(stdout);
}

static void held_print(const struct engine_lake_held *h)
{
	answer_print(json_pack("{sIsIsIsIsI}", "files", (json_int_t)h->files, "rows", (json_int_t)h->rows, "bytes",
	                       (json_int_t)h->bytes, "oldest", (json_int_t)h->oldest_moved_ms, "newest",
	                       (json_int_t)h->newest_moved_ms));
}

static int check_run(const struct engine_lake *want)
{
	struct engine_lake_preview p = {0};
	int r = ops->lake->check(engine, want, arena, &p, &field, &why);
	if (r == 0)
		answer_print(json_pack("{sIsIsb}", "rows", (json_int_t)p.rows, "bytes", (json_int_t)p.bytes,
		                       "estimated", p.estimated));
	return r;
}

static int move_run(const struct engine_lake *want, const json_t *in, bool all)
{
	const struct engine_lake_bounds bounds = {.rows = (unsigned)json_number(in, "rows"),
	                                          .bytes = (uint64_t)json_number(in, "bytes")};
	struct engine_lake_moved moved;
	uint64_t place = 0;
	int r;
	do {
		r = ops->lake->move(engine, want, &bounds, NULL, arena, &place, &moved, &why);
		if (r == 0)
			answer_print(json_pack("{sIsIsbsI}", "rows", (json_int_t)moved.rows, "bytes",
			                       (json_int_t)moved.bytes, "over", moved.over, "place",
			                       (json_int_t)place));
	} while (r == 0 && all && !moved.over);
	return r;
}

static int bring_run(const struct engine_lake *want, const json_t *in)
{
	struct engine_lake_moved moved;
	const char *file = text_of(in, "file", NULL);
	int r = ops->lake->bring(engine, want, text_of(in, "which", NULL), file, NULL, arena, &moved, &why);
	if (r == 0)
		answer_print(json_pack("{sIsIsb}", "rows", (json_int_t)moved.rows, "bytes", (json_int_t)moved.bytes,
		                       "over", moved.over));
	return r;
}

static int files_run(const struct engine_lake *want)
{
	struct engine_lake_file *list;
	size_t count;
	int r = ops->lake->files(engine, want, 0, 10000, arena, &list, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		answer_print(json_pack("{sssssIsIsssIsI}", "id", list[i].id, "columns", list[i].columns, "rows",
		                       (json_int_t)list[i].rows, "bytes", (json_int_t)list[i].bytes, "sha256",
		                       list[i].sha256, "moved", (json_int_t)list[i].moved_ms, "newest",
		                       (json_int_t)list[i].newest_ms));
	return r;
}

static int bytes_print(void *ctx, const void *bytes, size_t n)
{
	return fwrite(bytes, 1, n, stdout) == n ? 0 : -EIO;
}

static int held_run(const struct engine_lake *want)
{
	struct engine_lake_held h;
	int r = ops->lake->held(engine, want, arena, &h);
	if (r == 0)
		held_print(&h);
	return r;
}

static int expire_run(const struct engine_lake *want, const json_t *in)
{
	struct engine_lake_held gone;
	int r = ops->lake->expire(engine, want, than(in), arena, &gone, &why);
	if (r == 0)
		held_print(&gone);
	return r;
}

static int sweep_run(const struct engine_lake *want, const json_t *in)
{
	struct engine_lake_swept swept;
	int r = ops->lake->sweep(engine, want, than(in), arena, &swept, &why);
	if (r == 0)
		answer_print(json_pack("{sIsI}", "dropped", (json_int_t)swept.dropped, "kept", (json_int_t)swept.kept));
	return r;
}

static int command_run(const char *name, const json_t *in)
{
	const struct engine_lake want = wish_read(in);
	if (strcmp(name, "check") == 0)
		return check_run(&want);
	if (strcmp(name, "move") == 0 || strcmp(name, "batch") == 0)
		return move_run(&want, in, *name == 'm');
	if (strcmp(name, "held") == 0)
		return held_run(&want);
	if (strcmp(name, "files") == 0)
		return files_run(&want);
	if (strcmp(name, "read") == 0)
		return ops->lake->read(engine, &want, text_of(in, "file", ""), bytes_print, NULL, arena, &why);
	if (strcmp(name, "bring") == 0)
		return bring_run(&want, in);
	if (strcmp(name, "expire") == 0)
		return expire_run(&want, in);
	if (strcmp(name, "sweep") == 0)
		return sweep_run(&want, in);
	if (strcmp(name, "erase") == 0)
		return ops->lake->erase(engine, &want, arena, &why);
	return -ENOSYS;
}

static int cluster_make(void)
{
	struct wish w = wish_make(ID1, 1, 0);
	int r = converge(&w, &access_all);
	struct cluster_status s = observe(ID1);
	const struct node_status *p = primary_of(&s);
	if (r == 0 && p)
		printf("%s %u\n", p->address, p->port);
	return r;
}

int main(int argc, char **argv)
{
	const char *key = getenv("KEY");
	json_setup();
	if (argc < 4)
		return 2;
	key_answer = !key ? -ENOENT : strcmp(key, "revoked") == 0 ? -EKEYREVOKED : 0;
	if (harness_begin(argc, argv) != 0)
		return 2;
	int r;
	if (strcmp(argv[3], "make") == 0)
		r = cluster_make();
	else if (strcmp(argv[3], "end") == 0)
		r = ops->core->destroy(engine, ID1, NULL);
	else
		r = command_run(argv[3], argc > 4 ? doc_json(arena, str_of(argv[4])) : NULL);
	if (r < 0)
		fprintf(stderr, "%s: %s: %s\n", strerror(-r), field ? field : "", why ? why : "");
	ops->core->stop(engine);
	return r < 0;
}

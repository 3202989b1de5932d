/* Online archives of the simulated engine keep the contract of engine/lake.h: a row is in the table or in one named
 * file, and what is not named goes when it may. */
#include "engine/engine.h"

#include "base/buf.h"
#include "base/clock.h"

#include "check.h"

#include <errno.h>

#define ID "65f0000000000000000000a1"
#define HOUR_MS INT64_C(3600000)

static const struct engine_ops *ops;
static struct engine *engine;
static struct arena *arena;
static const char *why, *field;
static struct engine_lake lake = {.cluster_id = ID,
                                  .group_id = "65f0000000000000000000b1",
                                  .region = "US_EAST_1",
                                  .id = "65f0000000000000000000c1",
                                  .database = "postgres",
                                  .table = "orders",
                                  .field = "at"};

static uint64_t rows_left(void)
{
	struct engine_lake_preview p;
	CHECK(ops->lake->check(engine, &lake, arena, &p, &field, &why) == 0);
	return p.rows;
}

static struct engine_lake_held held(void)
{
	struct engine_lake_held h = {0};
	CHECK(ops->lake->held(engine, &lake, arena, &h) == 0);
	return h;
}

/* All that there is to move; the number of files. */
static unsigned run(unsigned rows)
{
	const struct engine_lake_bounds bounds = {.rows = rows};
	struct engine_lake_moved moved = {0};
	uint64_t place = 0;
	unsigned files = 0;
	while (!moved.over) {
		CHECK(ops->lake->move(engine, &lake, &bounds, NULL, arena, &place, &moved, &why) == 0);
		CHECK(moved.rows <= rows);
		files += moved.rows > 0;
	}
	return files;
}

static void test_moves(void)
{
	int64_t now = clock_now_ms();
	lake.before_ms = now - 5000 * HOUR_MS;
	uint64_t there = rows_left();
	CHECK(there >= 4999 && there <= 5000 && held().files == 0);
	unsigned files = run(300);
	CHECK(files == (there + 299) / 300 && held().files == files && held().rows == there && rows_left() == 0);
	CHECK(run(300) == 0);
	/* A month later a month's rows are as old. */
	lake.before_ms += 720 * HOUR_MS;
	CHECK(rows_left() == 720 && run(1000) == 1 && held().rows == there + 720);
	struct engine_lake_file *list;
	size_t count;
	CHECK(ops->lake->files(engine, &lake, 1, 2, arena, &list, &count) == 0 && count == 2);
	CHECK(count == 2 && list[0].rows == 300 && strlen(list[0].sha256) == 64 && strcmp(list[0].id, list[1].id) != 0);
}

static int bytes_count(void *ctx, const void *bytes, size_t n)
{
	*(uint64_t *)ctx += n;
	return 0;
}

static void test_files_come_back(void)
{
	struct engine_lake_held before = held();
	struct engine_lake_file *list;
	struct engine_lake_moved moved;
	uint64_t bytes = 0;
	size_t count;
	CHECK(ops->lake->files(engine, &lake, 2, 1, arena, &list, &count) == 0 && count == 1);
	CHECK(ops->lake->read(engine, &lake, list[0].id, bytes_count, &bytes, arena, &why) == 0 &&
	      bytes == list[0].bytes);
	CHECK(ops->lake->bring(engine, &lake, NULL, list[0].id, NULL, arena, &moved, &why) == 0 && moved.rows == 300);
	CHECK(held().rows == before.rows - 300 && rows_left() == 300);
	CHECK(ops->lake->bring(engine, &lake, NULL, list[0].id, NULL, arena, &moved, &why) == -ENOENT);
	CHECK(ops->lake->read(engine, &lake, list[0].id, bytes_count, &bytes, arena, &why) == -ENOENT);
	CHECK(run(1000) == 1 && held().rows == before.rows);
}

static void test_files_go(void)
{
	struct engine_lake_held all = held(), gone;
	struct engine_lake_swept swept;
	CHECK(ops->lake->sweep(engine, &lake, 0, arena, &swept, &why) == 0 && swept.dropped == 0 && swept.kept == 1);
	/* The first run's are older than the second's. */
	CHECK(ops->lake->expire(engine, &lake, lake.before_ms - HOUR_MS, arena, &gone, &why) == 0);
	CHECK(gone.rows > 4000 && held().rows == all.rows - gone.rows && rows_left() == 0);
	CHECK(ops->lake->expire(engine, &lake, INT64_MAX, arena, &gone, &why) == 0 && held().files == 0);
	CHECK(ops->lake->sweep(engine, &lake, 0, arena, &swept, &why) == 0 && swept.dropped == 0 &&
	      swept.kept == all.files + 1);
	CHECK(ops->lake->sweep(engine, &lake, INT64_MAX, arena, &swept, &why) == 0 && swept.kept == 0 &&
	      swept.dropped == all.files + 1);
}

static void test_refusals(void)
{
	const struct engine_lake as = lake;
	const char *const names[] = {"customer", "missing"};
	struct engine_lake_moved moved;
	uint64_t place = 0;
	lake.table = "missing";
	CHECK(ops->lake->check(engine, &lake, arena, NULL, &field, &why) == -ENOENT && strcmp(field, "collName") == 0);
	CHECK(ops->lake->move(engine, &lake, NULL, NULL, arena, &place, &moved, &why) == -ENOENT);
	lake = as;
	lake.field = "missing";
	CHECK(ops->lake->check(engine, &lake, arena, NULL, &field, &why) == -EINVAL &&
	      strcmp(field, "criteria.dateField") == 0);
	lake = as;
	lake.order = names;
	lake.order_count = 2;
	CHECK(ops->lake->check(engine, &lake, arena, NULL, &field, &why) == -EINVAL &&
	      strcmp(field, "partitionFields[1].fieldName") == 0);
	lake = as;
	lake.query = "{";
	CHECK(ops->lake->check(engine, &lake, arena, NULL, &field, &why) == -EINVAL &&
	      strcmp(field, "criteria.query") == 0);
	lake = as;
	ops->control->fail(engine, "archive", 1);
	CHECK(ops->lake->move(engine, &lake, NULL, NULL, arena, &place, &moved, &why) == -EIO);
	CHECK(ops->lake->move(engine, &lake, NULL, NULL, arena, &place, &moved, &why) == 0);
	lake.cluster_id = "65f0000000000000000000a2";
	CHECK(ops->lake->move(engine, &lake, NULL, NULL, arena, &place, &moved, &why) == -EAGAIN);
	lake = as;
}

static void test_query(void)
{
	lake.id = "65f0000000000000000000c2";
	lake.query = "{\"status\": \"done\"}";
	uint64_t there = rows_left();
	CHECK(there >= 999 && there <= 1001 && run(100) >= 10 && held().rows == there && rows_left() == 0);
	CHECK(ops->lake->erase(engine, &lake, arena, &why) == 0 && held().files == 0);
}

int main(void)
{
	struct engine_options options = {.data_dir = "/nonexistent", .domain = "example.org"};
	struct engine_node node = {.name = "a", .priority = 7};
	struct engine_cluster want = {
	        .id = ID, .project_hash = "x1y2z3", .version = 15, .nodes = &node, .node_count = 1, .shards = 1};
	struct engine_access access = {.user_count = 0};
	struct engine_progress progress = {.tell = NULL};
	arena = arena_new();
	ops = engine_find("simulated");
	CHECK(ops->core->start(&options, &engine) == 0);
	ops->control->seconds(engine, 0);
	CHECK(ops->core->converge(engine, &want, &access, &progress, arena, &why) == 0);
	CHECK(ops->lake->can(engine, arena, &why) == 0);
	test_moves();
	test_files_come_back();
	test_files_go();
	test_refusals();
	test_query();
	ops->core->stop(engine);
	arena_free(arena);
	return CHECK_DONE();
}

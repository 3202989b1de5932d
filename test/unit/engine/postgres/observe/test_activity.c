/* What samples have seen of waits and blocked sessions: counted by the hour, whatever a server says. */
#include "base/arena.h"
#include "check.h"
#include "engine/postgres/observe/activity.h"

#define CLUSTER "0123456789abcdef01234567"
#define T0 1700000000000LL

static void test_hour(struct arena *a)
{
	struct pg_activities *all = pg_activities_new();
	struct engine_activity seen;
	pg_activities_past(all, CLUSTER, "n0", T0, a, &seen);
	CHECK(seen.samples == 0 && seen.wait_count == 0 && seen.block_count == 0);
	pg_activities_note(all, CLUSTER, "n0", T0, "Lock:tuple=9", "1:2:50:61:62");
	for (int i = 0; i < 4; i++)
		pg_activities_note(all, CLUSTER, "n0", T0 + 3600000 + i * 10000,
		                   i % 2 ? "" : "IO:WalSync=1,Lock:tuple=2", i < 2 ? "7:8:10000:617070:" : "");
	pg_activities_note(all, CLUSTER, "n1", T0, "IO:WalSync=100", "");
	pg_activities_past(all, CLUSTER, "n0", T0 + 3630000, a, &seen);
	CHECK(seen.samples == 4 && seen.wait_count == 2);
	CHECK(strcmp(seen.waits[0].type, "Lock") == 0 && strcmp(seen.waits[0].event, "tuple") == 0);
	CHECK(seen.waits[0].sessions > 0.99 && seen.waits[0].sessions < 1.01 && seen.waits[1].sessions < 0.51);
	/* One wait, seen twice. */
	CHECK(seen.block_count == 1 && seen.blocks[0].pid == 7 && seen.blocks[0].by == 8);
	CHECK(strcmp(seen.blocks[0].user, "app") == 0 && !*seen.blocks[0].by_user);
	CHECK(seen.blocks[0].first_ms == T0 + 3590000 && seen.blocks[0].last_ms == T0 + 3610000);
	/* A node of which nothing is told is forgotten. */
	pg_activities_drop(all, T0 + 3700000);
	pg_activities_past(all, CLUSTER, "n1", T0 + 1000, a, &seen);
	CHECK(seen.samples == 0);
	pg_activities_past(all, CLUSTER, "n0", T0 + 3630000, a, &seen);
	CHECK(seen.samples == 4);
	pg_activities_free(all);
}

/* Somebody else can answer at a node's socket. */
static void test_nonsense(struct arena *a)
{
	static const char *const texts[] = {",",
	                                    ":",
	                                    "=",
	                                    "a:b",
	                                    "a:b=",
	                                    "a:b=-1",
	                                    "a:b=99999999999999999999",
	                                    ":b=1",
	                                    "a:=1",
	                                    "1:2",
	                                    "1:2:3:4",
	                                    "1:2:3:4:5",
	                                    "-1:2:3::",
	                                    "1:2:3:zz:\xff\xff",
	                                    "1:2:3:ff:61",
	                                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:b=1",
	                                    "\xff:\xfe=1",
	                                    ",,,,",
	                                    "1:2:3:6:61"};
	struct pg_activities *all = pg_activities_new();
	struct engine_activity seen;
	char *more = must_calloc(1, 100001);
	memset(more, ',', 100000);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		pg_activities_note(all, CLUSTER, "n0", T0, texts[i], texts[i]);
	pg_activities_note(all, CLUSTER, "n0", T0, more, more);
	pg_activities_past(all, CLUSTER, "n0", T0, a, &seen);
	CHECK(seen.wait_count == 0);
	for (size_t i = 0; i < seen.block_count; i++)
		CHECK(seen.blocks[i].pid == 1 && seen.blocks[i].by == 2);
	/* The hour is bounded: places, kinds, pairs. */
	for (int i = 0; i < 1000; i++) {
		char waits[64], blocks[64];
		snprintf(waits, sizeof waits, "IO:e%d=1", i);
		snprintf(blocks, sizeof blocks, "%d:1:5::", i + 10);
		pg_activities_note(all, CLUSTER, "n0", T0 + i, waits, blocks);
	}
	pg_activities_past(all, CLUSTER, "n0", T0 + 1000, a, &seen);
	CHECK(seen.samples == 360 && seen.wait_count == 64 && seen.block_count == 256);
	free(more);
	pg_activities_free(all);
}

int main(void)
{
	struct arena *a = arena_new();
	test_hour(a);
	test_nonsense(a);
	arena_free(a);
	return CHECK_DONE();
}

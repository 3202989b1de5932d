/* What query shapes took, by periods: what nodes count from some start on becomes what was when, and stays true when
 * they begin anew, while old periods are joined and go. */
#include "api/query_shapes/counted.h"
#include "api/query_shapes/history.h"

#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MINUTE 60000LL
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define START (20000 * DAY)

static char dir[64];
static struct store *store;
static struct arena *arena;

static struct engine_shape shape_make(unsigned number, uint64_t calls, int64_t first_ms, int64_t last_ms)
{
	struct engine_shape s = {.text = "select $1",
	                         .database = "shop",
	                         .table = "orders",
	                         .command = "find",
	                         .application = "till",
	                         .total_us = 100.0 * (double)calls,
	                         .calls = calls,
	                         .rows = 2 * calls,
	                         .bytes_read = 8192 * calls,
	                         .first_ms = first_ms,
	                         .last_ms = last_ms,
	                         .last_us = 100,
	                         .buckets = {[20] = calls}};
	snprintf(s.fingerprint, sizeof s.fingerprint, "%016x", number);
	return s;
}

/* --- one shape */

static void counted_forms(void)
{
	struct engine_shape s = shape_make(7, 12, START, START + 5);
	struct counted one = {.node = NULL};
	json_t *entry = json_keep(arena, counted_write("n0", &s));
	CHECK(counted_read(arena, entry, &one) && strcmp(one.node, "n0") == 0);
	CHECK(strcmp(one.of.fingerprint, s.fingerprint) == 0 && one.of.calls == 12 && one.of.rows == 24);
	CHECK(one.of.bytes_read == s.bytes_read && one.of.buckets[20] == 12 && one.of.buckets[21] == 0);
	CHECK(one.of.first_ms == START && one.of.last_ms == START + 5 && one.of.last_us == 100);
	json_array_remove(entry, 0);
	CHECK(!counted_read(arena, entry, &one) && !counted_read(arena, NULL, &one));
}

static void counted_growth(void)
{
	struct engine_shape was = shape_make(1, 10, START, START + MINUTE),
	                    now = shape_make(1, 15, START, START + HOUR);
	struct engine_shape more = counted_since(&now, &was, START + 2 * MINUTE);
	CHECK(more.calls == 5 && more.rows == 10 && more.buckets[20] == 5 && more.total_us > 499 &&
	      more.total_us < 501);
	/* It was there already, and nobody knows how often it had been called. */
	CHECK(counted_since(&now, NULL, START + 2 * MINUTE).calls == 0);
	/* New since; and begun anew, which more calls than before do not hide. */
	CHECK(counted_since(&now, NULL, START - 1).calls == 15);
	CHECK(counted_since(&now, &was, START - 1).calls == 15);
	CHECK(counted_since(&was, &now, START + 2 * MINUTE).calls == 10);
	struct counted_list list = {.list = NULL};
	for (unsigned i = 0; i < 50; i++) {
		struct engine_shape s = shape_make(i % 25, i + 1, START, START);
		counted_add(arena, &list, i % 2 ? "n1" : "n0", &s);
	}
	CHECK(list.count == 50);
	counted_cut(&list, 3);
	CHECK(list.count == 3 && list.list[0].of.calls == 50 && list.list[2].of.calls == 48);
	/* What was cut is found where it is now, and what is gone is new. */
	struct engine_shape first = list.list[0].of;
	counted_add(arena, &list, list.list[0].node, &first);
	CHECK(list.count == 3 && list.list[0].of.calls == 100);
	first = shape_make(0, 1, START, START);
	counted_add(arena, &list, "n0", &first);
	CHECK(list.count == 4);
}

/* As many as a week can have, which somebody reads: each was compared with all before it. */
static void counted_many(void)
{
	struct counted_list list = {.list = NULL};
	clock_t began = clock();
	for (unsigned i = 0; i < 60000; i++) {
		struct engine_shape s = shape_make(i % 30000, 1, START, START);
		counted_add(arena, &list, "n0", &s);
	}
	CHECK(list.count == 30000);
	for (size_t i = 0; i < list.count; i++)
		CHECK(list.list[i].of.calls == 2);
	CHECK((clock() - began) / CLOCKS_PER_SEC < 5);
}

/* --- the store */

struct asked {
	struct engine_shape *list;
	size_t count;
	const char *node;
	int64_t now_ms, from_ms, to_ms;
	struct shapes live, found;
	struct history_span span;
	int result;
};

static void live_make(struct asked *q)
{
	static const char *nodes[1];
	static struct shapes_told told[1];
	nodes[0] = q->node;
	told[0] = (struct shapes_told){q->node, q->list, q->count};
	q->live = (struct shapes){.nodes = nodes, .node_count = 1, .told = told, .told_count = q->list ? 1 : 0};
}

static int note_run(struct tx *tx, void *ctx)
{
	struct asked *q = ctx;
	live_make(q);
	return history_note(tx, arena, STR("65f0000000000000000000aa"), &q->live, q->now_ms);
}

static void note(int64_t now_ms, struct engine_shape *list, size_t count)
{
	struct asked q = {.list = list, .count = count, .node = "n0", .now_ms = now_ms};
	CHECK(store_write_wait(store, note_run, &q) == 0);
}

/* Calls of a shape within the span. */
static uint64_t calls_of(struct asked *q, unsigned number)
{
	char name[ENGINE_SHAPE_FINGERPRINT];
	struct tx *tx = store_reader(store);
	const struct history_span span = {q->from_ms, q->to_ms};
	uint64_t calls = 0;
	live_make(q);
	tx_begin_read(tx);
	q->result = history_read(tx, arena, STR("65f0000000000000000000aa"), &q->live, true, &span, q->now_ms,
	                         &q->found, &q->span);
	tx_end_read(tx);
	store_reader_free(tx);
	snprintf(name, sizeof name, "%016x", number);
	for (size_t i = 0; q->result == 0 && i < q->found.count; i++)
		if (strcmp(q->found.list[i].of.fingerprint, name) == 0) {
			calls = q->found.list[i].of.calls;
			CHECK(strcmp(q->found.list[i].of.table, "orders") == 0);
		}
	return calls;
}

static uint64_t within(int64_t now_ms, int64_t from_ms, int64_t to_ms, unsigned number)
{
	struct asked q = {.node = "n0", .now_ms = now_ms, .from_ms = from_ms, .to_ms = to_ms};
	return calls_of(&q, number);
}

static int64_t periods(void)
{
	struct tx *tx = store_reader(store);
	int64_t count = -1;
	tx_begin_read(tx);
	CHECK(tx_count(tx, "shape_period", STR("65f0000000000000000000aa"), &count) == 0);
	tx_end_read(tx);
	store_reader_free(tx);
	return count;
}

static void by_periods(void)
{
	struct asked q = {.node = "n0", .now_ms = START, .from_ms = 0, .to_ms = INT64_MAX};
	CHECK(calls_of(&q, 1) == 0 && q.result == -ENOENT);
	/* What was there before is of no period. */
	struct engine_shape s = shape_make(1, 1000, START - DAY, START - HOUR);
	note(START, &s, 1);
	CHECK(within(START, 0, INT64_MAX, 1) == 0);
	/* Six calls in each ten minutes of a day, told every five. */
	for (int64_t at = START + 5 * MINUTE; at <= START + DAY; at += 5 * MINUTE) {
		s = shape_make(1, 1000 + 3 * (uint64_t)((at - START) / (5 * MINUTE)), START - DAY, at - 1);
		note(at, &s, 1);
	}
	int64_t now = START + DAY;
	CHECK(within(now, 0, INT64_MAX, 1) == 6 * 144);
	CHECK(within(now, now - HOUR, now, 1) == 36);
	CHECK(within(now, now - 20 * MINUTE, now, 1) == 12);
	/* Of what is hours ago whole hours, and the answer tells which. */
	q = (struct asked){
	        .node = "n0", .now_ms = now, .from_ms = START + 2 * HOUR + MINUTE, .to_ms = START + 3 * HOUR - 1};
	CHECK(calls_of(&q, 1) == 36 && q.span.from_ms == START + 2 * HOUR && q.span.to_ms == START + 3 * HOUR);
	CHECK(periods() < 24 + 6 * 4 + 1);
	/* What it has counted since it was last asked. */
	s = shape_make(1, s.calls + 7, START - DAY, now + MINUTE);
	q = (struct asked){&s, 1, "n0", now + 2 * MINUTE, now, INT64_MAX, .result = 0};
	CHECK(calls_of(&q, 1) == 7);
	/* The server was started anew: what was stays, and what it tells is all new. */
	s = shape_make(1, 2000, now + 3 * MINUTE, now + 4 * MINUTE);
	note(now + 5 * MINUTE, &s, 1);
	CHECK(within(now + 5 * MINUTE, now, INT64_MAX, 1) == 2000);
	CHECK(within(now + 5 * MINUTE, 0, INT64_MAX, 1) == 2000 + 6 * 144);
}

/* However many shapes there are, and however long it goes on. */
static void within_bounds(void)
{
	static struct engine_shape many[1500];
	int64_t end = START + 30 * DAY;
	for (int64_t at = START + 10 * DAY; at <= end; at += 2 * HOUR) {
		for (unsigned i = 0; i < 1500; i++)
			many[i] = shape_make(100 + i, (2000 - i) * (uint64_t)((at - START) / HOUR), START, at - 1 - i);
		note(at, many, 1500);
	}
	CHECK(periods() <= 7 * 24 + 30);
	struct asked q = {.node = "n0", .now_ms = end, .from_ms = 0, .to_ms = INT64_MAX};
	CHECK(calls_of(&q, 100) >= 2000 * (7 * 24 - 2) && calls_of(&q, 199) > 0 && q.found.count == 100);
	CHECK(within(end, START, START + DAY, 1) == 0);
}

int main(void)
{
	struct store_options o = {.data_dir = dir};
	snprintf(dir, sizeof dir, "/tmp/test_shapes.XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	arena = arena_new();
	counted_forms();
	counted_growth();
	counted_many();
	CHECK(store_open(&o, &store) == 0);
	by_periods();
	within_bounds();
	store_close(store);
	arena_free(arena);
	const char *const names[] = {"steward.db", "steward.db-wal", "steward.db-shm"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[128];
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
	return CHECK_DONE();
}

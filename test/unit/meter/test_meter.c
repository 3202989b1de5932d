/* The meter against a model that counts seconds one by one: whatever is observed, restarted, moved and ended, no second
 * is lost, and none is counted twice. And the arithmetic of days and months. */
#include "meter/meter.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "check.h"
#include "meter/interval.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define T0 INT64_C(1761955200000) /* 2025-11-01 */
#define HOUR INT64_C(3600000)
#define DAY INT64_C(86400000)

static struct arena *a;
static struct store *store;
static struct tx *reader;

/* --- writes */

struct told {
	struct meter_subject subject;
	struct meter_observation seen;
	struct meter_thing *thing; /* NULL: an observation */
	struct str to_org;
	int64_t at_ms;
	int what;
};
enum { OBSERVE, BEGIN, END, ADD, MOVE, MARK, END_GROUP };

static int told_run(struct tx *tx, void *ctx)
{
	const struct told *t = ctx;
	switch (t->what) {
	case OBSERVE: return meter_observe(tx, a, &t->subject, &t->seen);
	case BEGIN: return meter_begin(tx, a, &t->subject, t->thing, t->at_ms);
	case END: return meter_end(tx, a, t->subject.id, t->thing->key, t->at_ms, 0);
	case ADD: return meter_add(tx, a, &t->subject, t->thing, t->at_ms);
	case MOVE: return meter_move(tx, a, t->subject.group_id, t->subject.org_id, t->to_org, t->at_ms);
	case END_GROUP: return meter_end_group(tx, a, t->subject.org_id, t->subject.group_id, t->at_ms);
	default: return meter_mark(tx, a, t->subject.host, t->at_ms);
	}
}

static void tell(struct told t)
{
	CHECK(store_write_wait(store, told_run, &t) == 0);
}

static struct meter_subject subject_of(const char *org, const char *id)
{
	return (struct meter_subject){.org_id = str_of(org),
	                              .group_id = STR("g"),
	                              .group_name = STR("project"),
	                              .id = str_of(id),
	                              .name = STR("cluster")};
}

static struct meter_thing thing_of(const char *key, const char *sku, int64_t amount)
{
	return (struct meter_thing){.key = str_of(key),
	                            .sku = str_of(sku),
	                            .provider = STR("AWS"),
	                            .region = STR("US_EAST_1"),
	                            .amount = amount};
}

static void observe(const char *org, const char *id, struct meter_thing *things, size_t count, int64_t at,
                    int64_t watched)
{
	tell((struct told){.what = OBSERVE,
	                   .subject = subject_of(org, id),
	                   .seen = {.prefixes = "node/,disk/",
	                            .things = things,
	                            .count = count,
	                            .at_ms = at,
	                            .watched_ms = watched}});
}

static void mark(int64_t at)
{
	tell((struct told){.what = MARK, .at_ms = at});
}

/* Of a SKU in a span. */
static int64_t used(const char *org, const char *sku, int64_t from, int64_t to)
{
	struct usage *list;
	size_t count;
	int64_t sum = 0;
	tx_begin_read(reader);
	CHECK(meter_usage(reader, a, str_of(org), from, to, &list, &count) == 0);
	tx_end_read(reader);
	for (size_t i = 0; i < count; i++)
		sum += str_is(list[i].sku, sku) ? list[i].quantity : 0;
	return sum;
}

/* --- tests */

static void test_calendar(void)
{
	char month[METER_MONTH];
	int64_t from, to;
	struct interval rest, piece;
	meter_month(T0, month, &from, &to);
	CHECK(strcmp(month, "2025-11") == 0 && from == T0 && to == T0 + 30 * DAY);
	meter_month(T0 + 61 * DAY - 1, month, &from, &to);
	CHECK(strcmp(month, "2025-12") == 0 && to == T0 + 61 * DAY);
	CHECK(meter_day(T0) == T0 && meter_day(T0 + DAY - 1) == T0 && meter_day(-1) == -DAY);
	int64_t seconds = 0, days = 0, span = 800 * 86400 + 12345;
	for (rest = (struct interval){T0 / 1000 + 777, T0 / 1000 + 777 + span}; interval_seconds(rest); days++) {
		piece = interval_day(rest, &rest);
		CHECK(interval_seconds(piece) > 0 && interval_seconds(piece) <= 86400);
		seconds += interval_seconds(piece);
	}
	CHECK(seconds == span && days == 801);
	int months = 0;
	for (rest = (struct interval){T0 / 1000, T0 / 1000 + 365 * 86400}; interval_seconds(rest); months++)
		piece = interval_month(rest, &rest);
	CHECK(months == 12 && interval_seconds(piece) == 31 * 86400); /* of October */
	piece = interval_common((struct interval){1, 5}, (struct interval){6, 9});
	CHECK(interval_seconds(piece) == 0);
}

static void test_life(void)
{
	struct meter_thing both[] = {thing_of("disk/a", "DISK", 10), thing_of("node/a", "M10", 1)};
	observe("life", "c1", both, 2, T0 + 999, 0);
	CHECK(used("life", "M10", T0, T0 + DAY) == 0); /* nobody has looked since */
	mark(T0 + HOUR);
	CHECK(used("life", "M10", T0, T0 + DAY) == 3600 && used("life", "DISK", T0, T0 + DAY) == 36000);
	mark(T0); /* never back */
	CHECK(used("life", "M10", T0, T0 + DAY) == 3600);
	observe("life", "c1", both, 1, T0 + 2 * HOUR, 0); /* paused */
	mark(T0 + 3 * HOUR);
	CHECK(used("life", "M10", T0, T0 + DAY) == 7200 && used("life", "DISK", T0, T0 + DAY) == 108000);
	both[1].sku = STR("M20");
	both[0].amount = 20;
	observe("life", "c1", both, 2, T0 + 3 * HOUR, 0);
	observe("life", "c1", both, 2, T0 + 3 * HOUR + 1000, 0);
	observe("life", "c1", NULL, 0, T0 + 40 * DAY, 0); /* over two months */
	CHECK(used("life", "M20", T0, T0 + 99 * DAY) == 40 * 86400 - 3 * 3600);
	CHECK(used("life", "M20", T0 + 30 * DAY, T0 + 99 * DAY) == 10 * 86400);
	CHECK(used("life", "M20", T0 + 30 * DAY - 1000, T0 + 30 * DAY + 1000) == 2);
	CHECK(used("life", "DISK", T0, T0 + 99 * DAY) == 3 * 36000 + 20 * (40 * 86400 - 3 * 3600));
	int64_t settled;
	tx_begin_read(reader);
	CHECK(meter_settled(reader, a, STR("life"), &settled) == 0 && settled >= clock_now_ms() - HOUR);
	tx_end_read(reader);
}

/* Real nodes tell when they were started. */
static void test_restarts(void)
{
	struct meter_thing n = thing_of("node/a", "N", 1);
	n.runs = true;
	n.since_ms = T0 + 100 * DAY;
	observe("runs", "c2", &n, 1, T0 + 100 * DAY + 1500, 0);
	mark(T0 + 100 * DAY + HOUR);
	int64_t seen = T0 + 100 * DAY + HOUR, from = T0 + 100 * DAY, to = from + DAY;
	n.since_ms += 900; /* as the file of the process has it */
	observe("runs", "c2", &n, 1, seen + 60000, seen + 60000);
	CHECK(used("runs", "N", from, to) == 3600);
	n.since_ms = seen + 30000; /* anew, while somebody watched */
	observe("runs", "c2", &n, 1, seen + 31000, T0);
	mark(seen + HOUR);
	CHECK(used("runs", "N", from, to) == 7200);
	n.since_ms = seen + HOUR + 600000; /* anew, while nobody did */
	observe("runs", "c2", &n, 1, seen + HOUR + 610000, seen + HOUR + 605000);
	mark(seen + 2 * HOUR);
	CHECK(used("runs", "N", from, to) == 3 * 3600 - 600);
	struct meter_thing young = thing_of("node/y", "YOUNG", 1); /* began and was restarted before the next mark */
	young.runs = true;
	young.since_ms = seen + 2 * HOUR + 1000;
	observe("young", "c9", &young, 1, young.since_ms, seen + 2 * HOUR + 500);
	young.since_ms += 20000;
	observe("young", "c9", &young, 1, young.since_ms + 100, seen + 2 * HOUR + 500);
	observe("young", "c9", NULL, 0, young.since_ms + 1000, seen + 2 * HOUR + 500);
	CHECK(used("young", "YOUNG", from, to) == 21);
	n.sku = STR("BIG"); /* by a restart */
	n.since_ms = seen + 2 * HOUR + 5000;
	observe("runs", "c2", &n, 1, seen + 2 * HOUR + 8000, T0);
	tell((struct told){.what = END, .subject = subject_of("runs", "c2"), .thing = &n, .at_ms = seen + 3 * HOUR});
	CHECK(used("runs", "N", from, to) == 3 * 3600 - 600 + 5 && used("runs", "BIG", from, to) == 3595);
	CHECK(tx_get(reader, a, METER_OPEN_KIND, STR("c2"), &(struct doc){0}) == -ENOENT);
	mark(from + 4 * HOUR + 999); /* a mark of the very second in which the watch began is not older */
	n = thing_of("node/s", "SAME", 1);
	n.runs = true;
	n.since_ms = from + 4 * HOUR - HOUR;
	observe("runs", "c7", &n, 1, n.since_ms, T0);
	n.since_ms = from + 4 * HOUR + 30000;
	observe("runs", "c7", &n, 1, n.since_ms + 1000, from + 4 * HOUR + 500);
	observe("runs", "c7", NULL, 0, n.since_ms + 1000, from + 4 * HOUR + 500);
	CHECK(used("runs", "SAME", from, to) == 3631);
	n = thing_of("node/z", "GONE", 1);
	n.runs = true;
	n.since_ms = from + 5 * HOUR;
	observe("runs", "c8", &n, 1, n.since_ms, T0);
	mark(from + 6 * HOUR);
	observe("runs", "c8", NULL, 0, from + 9 * HOUR, from + 8 * HOUR); /* it ended while nobody watched */
	CHECK(used("runs", "GONE", from, to) == 3600);
	struct meter_thing both[] = {thing_of("disk/b", "D", 1), thing_of("node/b", "L", 1)};
	both[1].runs = true;
	both[1].since_ms = from + 10 * HOUR;
	observe("runs", "c2", both, 2, from + 10 * HOUR, T0);
	observe("runs", "c2", both, 1, from + 11 * HOUR, T0); /* it was seen to be down, though it is not */
	observe("runs", "c2", both, 2, from + 12 * HOUR, T0);
	mark(from + 13 * HOUR);
	CHECK(used("runs", "L", from, to) == 3 * 3600);
	observe("runs", "c2", NULL, 0, from + 13 * HOUR, T0);
}

static void test_events_and_moves(void)
{
	struct meter_thing taken = thing_of("taken/1", "SNAPSHOT", 1), kept = thing_of("snapshot/1", "KEPT", 5);
	int64_t at = T0 + 200 * DAY + 86399000;
	tell((struct told){.what = ADD, .subject = subject_of("from", "c3"), .thing = &taken, .at_ms = at});
	tell((struct told){.what = BEGIN, .subject = subject_of("from", "c3"), .thing = &kept, .at_ms = at});
	tell((struct told){.what = BEGIN, .subject = subject_of("from", "c3"), .thing = &kept, .at_ms = at + 7000});
	CHECK(used("from", "SNAPSHOT", at, at + 1) == 1 && used("from", "SNAPSHOT", at + 1, at + DAY) == 0);
	tell((struct told){.what = MOVE, .subject = subject_of("from", "c3"), .to_org = STR("to"), .at_ms = at + HOUR});
	mark(at + 2 * HOUR);
	CHECK(used("from", "KEPT", T0, at + DAY) == 18000 && used("to", "KEPT", T0, at + DAY) == 18000);
	tell((struct told){.what = END_GROUP, .subject = subject_of("to", "c3"), .at_ms = at + 3 * HOUR});
	CHECK(used("from", "KEPT", T0, at + DAY) == 18000 && used("to", "KEPT", T0, at + DAY) == 36000);
	struct str *orgs;
	size_t count;
	CHECK(meter_orgs(reader, a, at, &orgs, &count) == 0 && count == 2);
	struct usage *list;
	CHECK(meter_usage(reader, a, STR("from"), at, at + DAY, &list, &count) == 0 && count == 3);
	CHECK(list[0].day_ms + DAY == list[1].day_ms + DAY && list[2].day_ms == meter_day(at) + DAY);
	CHECK(list[0].quantity + list[1].quantity == 6 && list[2].quantity == 3599 * 5);
}

/* --- counters */

struct counted {
	struct meter_subject subject;
	struct meter_counter counter;
	int64_t at_ms;
	bool dies;
};

static int counted_run(struct tx *tx, void *ctx)
{
	const struct counted *c = ctx;
	int r = meter_count(tx, a, &c->subject, &c->counter, 1, c->at_ms);
	return r == 0 && c->dies ? -ECANCELED : r;
}

static bool is_due(const struct counted *c)
{
	bool due;
	tx_begin_read(reader);
	CHECK(meter_count_is_due(reader, a, c->subject.id, &c->counter, 1, c->at_ms, &due) == 0);
	tx_end_read(reader);
	return due;
}

static void count(struct counted *c, int64_t bytes, int64_t at_ms)
{
	c->counter.bytes = bytes;
	c->at_ms = at_ms;
	CHECK(store_write_wait(store, counted_run, c) == (c->dies ? -ECANCELED : 0));
}

static int64_t rows(const char *org, int64_t at_ms)
{
	struct doc *docs;
	size_t n = 0;
	char month[METER_MONTH];
	meter_month(at_ms, month, NULL, NULL);
	CHECK(tx_list_all(reader, a, METER_KIND, arena_printf(a, "%s/%s", org, month), &docs, &n) == 0);
	return (int64_t)n;
}

/* A counter that is read now and then, by somebody who may die over it. */
static void test_counters(void)
{
	int64_t at = T0 + 500 * DAY, to = at + 9 * DAY;
	struct counted c = {.subject = subject_of("count", "c6"),
	                    .counter = {.thing = thing_of("sent/a", "OUT", 0), .counter = STR("one")},
	                    .at_ms = at};
	c.counter.bytes = 999;
	CHECK(!is_due(&c));
	c.counter.bytes = 1500;
	CHECK(is_due(&c));
	count(&c, 1500, at);
	CHECK(used("count", "OUT", at, to) == 1);
	c.counter.bytes = 900000;
	CHECK(!is_due(&c)); /* not yet */
	c.at_ms += HOUR;
	CHECK(is_due(&c));
	c.counter.bytes = 2000;
	c.at_ms = at;
	c.dies = true; /* nothing of it stays */
	count(&c, 5000000, at + 1000);
	CHECK(used("count", "OUT", at, to) == 1);
	c.dies = false;
	CHECK(is_due(&c));
	count(&c, 5000999, at + 1000);
	count(&c, 5000999, at + 2000);
	count(&c, 4000000, at + 3000); /* what was read late */
	CHECK(!is_due(&c));
	count(&c, 5001000, at + 3000);
	CHECK(used("count", "OUT", at, to) == 5001 && rows("count", at) == 1);
	count(&c, 5003000, at + DAY);
	CHECK(used("count", "OUT", at + DAY, to) == 2 && rows("count", at) == 2);
	c.counter.counter = STR("two"); /* another one begins at nothing */
	count(&c, 7000, at + DAY);
	CHECK(used("count", "OUT", at, to) == 5010 && rows("count", at) == 2);
	c.subject = subject_of("count2", "c6"); /* the project has moved */
	count(&c, 8000, at + DAY);
	CHECK(used("count", "OUT", at, to) == 5010 && used("count2", "OUT", at, to) == 1);
	c.counter.thing.sku = STR_NONE; /* it is not metered for a while */
	count(&c, 90000, at + DAY);
	c.counter.thing.sku = STR("OUT");
	count(&c, 91000, at + DAY);
	CHECK(used("count2", "OUT", at, to) == 2 && rows("count2", at) == 1);
	c.counter.thing.region = STR("EU_WEST_1");
	count(&c, 92000, at + DAY);
	CHECK(used("count2", "OUT", at, to) == 3 && rows("count2", at) == 2);
}

/* --- against seconds that are counted one by one */

#define NODES 5
#define SKUS 3
#define STEPS 400

static void test_model(void)
{
	static const char *const keys[NODES] = {"node/0", "node/1", "node/2", "disk/3", "disk/4"};
	static const char *const skus[SKUS] = {"S0", "S1", "S2"};
	struct meter_thing things[NODES];
	int state[NODES] = {0}; /* 0: not there; else a SKU, plus 1 */
	int64_t counted[SKUS] = {0}, at = T0 + 300 * DAY, begun = at;
	srand(3);
	for (int step = 0; step < STEPS; step++) {
		int64_t passed = rand() % 200000;
		for (int i = 0; i < NODES; i++)
			if (state[i])
				counted[state[i] - 1] += passed * (i + 1);
		at += passed * 1000;
		size_t count = 0;
		for (int i = 0; i < NODES; i++) {
			state[i] = rand() % 2 ? state[i] : rand() % (SKUS + 1);
			if (state[i])
				things[count++] = thing_of(keys[i], skus[state[i] - 1], i + 1);
		}
		observe("model", "c4", things, count, at + rand() % 1000, 0);
		if (rand() % 3 == 0)
			mark(at);
	}
	mark(at);
	for (int i = 0; i < SKUS; i++) {
		int64_t whole = used("model", skus[i], begun, at), cut = 0;
		for (int64_t from = begun; from < at; from += 17 * DAY + 3333000)
			cut += used("model", skus[i], from,
			            from + 17 * DAY + 3333000 < at ? from + 17 * DAY + 3333000 : at);
		CHECK(whole == counted[i] && cut == whole);
	}
}

int main(void)
{
	char dir[] = "/tmp/meter-XXXXXX", path[64];
	json_setup();
	a = arena_new();
	if (!mkdtemp(dir) || store_open(&(struct store_options){.data_dir = dir}, &store) < 0)
		return 1;
	reader = store_reader(store);
	test_calendar();
	test_life();
	test_restarts();
	test_events_and_moves();
	test_counters();
	test_model();
	store_reader_free(reader);
	CHECK(store_check(dir, stderr) == 0);
	store_close(store);
	const char *const files[] = {"steward.db", "steward.db-wal", "steward.db-shm"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, files[i]);
		unlink(path);
	}
	CHECK(rmdir(dir) == 0);
	arena_free(a);
	return CHECK_DONE();
}

/* Events in the store: lists by position against a model, filters, pages at any depth, deleting old ones, and documents
 * that move between lists. With EVENTS=NUMBER in the environment, measures pages of a log of so many events instead. */
#include "check.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "store/store.h"
#include "trail/events.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define EVENTS 3000
#define ORG "5f0000000000000000000001"
#define GROUP "5f0000000000000000000002"

static char dir[64];

/* Checks the whole store, in either back end. */
static int check_all(void)
{
	const char *remote = getenv("TEST_STORE_URL");
	return store_check(remote ? remote : dir, stderr);
}
static struct arena *a;
static struct store *store;
static struct tx *reader;

static const char *const type_names[] = {"CLUSTER_CREATED", "CLUSTER_DELETED", "PROJECT_LIMIT_UPDATED",
                                         "GROUP_CREATED"};

/* Event i of the model: time i / 3, one of four types, one of three clusters, and every fifth in the other project. */
struct model {
	int64_t at;
	const char *type;
	char cluster[8];
	bool other;
};

static struct model model_of(int64_t i)
{
	struct model m = {.at = i / 3 * 1000, .type = type_names[i % 4], .other = i % 5 == 0};
	snprintf(m.cluster, sizeof m.cluster, "c%d", (int)(i % 3));
	return m;
}

struct batch {
	int64_t from, to;
};

static int add(struct tx *tx, void *ctx)
{
	const struct batch *b = ctx;
	int r = 0;
	for (int64_t i = b->from; r == 0 && i < b->to; i++) {
		struct model m = model_of(i);
		struct id id = id_new();
		char body[32];
		snprintf(body, sizeof body, "{\"n\":%lld}", (long long)i);
		struct event e = {.id = id_str(&id),
		                  .org_id = STR(ORG),
		                  .group_id = m.other ? STR("other") : STR(GROUP),
		                  .type = str_of(m.type),
		                  .body = str_of(body),
		                  .created_ms = m.at,
		                  .cluster = str_of(m.cluster),
		                  .raw = STR("{}"),
		                  .for_group = true,
		                  .for_org = i % 4 == 3};
		r = tx_event_add(tx, &e);
	}
	return r;
}

static void fill(int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i += 500) {
		struct batch b = {i, i + 500 < to ? i + 500 : to};
		CHECK(store_write_wait(store, add, &b) == 0);
	}
}

static bool listed(const struct event_filter *f, int64_t i)
{
	struct model m = model_of(i);
	char type[64], cluster[16];
	snprintf(type, sizeof type, "\"%s\"", m.type);
	snprintf(cluster, sizeof cluster, "\"%s\"", m.cluster);
	if (f->in_org ? i % 4 != 3 : m.other)
		return false;
	if ((f->types.n && !strstr(f->types.p, type)) || (f->excluded.n && strstr(f->excluded.p, type)))
		return false;
	if (f->clusters.n && !strstr(f->clusters.p, cluster))
		return false;
	return (!f->has_min || m.at >= f->min_ms) && (!f->has_max || m.at <= f->max_ms);
}

static int64_t number_of(const struct event *e)
{
	return strtoll(e->body.p + 5, NULL, 10);
}

/* Reads all pages and compares them with the model's events from `first` on. */
static void compare(const struct event_filter *f, int64_t first, int64_t page)
{
	int64_t total = 0, counted, at = EVENTS - 1, offset = 0;
	for (int64_t i = first; i < EVENTS; i++)
		total += listed(f, i);
	CHECK(tx_event_count(reader, f, &counted) == 0 && counted == total);
	for (;;) {
		struct event *events;
		size_t count;
		CHECK(tx_event_list(reader, a, f, offset, page, &events, &count) == 0);
		bool same = true;
		for (size_t i = 0; i < count; i++, at--) {
			while (at >= first && !listed(f, at))
				at--;
			same = same && at >= first && number_of(&events[i]) == at;
		}
		CHECK(same);
		offset += (int64_t)count;
		if ((int64_t)count < page)
			break;
	}
	CHECK(offset == total);
	arena_reset(a);
}

static void compare_all(int64_t first)
{
	struct event_filter group = {.scope = STR(GROUP)}, org = {.scope = STR(ORG), .in_org = true}, f;
	compare(&group, first, 100);
	compare(&group, first, 7);
	compare(&org, first, 500);
	f = group;
	f.types = STR("[\"CLUSTER_CREATED\",\"GROUP_CREATED\"]");
	compare(&f, first, 100);
	f.clusters = STR("[\"c1\",\"none\"]");
	compare(&f, first, 13);
	f.excluded = STR("[\"GROUP_CREATED\"]");
	compare(&f, first, 100);
	f = group;
	f.has_min = f.has_max = true;
	f.min_ms = 100000;
	f.max_ms = 700000;
	compare(&f, first, 100);
	f = org;
	f.has_min = true;
	f.min_ms = 900000;
	compare(&f, first, 100);
	f.scope = STR("nobody");
	compare(&(struct event_filter){.scope = STR("nobody"), .types = STR("[\"X\"]")}, EVENTS, 10);
}

struct pruning {
	int64_t before, limit, count;
};

static int prune(struct tx *tx, void *ctx)
{
	struct pruning *p = ctx;
	return tx_events_prune(tx, p->before, p->limit, &p->count);
}

static _Atomic unsigned woken;

static void wake(void *ctx)
{
	woken++;
}

/* All events in the order of their commits, from any place on. */
static void test_since(void)
{
	struct event *events, e;
	size_t count;
	int64_t newest, before = 0;
	CHECK(tx_event_newest(reader, &newest) == 0 && newest == EVENTS);
	CHECK(tx_event_since(reader, a, newest - 10, 100, &events, &count) == 0 && count == 10);
	for (size_t i = 0; i < count; i++)
		CHECK(events[i].seq == newest - 9 + (int64_t)i);
	CHECK(tx_event_get(reader, a, events[3].id, &e) == 0 && e.seq == events[3].seq);
	CHECK(tx_event_since(reader, a, newest, 100, &events, &count) == 0 && count == 0);
	while (before < newest) {
		CHECK(tx_event_since(reader, a, before, 700, &events, &count) == 0 && count > 0);
		CHECK(events[0].seq == before + 1 && events[count - 1].seq == before + (int64_t)count);
		before += (int64_t)count;
	}
	store_on_events(store, wake, NULL);
	CHECK(store_write_wait(store, prune, &(struct pruning){.limit = 1}) == 0 && woken == 0);
	store_on_events(store, NULL, NULL);
}

static void test_lists(void)
{
	struct event e, *events;
	size_t count;
	fill(0, EVENTS);
	compare_all(0);
	struct event_filter group = {.scope = STR(GROUP)};
	CHECK(tx_event_list(reader, a, &group, 5, 1, &events, &count) == 0 && count == 1);
	CHECK(tx_event_get(reader, a, events[0].id, &e) == 0 && str_eq(e.body, events[0].body) && e.for_group &&
	      !e.for_org);
	CHECK(tx_event_get(reader, a, STR("none"), &e) == -ENOENT);
	CHECK(check_all() == 0);
	test_since();
}

static void test_prune(void)
{
	struct pruning p = {.before = 0, .limit = 100};
	CHECK(store_write_wait(store, prune, &p) == 0 && p.count == 0);
	p = (struct pruning){.before = 200000, .limit = 100};
	int64_t total = 0;
	do {
		CHECK(store_write_wait(store, prune, &p) == 0);
		total += p.count;
	} while (p.count == p.limit);
	CHECK(total == 600);
	CHECK(check_all() == 0);
	compare_all(600);
	p = (struct pruning){.before = INT64_MAX, .limit = EVENTS};
	CHECK(store_write_wait(store, prune, &p) == 0 && p.count == EVENTS - 600);
	CHECK(check_all() == 0);
	compare_all(EVENTS);
	int64_t newest = -1;
	CHECK(tx_event_newest(reader, &newest) == 0 && newest == 0);
	store_on_events(store, wake, NULL);
	fill(0, 10);
	CHECK(woken == 1);
	store_on_events(store, NULL, NULL);
	CHECK(tx_event_newest(reader, &newest) == 0 && newest == EVENTS + 10); /* numbers are not given twice */
	CHECK(check_all() == 0);
}

static int move_setup(struct tx *tx, void *ctx)
{
	int r = 0;
	for (int i = 0; r == 0 && i < 1200; i++) {
		char id[16], name[16];
		snprintf(id, sizeof id, "d%d", i);
		snprintf(name, sizeof name, "n%d", i);
		struct doc d = {.kind = STR("k"),
		                .id = str_of(id),
		                .parent = STR("a"),
		                .name = str_of(name),
		                .body = STR("{}")};
		r = tx_insert(tx, &d);
	}
	struct doc taken = {.kind = STR("k"), .id = STR("x"), .parent = STR("b"), .name = STR("n7"), .body = STR("{}")};
	return r < 0 ? r : tx_insert(tx, &taken);
}

static int move_some(struct tx *tx, void *ctx)
{
	const char *const ids[] = {"d0", "d511", "d512", "d800", "d1199"}, *const names[] = {"n0", "n511", "n512",
	                                                                                     "n800", "n1199"};
	int r = 0;
	for (int i = 0; r == 0 && i < 5; i++) {
		struct doc d = {.kind = STR("k"),
		                .id = str_of(ids[i]),
		                .parent = STR("b"),
		                .name = str_of(names[i]),
		                .body = STR("{\"moved\":true}")};
		r = tx_move(tx, &d);
	}
	struct doc d = {.kind = STR("k"), .id = STR("d7"), .parent = STR("b"), .name = STR("n7"), .body = STR("{}")};
	CHECK(tx_move(tx, &d) == -EEXIST);
	d.id = STR("none");
	CHECK(tx_move(tx, &d) == -ENOENT);
	d.id = STR("d8");
	d.rev = 5;
	CHECK(tx_move(tx, &d) == -ESTALE);
	return r;
}

static void test_moves(void)
{
	struct doc *docs;
	size_t count;
	int64_t total;
	CHECK(store_write_wait(store, move_setup, NULL) == 0);
	CHECK(store_write_wait(store, move_some, NULL) == 0);
	CHECK(tx_count(reader, "k", STR("a"), &total) == 0 && total == 1195);
	CHECK(tx_list(reader, a, "k", STR("b"), 0, 10, &docs, &count) == 0 && count == 6);
	CHECK(str_is(docs[0].id, "x") && str_is(docs[1].id, "d0") && str_is(docs[5].id, "d1199"));
	CHECK(docs[5].rev == 2 && str_is(docs[5].body, "{\"moved\":true}") && str_is(docs[5].parent, "b"));
	CHECK(tx_list(reader, a, "k", STR("a"), 509, 2, &docs, &count) == 0 && count == 2 &&
	      str_is(docs[1].id, "d513"));
	CHECK(check_all() == 0);
}

static int service_events(struct tx *tx, void *ctx)
{
	int r = event_service(tx, a, "ORG_CREATED", STR(ORG), STR_NONE, STR_NONE);
	if (r == 0)
		r = event_service(tx, a, "CLUSTER_READY", STR(ORG), STR("p"), STR("c9"));
	if (r == 0)
		r = event_service(tx, a, "GROUP_CREATED", STR(ORG), STR("p"), STR_NONE);
	/* A form without a field for who acted. */
	return r < 0 ? r : event_service(tx, a, "CLUSTER_ROUTER_IS_MISSING", STR(ORG), STR("p"), STR_NONE);
}

static void test_service_events(void)
{
	struct event *events;
	size_t count;
	struct event_filter f = {.scope = STR("p"), .clusters = STR("[\"c9\"]")}, all = {.scope = STR("p")};
	CHECK(store_write_wait(store, service_events, NULL) == 0);
	CHECK(tx_event_list(reader, a, &f, 0, 10, &events, &count) == 0 && count == 1);
	CHECK(str_is(events[0].type, "CLUSTER_READY") && !events[0].for_org &&
	      strstr(events[0].raw.p, "Cluster ready"));
	CHECK(tx_event_list(reader, a, &all, 0, 10, &events, &count) == 0 && count == 3);
	CHECK(!strstr(events[0].body.p, "isGlobalAdmin") && strstr(events[1].body.p, "isGlobalAdmin") &&
	      events[1].for_org);
	CHECK(check_all() == 0);
}

static void measure_page(const char *what, const struct event_filter *f, int64_t offset, bool counts)
{
	struct event *events;
	size_t count;
	int64_t total, best = INT64_MAX;
	for (int i = 0; i < 5; i++) {
		int64_t start = clock_mono_us();
		CHECK(tx_event_list(reader, a, f, offset, 100, &events, &count) == 0);
		if (counts)
			CHECK(tx_event_count(reader, f, &total) == 0);
		int64_t took = clock_mono_us() - start;
		best = took < best ? took : best;
		arena_reset(a);
	}
	printf("%-40s %8lld us\n", what, (long long)best);
}

static void measure(int64_t events)
{
	int64_t start = clock_mono_us();
	fill(0, events);
	printf("%lld events written at %lld a second\n", (long long)events,
	       (long long)(events * 1000000 / (clock_mono_us() - start)));
	struct event_filter f = {.scope = STR(GROUP)};
	measure_page("first page, counted", &f, 0, true);
	measure_page("page at 90%, counted", &f, events * 4 / 5 * 9 / 10, true);
	f.types = STR("[\"CLUSTER_CREATED\"]");
	measure_page("one type, first page", &f, 0, false);
	measure_page("one type, first page, counted", &f, 0, true);
	measure_page("one type, page at 90%", &f, events / 5 * 9 / 10, false);
	f.types = STR("[\"CLUSTER_CREATED\",\"CLUSTER_DELETED\",\"GROUP_CREATED\"]");
	measure_page("three types, first page, counted", &f, 0, true);
	f.types = STR("[\"NONE\"]");
	measure_page("a type that never happened, counted", &f, 0, true);
	f = (struct event_filter){.scope = STR(GROUP), .has_min = true, .min_ms = -1};
	measure_page("since ever, counted", &f, 0, true);
	f.min_ms = events / 3 * 990;
	measure_page("the last hundredth of the time, counted", &f, 0, true);
	f.min_ms = events / 3 * 500;
	measure_page("the last half of the time, counted", &f, 0, true);
	f = (struct event_filter){.scope = STR(GROUP), .clusters = STR("[\"c1\"]")};
	measure_page("one cluster, counted", &f, 0, true);
}

int main(void)
{
	const char *events = getenv("EVENTS");
	snprintf(dir, sizeof dir, "/tmp/steward-events-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	log_setup(LOG_WARN, false);
	a = arena_new();
	struct store_options o = {.url = getenv("TEST_STORE_URL"), .data_dir = dir};
	if (store_open(&o, &store) < 0 || !(reader = store_reader(store)))
		return 1;
	if (events) {
		measure(strtoll(events, NULL, 10));
	} else {
		test_lists();
		test_prune();
		test_moves();
		test_service_events();
	}
	store_reader_free(reader);
	store_close(store);
	arena_free(a);
	const char *const names[] = {"steward.db", "steward.db-wal", "steward.db-shm"};
	char path[128];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
	return CHECK_DONE();
}

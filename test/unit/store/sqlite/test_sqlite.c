/* What only the embedded store has: counts written once per batch, batches that run again because a write must be
 * undone, remembered documents, collecting and moving the log, and stores of older versions. */
#include "check.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/log.h"
#include "store/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORG "5f0000000000000000000001"
#define GROUP "5f0000000000000000000002"

static char dir[64];
static struct arena *a;

static void path_of(const char *name, char ret_path[128])
{
	snprintf(ret_path, 128, "%s/%s", dir, name);
}

static struct store *open_store(unsigned batch_max)
{
	struct store *s = NULL;
	struct store_options o = {.data_dir = dir, .batch_max = batch_max};
	if (store_open(&o, &s) < 0)
		exit(1);
	return s;
}

static int raw_sql(const char *sql)
{
	char path[128];
	sqlite3 *db;
	path_of("steward.db", path);
	int r = sqlite3_open(path, &db) == SQLITE_OK ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_ERROR;
	sqlite3_close(db);
	return r;
}

/* Counts: a parent of any length, more lists than are remembered, and blocks that begin within the batch. */

#define LISTS 40
#define EACH 1300

static struct str list_parent(int list)
{
	char text[400];
	int n = snprintf(text, sizeof text, "list-%d-%0*d", list, list % 4 == 3 ? 300 : 3, list);
	return arena_dup(a, (struct str){text, (size_t)n});
}

static int lists_add(struct tx *tx, void *ctx)
{
	const int *round = ctx;
	int r = 0;
	for (int i = 0; r == 0 && i < EACH; i++)
		for (int list = 0; r == 0 && list < LISTS; list += i < 20 ? 1 : 39) {
			struct id id = id_new();
			int64_t count = -1;
			struct doc d = {
			        .kind = STR("n"), .id = id_str(&id), .parent = list_parent(list), .body = STR("{}")};
			r = tx_insert(tx, &d);
			if (r == 0 && i % 700 == 7 &&
			    (tx_count(tx, "n", d.parent, &count) < 0 || count != *round * 20 + i + 1) && list &&
			    list != 39)
				r = -EINVAL;
		}
	return r;
}

static void test_counts(void)
{
	struct store *s = open_store(0);
	struct tx *reader = store_reader(s);
	struct doc *docs;
	size_t n = 0;
	for (int round = 0; round < 2; round++)
		CHECK(store_write_wait(s, lists_add, &round) == 0);
	for (int list = 0; list < LISTS; list++) {
		int64_t count = -1, wanted = list % 39 == 0 ? 2 * EACH : 40;
		CHECK(tx_count(reader, "n", list_parent(list), &count) == 0 && count == wanted);
	}
	CHECK(tx_list(reader, a, "n", list_parent(0), 2 * EACH - 3, 10, &docs, &n) == 0 && n == 3 &&
	      docs[2].seq == 2 * EACH - 1);
	CHECK(tx_list(reader, a, "n", list_parent(39), 2100, 1, &docs, &n) == 0 && n == 1 && docs[0].seq == 2100);
	store_reader_free(reader);
	store_close(s);
	CHECK(store_check(dir, stderr) == 0);
}

/* Undoing. */

struct entry {
	struct write write;
	const char *id;
	atomic_int runs;
	int result;
	enum { KEPT, REFUSED_AT_ONCE, UNDONE, GATE } what;
	atomic_int *left, *gate;
};

static int entry_run(struct tx *tx, void *ctx)
{
	struct entry *e = ctx;
	struct doc got, d = {.kind = STR("e"),
	                     .id = str_of(e->id),
	                     .parent = STR("p"),
	                     .name = str_of(e->id),
	                     .body = STR("{}")};
	struct event v = {.id = d.id,
	                  .org_id = STR(ORG),
	                  .group_id = STR(GROUP),
	                  .type = STR("T"),
	                  .body = STR("{}"),
	                  .created_ms = 1,
	                  .for_org = true,
	                  .for_group = true};
	e->runs++;
	while (e->what == GATE && !atomic_load(e->gate)) /* until the others are queued as the next batch */
		usleep(100);
	if (e->what == GATE)
		return 0;
	if (e->what == REFUSED_AT_ONCE)
		return tx_get(tx, a, "e", STR("nobody"), &got) == -ENOENT ? -EPERM : -EINVAL;
	int r = tx_insert(tx, &d);
	if (r == 0)
		r = tx_event_add(tx, &v);
	return r < 0 ? r : e->what == UNDONE ? -ECANCELED : 0;
}

static void entry_done(void *ctx, int result)
{
	struct entry *e = ctx;
	e->result = result;
	atomic_fetch_sub(e->left, 1);
}

/* Runs a batch of exactly these writes. */
static void batch_run(struct store *s, struct entry *list, int count)
{
	atomic_int left = count + 1, gate = 0;
	struct entry first = {.what = GATE, .left = &left, .gate = &gate};
	first.write = (struct write){.run = entry_run, .done = entry_done, .ctx = &first};
	CHECK(store_write(s, &first.write));
	while (!atomic_load(&first.runs))
		usleep(100);
	for (int i = 0; i < count; i++) {
		list[i].left = &left;
		list[i].write = (struct write){.run = entry_run, .done = entry_done, .ctx = &list[i]};
		CHECK(store_write(s, &list[i].write));
	}
	atomic_store(&gate, 1);
	while (atomic_load(&left))
		usleep(100);
}

static void test_undo(void)
{
	struct store *s = open_store(0);
	struct tx *reader = store_reader(s);
	struct doc got;
	int64_t events = -1, count = -1;
	const struct event_filter all = {.scope = STR(ORG), .in_org = true};
	struct entry calm[] = {{.id = "a1"}, {.id = "x", .what = REFUSED_AT_ONCE}, {.id = "a1"}, {.id = "a2"}};
	batch_run(s, calm, 4);
	CHECK(calm[0].result == 0 && calm[1].result == -EPERM && calm[2].result == -EEXIST && calm[3].result == 0);
	CHECK(calm[0].runs == 1 && calm[3].runs == 1);
	struct entry undone[] = {{.id = "b1"}, {.id = "b2", .what = UNDONE}, {.id = "b2"}, {.id = "b1"}};
	batch_run(s, undone, 4);
	CHECK(undone[0].result == 0 && undone[1].result == -ECANCELED && undone[2].result == 0 &&
	      undone[3].result == -EEXIST);
	CHECK(undone[0].runs == 2 && undone[1].runs == 2 && undone[2].runs == 1);
	/* From now on the batches use savepoints. */
	struct entry again[] = {{.id = "c1"}, {.id = "c2", .what = UNDONE}, {.id = "c3"}};
	batch_run(s, again, 3);
	CHECK(again[0].result == 0 && again[1].result == -ECANCELED && again[2].result == 0);
	CHECK(again[0].runs == 1 && again[1].runs == 1 && again[2].runs == 1);
	CHECK(tx_get(reader, a, "e", STR("b2"), &got) == 0 && tx_get(reader, a, "e", STR("c2"), &got) == -ENOENT);
	CHECK(tx_count(reader, "e", STR("p"), &count) == 0 && count == 6);
	CHECK(tx_event_count(reader, &all, &events) == 0 && events == 6);
	store_reader_free(reader);
	store_close(s);
	CHECK(store_check(dir, stderr) == 0);
}

/* What a reader remembers belongs to the snapshot that it sees. */

static int rename_run(struct tx *tx, void *ctx)
{
	return tx_update(tx, ctx);
}

static void test_memo(void)
{
	struct store *s = open_store(0);
	struct tx *reader = store_reader(s);
	struct doc got, d = {.kind = STR("e"), .id = STR("a1"), .name = STR("renamed"), .body = STR("{\"v\":2}")};
	tx_begin_read(reader);
	CHECK(tx_get(reader, a, "e", STR("a1"), &got) == 0 && str_is(got.body, "{}"));
	CHECK(store_write_wait(s, rename_run, &d) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(tx_get(reader, a, "e", STR("a1"), &got) == 0 && str_is(got.body, "{}") && got.rev == 1 &&
		      str_is(got.parent, "p"));
	tx_end_read(reader);
	for (int i = 0; i < 40; i++) { /* more than are remembered */
		tx_begin_read(reader);
		CHECK(tx_get(reader, a, "e", STR("a1"), &got) == 0 && str_is(got.name, "renamed") && got.rev == 2);
		CHECK(tx_get(reader, a, "e", i % 2 ? STR("b1") : STR("c1"), &got) == 0 && got.rev == 1);
		CHECK(tx_get(reader, a, "e", STR("none"), &got) == -ENOENT);
		tx_end_read(reader);
	}
	store_reader_free(reader);
	store_close(s);
}

/* A page that is shown again is kept, but never longer than what it shows is true: not over a write of this process,
 * nor over one of another. */

static int body_add(void *ctx, const struct doc *d)
{
	struct buf *b = ctx;
	buf_str(b, d->id);
	buf_c(b, '=');
	buf_str(b, d->body);
	buf_c(b, str_is(d->parent, "pages") && str_is(d->kind, "page") ? ' ' : '?');
	return b->n > 1000000 ? -ECANCELED : 0;
}

static bool shows(struct tx *reader, int64_t offset, int64_t limit, const char *wanted)
{
	struct buf b = {0};
	int64_t count;
	/* A count opens the snapshot, as in a call. */
	int r = tx_count(reader, "page", STR("pages"), &count);
	if (r == 0)
		r = tx_list_each(reader, a, "page", STR("pages"), offset, limit, body_add, &b);
	bool right = r == 0 && str_is(buf_view(&b), wanted);
	buf_free(&b);
	return right;
}

/* A call after the other: each has a snapshot of its own. */
static void check_shows(struct tx *reader, int64_t offset, int64_t limit, const char *wanted)
{
	for (int i = 0; i < 8; i++) {
		tx_begin_read(reader);
		CHECK(shows(reader, offset, limit, wanted));
		if (i % 2)
			CHECK(shows(reader, offset, limit, wanted));
		tx_end_read(reader);
		if (i % 3)
			tx_rest(reader);
	}
}

static int page_insert(struct tx *tx, void *ctx)
{
	struct doc d = {.kind = STR("page"), .id = str_of(ctx), .parent = STR("pages"), .body = STR("{}")};
	return tx_insert(tx, &d);
}

static int page_update(struct tx *tx, void *ctx)
{
	struct doc d = {.kind = STR("page"), .id = str_of(ctx), .body = STR("{\"v\":2}")};
	return tx_update(tx, &d);
}

static int page_delete(struct tx *tx, void *ctx)
{
	return tx_delete(tx, "page", str_of(ctx));
}

static int show_stop(void *ctx, const struct doc *d)
{
	return ++*(int *)ctx == 2 ? -ECANCELED : 0;
}

static void test_page(void)
{
	char one[] = "1", two[] = "2", three[] = "3";
	int shown = 0;
	struct store *s = open_store(0);
	struct tx *reader = store_reader(s);
	check_shows(reader, 0, 10, "");
	CHECK(store_write_wait(s, page_insert, one) == 0 && store_write_wait(s, page_insert, two) == 0);
	check_shows(reader, 0, 10, "1={} 2={} ");
	check_shows(reader, 1, 10, "2={} ");
	check_shows(reader, 0, 1, "1={} ");
	check_shows(reader, 0, 10, "1={} 2={} ");
	CHECK(store_write_wait(s, page_update, two) == 0);
	check_shows(reader, 0, 10, "1={} 2={\"v\":2} ");
	/* A snapshot stays as it is; the next has what was written. */
	tx_begin_read(reader);
	for (int i = 0; i < 4; i++)
		CHECK(shows(reader, 0, 10, "1={} 2={\"v\":2} "));
	CHECK(store_write_wait(s, page_insert, three) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(shows(reader, 0, 10, "1={} 2={\"v\":2} "));
	tx_end_read(reader);
	check_shows(reader, 0, 10, "1={} 2={\"v\":2} 3={} ");
	CHECK(store_write_wait(s, page_delete, one) == 0);
	check_shows(reader, 0, 10, "2={\"v\":2} 3={} ");
	tx_rest(reader);
	CHECK(raw_sql("UPDATE doc SET body = '{\"v\":3}', sum = NULL WHERE kind = 'page' AND id = '2'") == SQLITE_OK);
	check_shows(reader, 0, 10, "2={\"v\":3} 3={} ");
	/* Outside of a snapshot, nothing is old. */
	CHECK(shows(reader, 0, 10, "2={\"v\":3} 3={} ") && store_write_wait(s, page_delete, two) == 0);
	CHECK(shows(reader, 0, 10, "3={} "));
	/* Who stops is not asked again, though the page is kept. */
	CHECK(store_write_wait(s, page_insert, one) == 0 && store_write_wait(s, page_insert, two) == 0);
	check_shows(reader, 0, 10, "3={} 1={} 2={} ");
	tx_begin_read(reader);
	CHECK(shows(reader, 0, 10, "3={} 1={} 2={} "));
	CHECK(tx_list_each(reader, a, "page", STR("pages"), 0, 10, show_stop, &shown) == -ECANCELED && shown == 2);
	tx_end_read(reader);
	/* Nor is a snapshot used that was only kept for the next read. */
	CHECK(store_write_wait(s, page_delete, one) == 0 && store_write_wait(s, page_delete, two) == 0);
	shown = 0;
	CHECK(tx_list_each(reader, a, "page", STR("pages"), 0, 10, show_stop, &shown) == 0 && shown == 1);
	store_reader_free(reader);
	store_close(s);
}

/* More than is kept of a page. */

static int long_run(struct tx *tx, void *ctx)
{
	static char body[9000];
	int r = 0;
	for (int i = 0; r == 0 && i < 10; i++) {
		struct id id = id_new();
		memset(body, ' ', sizeof body);
		body[0] = '{';
		body[sizeof body - 1] = '}';
		struct doc d = {
		        .kind = STR("long"), .id = id_str(&id), .parent = STR("p"), .body = {body, sizeof body}};
		r = tx_insert(tx, &d);
	}
	return r;
}

static int length_add(void *ctx, const struct doc *d)
{
	*(size_t *)ctx += d->body.n + d->id.n;
	return 0;
}

static void test_page_long(void)
{
	struct store *s = open_store(0);
	struct tx *reader = store_reader(s);
	int64_t count;
	CHECK(store_write_wait(s, long_run, NULL) == 0);
	tx_begin_read(reader);
	CHECK(tx_count(reader, "long", STR("p"), &count) == 0 && count == 10);
	for (int i = 0; i < 4; i++) {
		size_t all = 0, some = 0;
		CHECK(tx_list_each(reader, a, "long", STR("p"), 0, 10, length_add, &all) == 0 && all == 90240);
		if (i == 2)
			CHECK(tx_list_each(reader, a, "long", STR("p"), 4, 2, length_add, &some) == 0 && some == 18048);
	}
	tx_end_read(reader);
	store_reader_free(reader);
	store_close(s);
}

/* The log: more than is collected or held at once, while more waits. */

static int big_run(struct tx *tx, void *ctx)
{
	struct id id = id_new();
	static char body[60000];
	memset(body, 'x', sizeof body);
	memcpy(body, "{\"b\":\"", 6);
	memcpy(body + sizeof body - 2, "\"}", 2);
	struct doc d = {.kind = STR("big"), .id = id_str(&id), .body = {body, sizeof body}};
	return tx_insert(tx, &d);
}

static void test_log(void)
{
	enum { WRITES = 3000 };
	struct store *s = open_store(8);
	struct write *writes = must_calloc(WRITES, sizeof *writes);
	struct entry *done = must_calloc(WRITES, sizeof *done);
	atomic_int left = WRITES;
	char path[128];
	struct stat log;
	off_t most = 0;
	for (int i = 0; i < WRITES; i++) {
		done[i].left = &left;
		writes[i] = (struct write){.run = big_run, .done = entry_done, .ctx = &done[i]};
		CHECK(store_write(s, &writes[i]));
	}
	path_of("steward.db-wal", path);
	while (atomic_load(&left)) {
		if (stat(path, &log) == 0 && log.st_size > most)
			most = log.st_size;
		usleep(1000);
	}
	CHECK(most > 4000000 && most < 100000000); /* of 180 MB */
	int wrong = 0;
	for (int i = 0; i < WRITES; i++)
		wrong += done[i].result != 0;
	CHECK(wrong == 0);
	store_close(s);
	CHECK(store_check(dir, stderr) == 0);
	free(writes);
	free(done);
}

/* A store of an older version, with more and with fewer events in a list than are searched without an index. */

static int many_run(struct tx *tx, void *ctx)
{
	int r = 0;
	for (int i = 0; r == 0 && i < 100; i++) {
		struct id id = id_new();
		struct event v = {.id = id_str(&id),
		                  .org_id = STR(ORG),
		                  .group_id = i % 5 ? STR(GROUP) : STR(ORG),
		                  .type = i % 2 ? STR("ODD") : STR("EVEN"),
		                  .body = STR("{}"),
		                  .created_ms = 1000 + i,
		                  .for_org = true,
		                  .for_group = true};
		r = tx_event_add(tx, &v);
	}
	return r;
}

static int64_t events_of(struct tx *reader, const char *types, int64_t min_ms, bool in_org, const char *scope)
{
	struct event_filter f = {.scope = str_of(scope),
	                         .in_org = in_org,
	                         .types = str_of(types),
	                         .has_min = min_ms > 0,
	                         .min_ms = min_ms};
	struct event *list;
	size_t n = 0;
	int64_t count = -1;
	if (tx_event_count(reader, &f, &count) < 0 || tx_event_list(reader, a, &f, 0, 500, &list, &n) < 0 ||
	    (int64_t)n != count)
		return -1;
	for (size_t i = 1; i < n; i++)
		if (list[i].created_ms > list[i - 1].created_ms)
			return -2;
	return count;
}

static void lists_compare(int64_t before)
{
	struct store *s = open_store(0);
	struct tx *reader = store_reader(s);
	CHECK(events_of(reader, "", 0, true, ORG) == before + 100);
	CHECK(events_of(reader, "[\"ODD\"]", 0, true, ORG) == 50);
	CHECK(events_of(reader, "[\"ODD\", \"EVEN\"]", 1090, true, ORG) == 10);
	CHECK(events_of(reader, "", 1010, true, ORG) == 90);
	CHECK(events_of(reader, "[\"EVEN\"]", 0, false, ORG) == 10);
	CHECK(events_of(reader, "", 1050, false, ORG) == 10);
	CHECK(events_of(reader, "[\"EVEN\"]", 1000, false, GROUP) == 40);
	store_reader_free(reader);
	store_close(s);
	CHECK(store_check(dir, stderr) == 0);
}

static void test_older_store(void)
{
	struct store *s = open_store(0);
	struct tx *reader = store_reader(s);
	int64_t before = -1;
	const struct event_filter all = {.scope = STR(ORG), .in_org = true};
	CHECK(tx_event_count(reader, &all, &before) == 0);
	CHECK(store_write_wait(s, many_run, NULL) == 0);
	store_reader_free(reader);
	store_close(s);
	lists_compare(before);
	/* Version 4: every event in every index. */
	CHECK(raw_sql("ALTER TABLE job DROP COLUMN tenant;"
	              "DROP INDEX event_org_pos; DROP INDEX event_org_time; DROP INDEX event_org_type;"
	              "DROP INDEX event_group_pos; DROP INDEX event_group_time; DROP INDEX event_group_type;"
	              "CREATE INDEX event_org_pos ON event (org_id, org_pos) WHERE org_pos > 0;"
	              "CREATE INDEX event_org_time ON event (org_id, created_ms, org_pos, type, cluster) WHERE org_pos "
	              "> 0;"
	              "CREATE INDEX event_org_type ON event (org_id, type, org_pos, created_ms, cluster) WHERE org_pos "
	              "> 0;"
	              "CREATE INDEX event_group_pos ON event (group_id, group_pos) WHERE group_pos > 0;"
	              "CREATE INDEX event_group_time ON event (group_id, created_ms, group_pos, type, cluster)"
	              " WHERE group_pos > 0;"
	              "CREATE INDEX event_group_type ON event (group_id, type, group_pos, created_ms, cluster)"
	              " WHERE group_pos > 0; ALTER TABLE doc DROP COLUMN sum; PRAGMA user_version = 4") == SQLITE_OK);
	lists_compare(before);
	/* The migration made correct checksums. */
	CHECK(store_check(dir, stderr) == 0);
	/* None of the first events is left in the indexes that only hold later ones. */
	CHECK(raw_sql("SELECT count(*) FROM event INDEXED BY event_group_time WHERE group_id = 'x' AND group_pos > "
	              "32") == SQLITE_OK);
	CHECK(raw_sql("SELECT count(*) FROM event INDEXED BY event_group_time WHERE group_id = 'x' AND group_pos > "
	              "0") != SQLITE_OK);
}

int main(void)
{
	static const char *const files[] = {"steward.db", "steward.db-wal", "steward.db-shm"};
	snprintf(dir, sizeof dir, "/tmp/steward-sqlite-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	log_setup(LOG_WARN, false);
	a = arena_new();
	test_counts();
	test_undo();
	test_memo();
	test_page();
	test_page_long();
	test_older_store();
	test_log();
	arena_free(a);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char path[128];
		path_of(files[i], path);
		unlink(path);
	}
	rmdir(dir);
	return CHECK_DONE();
}

/* The store: documents and lists against a model, writes that share a flush, undoing, faults of the disk, copies,
 * checks, threads, and kill -9 at random moments. With TEST_STORE_URL, on the empty PostgreSQL that it names. */
#include "check.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];
static const char *remote; /* NULL: the embedded store in dir */
static struct arena *a;

static void dir_clear(void)
{
	const char *const names[] = {"steward.db", "steward.db-wal", "steward.db-shm", "copy.db", "other.db"};
	char path[128];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
}

static struct store *open_store(unsigned batch_max)
{
	struct store *s = NULL;
	struct store_options o = {.url = remote, .data_dir = dir, .batch_max = batch_max};
	if (store_open(&o, &s) < 0) {
		fprintf(stderr, "the store does not open\n");
		exit(1);
	}
	return s;
}

/* Around what is meant to complain. */
static int stderr_quiet(void)
{
	int saved = dup(2), null = open("/dev/null", O_WRONLY);
	dup2(null, 2);
	close(null);
	return saved;
}

static void stderr_back(int saved)
{
	dup2(saved, 2);
	close(saved);
}

static int check_store(void)
{
	return store_check(remote ? remote : dir, stderr);
}

/* Runs SQL on the file, past the store. */
static void raw_sql(const char *file, const char *sql)
{
	char path[128];
	sqlite3 *db;
	snprintf(path, sizeof path, "%s/%s", dir, file);
	CHECK(sqlite3_open(path, &db) == SQLITE_OK);
	CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
}

static struct doc doc_of(const char *kind, const char *id, const char *parent, const char *name, const char *body)
{
	return (struct doc){.kind = str_of(kind),
	                    .id = str_of(id),
	                    .parent = str_of(parent),
	                    .name = str_of(name),
	                    .body = str_of(body)};
}

static int run_insert(struct tx *tx, void *ctx)
{
	return tx_insert(tx, ctx);
}

static int run_update(struct tx *tx, void *ctx)
{
	return tx_update(tx, ctx);
}

static int run_delete(struct tx *tx, void *ctx)
{
	const struct doc *d = ctx;
	char kind[32];
	snprintf(kind, sizeof kind, "%.*s", STR_ARG(d->kind));
	return tx_delete(tx, kind, d->id);
}

static void test_documents(void)
{
	struct store *s = open_store(0);
	struct tx *r = store_reader(s);
	struct doc got, d = doc_of("group", "1", "org", "alpha", "{\"a\":1}"),
	                e = doc_of("group", "2", "org", "alpha", "{}");
	int64_t count = -1;
	d.secret = STR("s3");
	CHECK(tx_get(r, a, "group", STR("1"), &got) == -ENOENT);
	CHECK(store_write_wait(s, run_insert, &d) == 0);
	CHECK(store_write_wait(s, run_insert, &d) == -EEXIST);
	CHECK(store_write_wait(s, run_insert, &e) == -EEXIST);
	e.name = STR("beta");
	CHECK(store_write_wait(s, run_insert, &e) == 0);
	CHECK(tx_get(r, a, "group", STR("1"), &got) == 0);
	CHECK(str_is(got.body, "{\"a\":1}") && str_is(got.secret, "s3") && str_is(got.name, "alpha") && got.rev == 1);
	CHECK(str_is(got.parent, "org") && str_is(got.kind, "group") && got.seq == 0 && got.created_ms > 0);
	CHECK(tx_get_by_name(r, a, "group", STR("org"), STR("beta"), &got) == 0 && str_is(got.id, "2") && got.seq == 1);
	CHECK(tx_get_by_name(r, a, "group", STR("other"), STR("beta"), &got) == -ENOENT);
	CHECK(tx_count(r, "group", STR("org"), &count) == 0 && count == 2);
	CHECK(tx_count(r, "group", STR("none"), &count) == 0 && count == 0);

	d.rev = 7;
	CHECK(store_write_wait(s, run_update, &d) == -ESTALE);
	d.rev = 1;
	d.body = STR("{\"a\":2}");
	CHECK(store_write_wait(s, run_update, &d) == 0);
	CHECK(store_write_wait(s, run_update, &d) == -ESTALE);
	d.rev = 0;
	d.name = STR("beta");
	CHECK(store_write_wait(s, run_update, &d) == -EEXIST);
	CHECK(tx_get(r, a, "group", STR("1"), &got) == 0 && got.rev == 2 && str_is(got.body, "{\"a\":2}"));
	d.id = STR("none");
	CHECK(store_write_wait(s, run_update, &d) == -ENOENT);

	CHECK(store_write_wait(s, run_delete, &d) == -ENOENT);
	CHECK(store_write_wait(s, run_delete, &e) == 0);
	CHECK(tx_get(r, a, "group", STR("2"), &got) == -ENOENT);
	CHECK(tx_count(r, "group", STR("org"), &count) == 0 && count == 1);
	store_reader_free(r);
	store_close(s);
	CHECK(check_store() == 0);
}

static int run_rows(struct tx *tx, void *ctx)
{
	struct str text;
	CHECK(tx_ref_put(tx, "k", STR("v"), STR("id")) == 0);
	CHECK(tx_ref_put(tx, "k", STR("v"), STR("id2")) == -EEXIST);
	CHECK(tx_ref_get(tx, a, "k", STR("v"), &text) == 0 && str_is(text, "id"));
	CHECK(tx_ref_delete(tx, "k", STR("v")) == 0);
	CHECK(tx_ref_delete(tx, "k", STR("v")) == -ENOENT);
	CHECK(tx_ref_put(tx, "k", STR("v"), STR("id3")) == 0);
	CHECK(tx_meta_get(tx, a, "m", &text) == -ENOENT);
	CHECK(tx_meta_put(tx, "m", STR("1")) == 0 && tx_meta_put(tx, "m", STR("2")) == 0);
	struct limit_override o = {STR("S17"), STR(""), 10, 5}, all = {STR("*"), STR("scope"), 4000000000u, 1};
	CHECK(tx_override_put(tx, &o) == 0 && tx_override_put(tx, &all) == 0);
	o.capacity = 11;
	CHECK(tx_override_put(tx, &o) == 0);
	CHECK(tx_override_delete(tx, STR("S99"), STR("")) == -ENOENT);
	struct event e = {STR("e1"), STR("org"), STR(""), STR("TYPE"), STR("{}"), 5};
	CHECK(tx_event_add(tx, &e) == 0);
	/* In PostgreSQL events are not waited for, so a repeated id would undo the batch. */
	if (!remote)
		CHECK(tx_event_add(tx, &e) == -EEXIST);
	e.id = STR("e2");
	CHECK(tx_event_add(tx, &e) == 0);
	return 0;
}

static int run_wipe(struct tx *tx, void *ctx)
{
	return tx_wipe(tx);
}

static void test_rows(void)
{
	struct store *s = open_store(0);
	struct tx *r = store_reader(s);
	struct limit_override *list;
	struct str text;
	size_t n;
	int64_t count;
	uint64_t version = store_data_version(r), generation = store_identity_generation(s);
	CHECK(store_write_wait(s, run_rows, NULL) == 0);
	CHECK(store_data_version(r) != version);
	CHECK(store_identity_generation(s) == generation);
	CHECK(tx_meta_get(r, a, "m", &text) == 0 && str_is(text, "2"));
	CHECK(tx_overrides(r, a, &list, &n) == 0 && n == 2);
	CHECK(str_is(list[0].set, "*") && list[0].capacity == 4000000000u && list[1].capacity == 11 &&
	      !list[1].scope.n);
	CHECK(check_store() == 0);
	CHECK(store_write_wait(s, run_wipe, NULL) == 0);
	CHECK(store_identity_generation(s) == generation + 1);
	CHECK(tx_meta_get(r, a, "m", &text) == -ENOENT && tx_ref_get(r, a, "k", STR("v"), &text) == -ENOENT);
	CHECK(tx_overrides(r, a, &list, &n) == 0 && n == 0);
	CHECK(tx_count(r, "group", STR("org"), &count) == 0 && count == 0);
	store_reader_free(r);
	store_close(s);
	CHECK(check_store() == 0);
}

static int run_answer(struct tx *tx, void *ctx)
{
	return tx_answer_put(tx, STR("caller"), str_of(ctx), &(struct stored_answer){STR("f"), STR("text")});
}

static void test_answers(void)
{
	char k1[] = "k1", k2[] = "k2";
	struct stored_answer got;
	struct store *s = open_store(0);
	struct tx *r = store_reader(s);
	clock_make_virtual();
	CHECK(tx_answer_get(r, a, STR("caller"), STR("k1"), &got) == -ENOENT);
	CHECK(store_write_wait(s, run_answer, k1) == 0);
	CHECK(store_write_wait(s, run_answer, k1) == -EEXIST);
	CHECK(tx_answer_get(r, a, STR("caller"), STR("k1"), &got) == 0 && str_is(got.answer, "text"));
	CHECK(tx_answer_get(r, a, STR("else"), STR("k1"), &got) == -ENOENT);
	clock_advance_ms(24 * 3600 * 1000 + 1);
	CHECK(tx_answer_get(r, a, STR("caller"), STR("k1"), &got) == -ENOENT);
	CHECK(store_write_wait(s, run_answer, k2) == 0);
	CHECK(store_write_wait(s, run_answer, k1) == 0);
	CHECK(tx_answer_get(r, a, STR("caller"), STR("k1"), &got) == 0 && str_is(got.fingerprint, "f"));
	store_reader_free(r);
	store_close(s);
}

/* A list of many blocks, against an array. */
#define MODEL 6000
struct model {
	int ids[MODEL];
	int count, remove;
	unsigned random;
};

static unsigned model_random(struct model *m)
{
	m->random = m->random * 1103515245u + 12345u;
	return m->random >> 8;
}

static int model_add(struct tx *tx, void *ctx)
{
	struct model *m = ctx;
	char id[16];
	for (int i = 0; i < MODEL; i++) {
		snprintf(id, sizeof id, "%d", i);
		struct doc d = doc_of("m", id, "p", "", "{}");
		if (tx_insert(tx, &d) < 0)
			return -EINVAL;
		m->ids[m->count++] = i;
	}
	return 0;
}

static int model_thin(struct tx *tx, void *ctx)
{
	struct model *m = ctx;
	char id[16];
	for (int i = 0; i < m->remove; i++) {
		int at = (int)(model_random(m) % (unsigned)m->count);
		snprintf(id, sizeof id, "%d", m->ids[at]);
		if (tx_delete(tx, "m", str_of(id)) < 0)
			return -EINVAL;
		memmove(&m->ids[at], &m->ids[at + 1], (size_t)(m->count - at - 1) * sizeof(int));
		m->count--;
	}
	return 0;
}

/* What tx_list_each() shows, held against what tx_list() copied. */
struct shown {
	const struct doc *docs;
	size_t count, wrong, max; /* max: ends it there */
};

static int shown_add(void *ctx, const struct doc *d)
{
	struct shown *s = ctx;
	const struct doc *want = &s->docs[s->count++];
	s->wrong += !str_eq(d->kind, want->kind) || !str_eq(d->id, want->id) || !str_eq(d->parent, want->parent) ||
	            !str_eq(d->body, want->body);
	return s->count == s->max ? -ECANCELED : 0;
}

static bool model_agrees(struct model *m, struct tx *r)
{
	static const int offsets[] = {0,    1,    511,  512,  2047, 2048, 2049, 2560,
	                              3000, 4095, 4096, 4999, 5500, 5999, 6000, 7000};
	struct doc *docs;
	size_t n;
	char id[16];
	int64_t count;
	bool ok = tx_count(r, "m", STR("p"), &count) == 0 && count == m->count;
	for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
		int at = offsets[i], left = m->count - at < 0 ? 0 : m->count - at;
		ok = ok && tx_list(r, a, "m", STR("p"), at, 40, &docs, &n) == 0 && n == (size_t)(left < 40 ? left : 40);
		for (size_t k = 0; ok && k < n; k++) {
			snprintf(id, sizeof id, "%d", m->ids[(size_t)at + k]);
			ok = str_is(docs[k].id, id);
		}
		struct shown all = {.docs = docs}, some = {.docs = docs, .max = 7};
		ok = ok && tx_list_each(r, a, "m", STR("p"), at, 40, shown_add, &all) == 0 && all.count == n &&
		     !all.wrong;
		ok = ok && tx_list_each(r, a, "m", STR("p"), at, 40, shown_add, &some) == (n < 7 ? 0 : -ECANCELED) &&
		     some.count == (n < 7 ? n : 7);
	}
	return ok;
}

/* A walk over all lists of a kind, in pages, sees each document once, by parent. */
static int run_walk(struct tx *tx, void *ctx)
{
	static const char *const parents[] = {"c", "a", "b"};
	char id[16];
	for (int i = 0; i < 30; i++) {
		snprintf(id, sizeof id, "%d", i);
		struct doc d = doc_of("w", id, parents[i % 3], "", "{}"),
		           other = doc_of("v", id, parents[i % 3], "", "{}");
		if (tx_insert(tx, &d) < 0 || tx_insert(tx, &other) < 0)
			return -EINVAL;
	}
	return 0;
}

static void test_walk(void)
{
	struct store *s = open_store(0);
	struct tx *r = store_reader(s);
	struct str parent = STR("");
	int64_t seq = -1;
	size_t n = 0, seen = 0;
	bool ok = true;
	CHECK(store_write_wait(s, run_walk, NULL) == 0);
	do {
		struct doc *docs;
		ok = ok && tx_walk(r, a, "w", parent, seq, 7, &docs, &n) == 0;
		for (size_t i = 0; ok && i < n; i++, seen++) {
			ok = str_is(docs[i].kind, "w") && docs[i].parent.p[0] == "abc"[seen / 10] &&
			     docs[i].seq == (int64_t)(seen % 10);
			parent = docs[i].parent;
			seq = docs[i].seq;
		}
	} while (ok && n == 7);
	CHECK(ok && seen == 30);
	/* The same without their texts: of the kind, and of one list in its order. */
	struct doc *heads;
	parent = STR("b");
	CHECK(tx_heads(r, a, "w", NULL, &heads, &n) == 0 && n == 30);
	CHECK(tx_heads(r, a, "w", &parent, &heads, &n) == 0 && n == 10);
	for (size_t i = 0; i < n; i++)
		CHECK(heads[i].seq == (int64_t)i && heads[i].rev == 1 && heads[i].created_ms && !heads[i].body.n &&
		      str_is(heads[i].kind, "w") && str_eq(heads[i].parent, parent));
	CHECK(tx_heads(r, a, "nothing", NULL, &heads, &n) == 0 && n == 0);
	store_reader_free(r);
	store_close(s);
}

/* What a write reads after it, or an earlier write of the batch, has changed it. */
static int run_own(struct tx *tx, void *ctx)
{
	struct doc got, d = doc_of("own", "1", "p", "x", "{\"v\":1}");
	bool fresh = tx_get(tx, a, "own", STR("1"), &got) == -ENOENT;
	if (!fresh || tx_insert(tx, &d) < 0 || tx_get(tx, a, "own", STR("1"), &got) < 0 || got.rev != 1 ||
	    got.seq != 0 || !str_is(got.name, "x") || !str_is(got.body, "{\"v\":1}") || got.created_ms == 0)
		return -EINVAL;
	d.body = STR("{\"v\":2}");
	if (tx_update(tx, &d) < 0 || tx_get(tx, a, "own", STR("1"), &got) < 0 || got.rev != 2 ||
	    !str_is(got.body, "{\"v\":2}"))
		return -EINVAL;
	d.parent = STR("q");
	if (tx_move(tx, &d) < 0 || tx_get(tx, a, "own", STR("1"), &got) < 0 || !str_is(got.parent, "q"))
		return -EINVAL;
	if (ctx)
		return -ECANCELED; /* undone */
	return tx_delete(tx, "own", STR("1")) < 0 || tx_get(tx, a, "own", STR("1"), &got) != -ENOENT ? -EINVAL : 0;
}

struct own {
	struct write write;
	atomic_int *left, *wrong;
	bool undo;
};

static void own_done(void *ctx, int result)
{
	struct own *o = ctx;
	if (result != (o->undo ? -ECANCELED : 0))
		atomic_fetch_add(o->wrong, 1);
	atomic_fetch_sub(o->left, 1);
}

static int own_run(struct tx *tx, void *ctx)
{
	const struct own *o = ctx;
	return run_own(tx, o->undo ? ctx : NULL);
}

static void test_own_changes(void)
{
	struct store *s = open_store(0);
	struct own writes[40];
	atomic_int left = 40, wrong = 0;
	for (int i = 0; i < 40; i++) {
		writes[i] = (struct own){.left = &left, .wrong = &wrong, .undo = i % 3 != 0};
		writes[i].write = (struct write){.run = own_run, .done = own_done, .ctx = &writes[i]};
		CHECK(store_write(s, &writes[i].write));
	}
	store_close(s);
	CHECK(left == 0 && wrong == 0);
	CHECK(check_store() == 0);
}

/* An empty read in between must not give the next read an old snapshot. */
static void test_fresh_reads(void)
{
	struct store *s = open_store(0);
	struct tx *r = store_reader(s);
	struct doc got, d = doc_of("fresh", "1", "p", "x", "{}");
	tx_begin_read(r);
	CHECK(tx_get(r, a, "fresh", STR("1"), &got) == -ENOENT);
	tx_end_read(r);
	tx_begin_read(r);
	tx_end_read(r);
	CHECK(store_write_wait(s, run_insert, &d) == 0);
	tx_begin_read(r);
	CHECK(tx_get(r, a, "fresh", STR("1"), &got) == 0);
	tx_end_read(r);
	CHECK(store_write_wait(s, run_delete, &d) == 0);
	CHECK(tx_get(r, a, "fresh", STR("1"), &got) == -ENOENT);
	tx_rest(r);
	store_reader_free(r);
	store_close(s);
}

static void test_lists(void)
{
	struct model *m = must_calloc(1, sizeof(*m));
	struct store *s = open_store(0);
	struct tx *r = store_reader(s);
	struct doc *docs;
	size_t n = 9;
	m->random = 42;
	CHECK(tx_list(r, a, "m", STR("p"), 0, 100, &docs, &n) == 0 && n == 0);
	CHECK(tx_list(r, a, "m", STR("p"), 5000, 100, &docs, &n) == 0 && n == 0);
	CHECK(store_write_wait(s, model_add, m) == 0);
	CHECK(model_agrees(m, r));
	static const int removals[] = {1, 1, 1, 3, 994, 1000, 1000, 1000, 1000};
	for (size_t i = 0; i < sizeof removals / sizeof *removals; i++) { /* blocks without gaps beside blocks with */
		m->remove = removals[i];
		CHECK(store_write_wait(s, model_thin, m) == 0);
		CHECK(model_agrees(m, r));
	}
	CHECK(tx_list(r, a, "m", STR("p"), -5, -1, &docs, &n) == 0 && n == 0);
	CHECK(m->count == 1000 && check_store() == 0);
	CHECK(store_write_wait(s, model_thin, m) == 0);
	CHECK(m->count == 0 && model_agrees(m, r));
	store_reader_free(r);
	store_close(s);
	CHECK(check_store() == 0);
	free(m);
}

static int count_shown(void *ctx, const struct doc *d)
{
	CHECK(!str_is(d->id, "bad"));
	++*(int *)ctx;
	return 0;
}

/* A document whose content is not what was written is in no list's answer. */
static void test_damaged_list(void)
{
	if (remote)
		return;
	static const char *const ids[] = {"one", "bad", "two"};
	struct store *s = open_store(0);
	for (size_t i = 0; i < 3; i++) {
		struct doc d = doc_of("l", ids[i], "p", "", "{\"a\":1}");
		CHECK(store_write_wait(s, run_insert, &d) == 0);
	}
	store_close(s);
	raw_sql("steward.db", "UPDATE doc SET body = '{\"a\":2}' WHERE kind = 'l' AND id = 'bad'");
	s = open_store(0);
	struct tx *r = store_reader(s);
	struct doc *docs;
	size_t n;
	int shown = 0, saved = stderr_quiet();
	CHECK(tx_list(r, a, "l", STR("p"), 0, 10, &docs, &n) == -EIO);
	CHECK(tx_list_each(r, a, "l", STR("p"), 0, 10, count_shown, &shown) == -EIO && shown == 1);
	CHECK(tx_list_each(r, a, "l", STR("p"), 2, 10, count_shown, &shown) == 0 && shown == 2);
	stderr_back(saved);
	store_reader_free(r);
	store_close(s);
	raw_sql("steward.db", "UPDATE doc SET body = '{\"a\":1}' WHERE kind = 'l' AND id = 'bad'");
}

/* Queued writes: failing ones are undone alone, and done() comes in order, once each. */
struct queued {
	struct write w;
	int number, result;
	atomic_int *done;
};

static int queued_run(struct tx *tx, void *ctx)
{
	struct queued *q = ctx;
	char id[16];
	snprintf(id, sizeof id, "q%d", q->number);
	struct doc d = doc_of("q", id, "", "", "{}");
	int r = tx_insert(tx, &d);
	if (q->number % 3 == 0)
		tx_touch_identity(tx);
	return r < 0 ? r : q->number % 3 == 0 ? -ECANCELED : 0;
}

static void queued_done(void *ctx, int result)
{
	struct queued *q = ctx;
	q->result = result;
	atomic_fetch_add(q->done, 1);
}

static int run_nothing(struct tx *tx, void *ctx)
{
	return 0;
}

static void test_batches(void)
{
	static struct queued q[300];
	atomic_int done = 0;
	struct store *s = open_store(64);
	struct tx *r = store_reader(s);
	struct doc got;
	struct store_stats stats;
	uint64_t generation = store_identity_generation(s);
	char id[16];
	for (int i = 0; i < 300; i++) {
		q[i] = (struct queued){
		        .w = {.run = queued_run, .done = queued_done, .ctx = &q[i]}, .number = i, .done = &done};
		CHECK(store_write(s, &q[i].w));
	}
	CHECK(store_write_wait(s, run_nothing, NULL) == 0);
	CHECK(done == 300);
	for (int i = 0; i < 300; i++) {
		snprintf(id, sizeof id, "q%d", i);
		bool there = tx_get(r, a, "q", str_of(id), &got) == 0;
		if (q[i].result != (i % 3 ? 0 : -ECANCELED) || there != (i % 3 != 0))
			CHECK(!"each write is all or nothing");
	}
	CHECK(store_identity_generation(s) == generation);
	store_stats(s, &stats);
	CHECK(stats.writes == 201 && stats.failed == 100 && stats.commits < 100 && stats.reads == 300 &&
	      stats.queue_depth == 0);
	store_reader_free(r);
	store_close(s);
	CHECK(check_store() == 0);
}

/* Writes of one batch, some of which fail for different reasons: the others must not be affected. */
struct neighbour {
	struct write w;
	int number, result;
	atomic_int *done;
};

static int neighbour_run(struct tx *tx, void *ctx)
{
	const struct neighbour *n = ctx;
	char id[16], event_id[16];
	int kind = n->number % 10;
	snprintf(id, sizeof id, "n%d", kind == 3 ? 1 : n->number);
	snprintf(event_id, sizeof event_id, "ne%d", kind == 5 ? 5 : n->number);
	struct doc d = doc_of("n", id, "parent", id, "{}");
	struct event e = {str_of(event_id), STR("neighbours"), STR(""), STR("TYPE"), STR("{}"), 5, .for_org = true};
	int r = tx_insert(tx, &d);
	if (r == 0)
		r = tx_event_add(tx, &e);
	return r == 0 && kind == 7 ? -ECANCELED : r;
}

static void neighbour_done(void *ctx, int result)
{
	struct neighbour *n = ctx;
	n->result = result;
	atomic_fetch_add(n->done, 1);
}

static bool neighbour_fails(int number)
{
	return number % 10 == 3 || number % 10 == 7 || (number % 10 == 5 && number != 5);
}

static void test_neighbours(void)
{
	static struct neighbour n[120];
	atomic_int done = 0;
	struct store *s = open_store(0);
	struct tx *r = store_reader(s);
	struct event_filter f = {.scope = STR("neighbours"), .in_org = true};
	int64_t count = 0, events = 0, good = 0;
	for (int i = 0; i < 120; i++) {
		n[i] = (struct neighbour){
		        .w = {.run = neighbour_run, .done = neighbour_done, .ctx = &n[i]}, .number = i, .done = &done};
		CHECK(store_write(s, &n[i].w));
	}
	int saved = stderr_quiet(); /* a repeated id is a fault of ours, and logged */
	CHECK(store_write_wait(s, run_nothing, NULL) == 0);
	stderr_back(saved);
	CHECK(done == 120);
	for (int i = 0; i < 120; i++) {
		bool fails = neighbour_fails(i);
		good += !fails;
		if ((n[i].result < 0) != fails || (i % 10 == 3 && n[i].result != -EEXIST) ||
		    (i % 10 == 7 && n[i].result != -ECANCELED))
			CHECK(!"a write that failed takes no other with it");
	}
	CHECK(tx_count(r, "n", STR("parent"), &count) == 0 && count == good);
	CHECK(tx_event_count(r, &f, &events) == 0 && events == good);
	store_reader_free(r);
	store_close(s);
	CHECK(check_store() == 0);
}

static void test_get_many(void)
{
	struct store *s = open_store(0);
	struct tx *r = store_reader(s);
	struct doc_wanted wanted[80], *list[80];
	struct store_stats before, after;
	char ids[80][16];
	for (int i = 0; i < 80; i++) {
		snprintf(ids[i], sizeof ids[i], "w%d", i);
		struct doc d = doc_of("w", ids[i], "parent", ids[i], "{}");
		if (i % 7)
			CHECK(store_write_wait(s, run_insert, &d) == 0);
		wanted[i] = (struct doc_wanted){.arena = a, .kind = "w", .id = str_of(ids[i]), .result = 1};
		list[i] = &wanted[i];
	}
	wanted[40].id = STR("\xff");
	store_stats(s, &before);
	tx_get_many(r, list, 80);
	for (int i = 0; i < 80; i++) {
		bool there = i % 7 && i != 40;
		if (wanted[i].result != (there ? 0 : -ENOENT) || (there && !str_is(wanted[i].doc.name, ids[i])))
			CHECK(!"each gets its own");
	}
	store_stats(s, &after);
	CHECK(after.reads == before.reads + 80);
	tx_get_many(r, list, 0);
	store_reader_free(r);
	store_close(s);
}

#define AHEAD 100

static struct str ahead_name(int i)
{
	return arena_printf(a, "ahead-%d", i);
}

/* Whether a document of that name is there, by its name and, when it is, by its id. */
static bool ahead_has(struct tx *tx, int i, struct doc *ret_doc)
{
	struct doc again;
	int r = tx_get_by_name(tx, a, "ahead", STR("p"), ahead_name(i), ret_doc);
	CHECK(r == 0 || r == -ENOENT);
	CHECK(r < 0 || (tx_get(tx, a, "ahead", ret_doc->id, &again) == 0 && str_eq(again.body, ret_doc->body) &&
	                again.rev == ret_doc->rev));
	return r == 0;
}

static int64_t ahead_count(struct tx *tx)
{
	int64_t count = -1;
	CHECK(tx_count(tx, "ahead", STR("p"), &count) == 0);
	return count;
}

/* What was read ahead follows what the write itself does. */
static int run_ahead(struct tx *tx, void *ctx)
{
	struct doc_question list[AHEAD + 1];
	struct doc d = {0}, *docs;
	size_t count;
	for (int i = 0; i < AHEAD; i++)
		list[i] = (struct doc_question){.kind = "ahead", .parent = STR("p"), .name = ahead_name(i)};
	list[AHEAD] = (struct doc_question){.kind = "ahead", .parent = STR("p"), .count = true};
	tx_read_ahead(tx, list, AHEAD + 1);
	CHECK(ahead_count(tx) == 0 && !ahead_has(tx, 0, &d));
	for (int i = 0; i < AHEAD; i++) {
		char id[16];
		snprintf(id, sizeof id, "%d", i);
		d = doc_of("ahead", arena_z(a, str_of(id)), "p", ahead_name(i).p, "{}");
		CHECK(tx_insert(tx, &d) == 0 && ahead_has(tx, i, &d) && ahead_count(tx) == i + 1);
	}
	/* Known documents are changed and deleted; the next questions see it. */
	CHECK(tx_list(tx, a, "ahead", STR("p"), 0, AHEAD, &docs, &count) == 0 && count == AHEAD);
	docs[1].body = STR("{\"b\":1}");
	CHECK(tx_update(tx, &docs[1]) == 0 && ahead_has(tx, 1, &d) && str_eq(d.body, docs[1].body) && d.rev == 2);
	CHECK(tx_update(tx, &docs[1]) == -ESTALE);
	docs[2].name = STR("other");
	CHECK(tx_update(tx, &docs[2]) == 0 && !ahead_has(tx, 2, &d));
	CHECK(tx_get_by_name(tx, a, "ahead", STR("p"), STR("other"), &d) == 0 && str_is(d.id, "2"));
	docs[3].parent = STR("q");
	CHECK(tx_move(tx, &docs[3]) == 0 && !ahead_has(tx, 3, &d) && ahead_count(tx) == AHEAD - 1);
	for (int i = 4; i < AHEAD; i++)
		CHECK(tx_delete(tx, "ahead", docs[i].id) == 0 && !ahead_has(tx, i, &d) &&
		      ahead_count(tx) == AHEAD + 2 - i);
	CHECK(tx_delete(tx, "ahead", docs[4].id) == -ENOENT && ahead_count(tx) == 3);
	return *(int *)ctx;
}

static void test_read_ahead(void)
{
	struct store *s = open_store(0);
	struct tx *r = store_reader(s);
	int64_t count = -1;
	int results[] = {-ECANCELED, 0}; /* undone, and then kept: what the first has read holds for it alone */
	for (int i = 0; i < 2; i++)
		CHECK(store_write_wait(s, run_ahead, &results[i]) == results[i]);
	CHECK(tx_count(r, "ahead", STR("p"), &count) == 0 && count == 3);
	CHECK(tx_count(r, "ahead", STR("q"), &count) == 0 && count == 1);
	store_reader_free(r);
	store_close(s);
	CHECK(check_store() == 0);
}

#define WIDE 150

static struct doc wide_doc(int i, int parent)
{
	struct str id = arena_printf(a, "wide-%d-%d", i, parent), under = arena_printf(a, "place-%d", parent);
	return doc_of("wide", id.p, under.p, "somebody", "{}");
}

static int64_t wide_count(struct tx *tx, int parent)
{
	int64_t count = -1;
	CHECK(tx_count(tx, "wide", arena_printf(a, "place-%d", parent), &count) == 0);
	return count;
}

/* A write that leaves a document in each of many lists, as an invitation does. The name in the last one is taken when
 * ctx says so, which only the write itself may notice. */
static int run_wide(struct tx *tx, void *ctx)
{
	struct doc_question list[2 * WIDE];
	struct doc d = {0};
	int r = 0;
	for (int i = 0; i < WIDE; i++) {
		struct doc one = wide_doc(1, i);
		list[2 * i] = (struct doc_question){.kind = "wide", .id = one.id};
		list[2 * i + 1] = (struct doc_question){.kind = "wide", .parent = one.parent, .count = true};
	}
	tx_read_ahead(tx, list, (size_t)2 * WIDE);
	for (int i = 0; r == 0 && i < WIDE; i++) {
		d = wide_doc(1, i);
		CHECK(wide_count(tx, i) == (*(bool *)ctx && i == WIDE - 1) &&
		      tx_get(tx, a, "wide", d.id, &d) == -ENOENT);
	}
	for (int i = 0; r == 0 && i < WIDE; i++) {
		d = wide_doc(1, i);
		r = tx_insert(tx, &d);
	}
	/* Others of the same lists follow, and all are seen. */
	for (int i = 0; r == 0 && i < 3; i++) {
		d = wide_doc(2, i);
		d.name = STR("another");
		r = tx_insert(tx, &d);
	}
	/* Where the store guesses that all are new, the write runs on until that shows, and then again. */
	if (r == 0 && !*(bool *)ctx)
		CHECK(wide_count(tx, 0) == 2 && wide_count(tx, WIDE - 1) == 1 && tx_get(tx, a, "wide", d.id, &d) == 0 &&
		      d.seq == 1);
	return r;
}

static int run_clear(struct tx *tx, void *ctx)
{
	struct doc d = wide_doc(1, 0), found;
	CHECK(tx_get(tx, a, "wide", d.id, &found) == 0 && wide_count(tx, 0) == 2);
	CHECK(tx_delete_list(tx, "wide", d.parent) == 0);
	CHECK(tx_get(tx, a, "wide", d.id, &found) == -ENOENT && wide_count(tx, 0) == 0);
	CHECK(tx_get_by_name(tx, a, "wide", d.parent, STR("another"), &found) == -ENOENT);
	/* The list begins anew; the neighbours are as they were. */
	CHECK(tx_insert(tx, &d) == 0 && wide_count(tx, 0) == 1 && wide_count(tx, 1) == 2);
	return tx_delete_list(tx, "wide", STR("nowhere"));
}

static void test_wide(void)
{
	struct store *s = open_store(0);
	struct store_stats before, after;
	struct doc taken = wide_doc(9, WIDE - 1);
	bool is_taken = true;
	CHECK(store_write_wait(s, run_insert, &taken) == 0);
	CHECK(store_write_wait(s, run_wide, &is_taken) == -EEXIST);
	CHECK(store_write_wait(s, run_delete, &taken) == 0);
	/* It was undone, and so some batches expect that again. */
	is_taken = false;
	for (int i = 0; i < 8; i++)
		CHECK(store_write_wait(s, run_nothing, NULL) == 0);
	store_stats(s, &before);
	CHECK(store_write_wait(s, run_wide, &is_taken) == 0);
	store_stats(s, &after);
	CHECK(after.round_trips - before.round_trips <= 20);
	CHECK(store_write_wait(s, run_clear, NULL) == 0);
	store_close(s);
	CHECK(check_store() == 0);
}

static int run_touch(struct tx *tx, void *ctx)
{
	tx_touch_identity(tx);
	return 0;
}

static void test_snapshot_and_generation(void)
{
	struct store *s = open_store(0), *other = open_store(0); /* the other plays another process */
	struct tx *r = store_reader(s);
	struct doc d = doc_of("snap", "1", "", "", "{}"), got;
	uint64_t before = store_identity_generation(s);
	tx_begin_read(r);
	CHECK(tx_get(r, a, "snap", STR("1"), &got) == -ENOENT);
	CHECK(store_write_wait(other, run_insert, &d) == 0);
	CHECK(tx_get(r, a, "snap", STR("1"), &got) == -ENOENT);
	tx_end_read(r);
	tx_rest(r);
	CHECK(tx_get(r, a, "snap", STR("1"), &got) == 0);
	/* A snapshot kept for the next read must not hide a finished write of this process. */
	struct doc second = doc_of("snap", "2", "", "", "{}");
	tx_begin_read(r);
	CHECK(tx_get(r, a, "snap", STR("2"), &got) == -ENOENT);
	tx_end_read(r);
	CHECK(store_write_wait(s, run_insert, &second) == 0);
	CHECK(tx_get(r, a, "snap", STR("2"), &got) == 0);
	tx_begin_read(r);
	CHECK(tx_get(r, a, "snap", STR("2"), &got) == 0);
	tx_end_read(r);
	tx_rest(r);

	CHECK(store_write_wait(s, run_touch, NULL) == 0);
	CHECK(store_identity_generation(s) == before + 1);
	CHECK(store_write_wait(other, run_touch, NULL) == 0);
	for (int i = 0; i < 3000 && store_identity_generation(s) == before + 1; i++)
		usleep(10000);
	CHECK(store_identity_generation(s) == before + 2);
	store_reader_free(r);
	store_close(other);
	store_close(s);
}

static int run_big(struct tx *tx, void *ctx)
{
	struct id id = id_new();
	char *body = must_malloc(100000);
	memset(body, ' ', 100000);
	body[0] = '{';
	body[99999] = '}';
	struct doc d = {.kind = STR("big"), .id = id_str(&id), .body = {body, 100000}};
	int r = tx_insert(tx, &d);
	free(body);
	return r;
}

/* A file that cannot grow: writes fail and leave nothing, reads still work, and the store recovers by itself. */
static void test_full_disk(void)
{
	struct store *s = open_store(0);
	struct tx *r = store_reader(s);
	struct rlimit limit, old;
	struct doc got;
	int64_t count, after;
	int result = 0, good = 0;
	CHECK(store_write_wait(s, run_big, NULL) == 0);
	int quiet = stderr_quiet();
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	limit = (struct rlimit){2000000, old.rlim_max};
	setrlimit(RLIMIT_FSIZE, &limit);
	while (result == 0 && good < 1000) {
		result = store_write_wait(s, run_big, NULL);
		good += result == 0;
	}
	CHECK(result == -ENOSPC && good > 2);
	CHECK(store_write_wait(s, run_big, NULL) == -ENOSPC && store_is_full(s));
	CHECK(tx_count(r, "big", STR(""), &count) == 0 && count == good + 1);
	CHECK(tx_get(r, a, "snap", STR("1"), &got) == 0);
	setrlimit(RLIMIT_FSIZE, &old);
	stderr_back(quiet);
	CHECK(store_write_wait(s, run_big, NULL) == 0);
	CHECK(tx_count(r, "big", STR(""), &after) == 0 && after == count + 1);
	store_reader_free(r);
	store_close(s);
	CHECK(check_store() == 0);
}

static int progress_calls;
static void progress(int done, int total)
{
	progress_calls += done <= total;
}

static void test_copy_and_check(void)
{
	char copy[128];
	FILE *sink = fopen("/dev/null", "w");
	struct stat info;
	snprintf(copy, sizeof copy, "%s/copy.db", dir);
	struct store *s = open_store(0);
	CHECK(store_write_wait(s, run_rows, NULL) == 0);
	struct doc key = doc_of("api_key", "k1", "org", "", "{}");
	CHECK(store_write_wait(s, run_insert, &key) == 0);
	CHECK(store_backup(dir, copy, progress) == 0 && progress_calls > 0);
	int quiet = stderr_quiet();
	int again = store_backup(dir, copy, NULL);
	stderr_back(quiet);
	CHECK(again == -EEXIST);
	CHECK(stat(copy, &info) == 0 && (info.st_mode & 0777) == 0600);
	store_close(s);
	CHECK(store_check(copy, stderr) == 0);
	snprintf(copy, sizeof copy, "%s/copy.db-wal", dir);
	CHECK(access(copy, F_OK) < 0);
	snprintf(copy, sizeof copy, "%s/copy.db", dir);

	raw_sql("copy.db", "UPDATE list SET count = count + 1 WHERE kind = 'big'");
	CHECK(store_check(copy, sink) == 1);
	raw_sql("copy.db", "UPDATE list SET count = count - 1 WHERE kind = 'big'");
	raw_sql("copy.db", "INSERT INTO list_block VALUES ('big', '', 0, 7, 1)");
	CHECK(store_check(copy, sink) == 1);
	raw_sql("copy.db",
	        "DELETE FROM list_block WHERE kind = 'big'; UPDATE doc SET body = '[]' WHERE kind = 'api_key'");
	CHECK(store_check(copy, sink) == 1);
	raw_sql("copy.db", "UPDATE doc SET body = '{' WHERE kind = 'api_key'");
	CHECK(store_check(copy, sink) == 1);
	raw_sql("copy.db",
	        "UPDATE doc SET body = '{}', sum = NULL; INSERT INTO ref VALUES ('api_key_public', 'x', 'k1')");
	CHECK(store_check(copy, sink) == 0);
	raw_sql("copy.db", "UPDATE doc SET sum = 1 WHERE kind = 'api_key'");
	CHECK(store_check(copy, sink) == 1);
	raw_sql("copy.db", "UPDATE doc SET sum = NULL");
	raw_sql("copy.db", "UPDATE ref SET id = 'k2' WHERE value = 'x'");
	CHECK(store_check(copy, sink) == 1);
	raw_sql("copy.db", "DELETE FROM ref WHERE value = 'x'; UPDATE event SET type = 'OTHER' WHERE seq = 1");
	CHECK(store_check(copy, sink) == 1);
	raw_sql("copy.db", "UPDATE event SET type = 'TYPE' WHERE seq = 1");
	CHECK(store_check(copy, sink) == 0);
	raw_sql("copy.db", "UPDATE event SET seq = 1000000 WHERE seq = 2");
	CHECK(store_check(copy, sink) >= 1);
	CHECK(store_check("/nonexistent/x", sink) < 0);
	fclose(sink);
}

static void test_refusals(void)
{
	char url[160];
	struct store *s;
	int quiet = stderr_quiet();
	snprintf(url, sizeof url, "sqlite:%s/other.db", dir);
	struct store_options o = {.url = url, .data_dir = dir};
	raw_sql("other.db", "CREATE TABLE t (x)");
	CHECK(store_open(&o, &s) == -EINVAL);
	snprintf(url, sizeof url, "sqlite:%s/copy.db", dir);
	raw_sql("copy.db", "PRAGMA user_version = 99");
	CHECK(store_open(&o, &s) == -EPROTO);
	CHECK(store_check(url + 7, stderr) == -EPROTO);
	snprintf(url, sizeof url, "mysql:x");
	CHECK(store_open(&o, &s) == -EINVAL);
	o = (struct store_options){.data_dir = "/nonexistent/dir"};
	CHECK(store_open(&o, &s) == -ENOENT);
	stderr_back(quiet);
}

/* Four threads write and two read, for a moment. */
struct crowd {
	struct store *s;
	atomic_bool stop;
	atomic_int written, faults;
};

static void *crowd_write(void *arg)
{
	struct crowd *c = arg;
	while (!c->stop) {
		struct id id = id_new();
		struct doc d = {.kind = STR("crowd"), .id = id_str(&id), .parent = STR("p"), .body = STR("{}")};
		if (store_write_wait(c->s, run_insert, &d) == 0)
			c->written++;
		else
			c->faults++;
		if (c->written % 8 == 0 && store_write_wait(c->s, run_touch, NULL) < 0)
			c->faults++;
	}
	return NULL;
}

static void *crowd_read(void *arg)
{
	struct crowd *c = arg;
	struct tx *r = store_reader(c->s);
	struct arena *mine = arena_new();
	struct store_stats stats;
	while (!c->stop) {
		struct doc *docs;
		size_t n;
		int64_t count;
		tx_begin_read(r);
		if (tx_count(r, "crowd", STR("p"), &count) < 0 ||
		    tx_list(r, mine, "crowd", STR("p"), count, 10, &docs, &n) < 0 || n)
			c->faults++;
		tx_end_read(r);
		store_stats(c->s, &stats);
		store_identity_generation(c->s);
		arena_reset(mine);
	}
	arena_free(mine);
	store_reader_free(r);
	return NULL;
}

static void test_threads(void)
{
	struct crowd c = {.s = open_store(0)};
	pthread_t threads[6];
	int64_t count = 0;
	for (int i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, i < 4 ? crowd_write : crowd_read, &c);
	usleep(1000000);
	c.stop = true;
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	struct tx *r = store_reader(c.s);
	CHECK(tx_count(r, "crowd", STR("p"), &count) == 0 && count == c.written && c.written > 0 && c.faults == 0);
	store_reader_free(r);
	store_close(c.s);
	CHECK(check_store() == 0);
}

/* A text that PostgreSQL cannot store is not found, and that is no error. */
static void test_impossible_texts(void)
{
	struct store *s = open_store(0);
	struct tx *r = store_reader(s);
	struct doc got, bad = doc_of("t", "\xff", "", "", "{}");
	CHECK(tx_get(r, a, "group", (struct str){"1\0", 2}, &got) == -ENOENT);
	CHECK(tx_get(r, a, "group", STR("\xed\xa0\x80"), &got) == -ENOENT);
	CHECK(tx_get(r, a, "snap", STR("1"), &got) == 0);
	CHECK(store_write_wait(s, run_insert, &bad) == -EINVAL);
	store_reader_free(r);
	store_close(s);
}

#define NODES 3
#define NODE_WRITES 150
struct node_writer {
	struct store *s;
	atomic_int faults;
};

static int node_run(struct tx *tx, void *ctx)
{
	struct id id = id_new();
	struct doc d = {.kind = STR("node"), .id = id_str(&id), .parent = STR("p"), .body = STR("{}")};
	struct event e = {
	        .id = id_str(&id), .org_id = STR("nodes"), .type = STR("NODE"), .body = STR("{}"), .for_org = true};
	int64_t before, after;
	/* What was read before the write is still true after it. */
	int r = tx_count(tx, "node", STR("p"), &before);
	if (r == 0)
		r = tx_insert(tx, &d);
	if (r == 0)
		r = tx_event_add(tx, &e);
	if (r == 0)
		r = tx_count(tx, "node", STR("p"), &after);
	return r < 0 ? r : after == before + 1 ? 0 : -EINVAL;
}

static void *node_main(void *arg)
{
	struct node_writer *w = arg;
	for (int i = 0; i < NODE_WRITES; i++)
		w->faults += store_write_wait(w->s, node_run, NULL) != 0;
	return NULL;
}

/* Several stores play several processes: their batches run one after the other, and the chain stays valid. */
static void test_several_nodes(void)
{
	struct node_writer w[NODES];
	pthread_t threads[NODES * 2];
	int64_t count = 0, events = 0;
	for (int i = 0; i < NODES; i++)
		w[i] = (struct node_writer){.s = open_store(0)};
	for (int i = 0; i < NODES * 2; i++)
		pthread_create(&threads[i], NULL, node_main, &w[i % NODES]);
	for (int i = 0; i < NODES * 2; i++)
		pthread_join(threads[i], NULL);
	struct tx *r = store_reader(w[0].s);
	struct event_filter f = {.scope = STR("nodes"), .in_org = true};
	CHECK(w[0].faults + w[1].faults + w[2].faults == 0);
	CHECK(tx_count(r, "node", STR("p"), &count) == 0 && count == NODES * 2 * NODE_WRITES);
	CHECK(tx_event_count(r, &f, &events) == 0 && events == count);
	store_reader_free(r);
	for (int i = 0; i < NODES; i++)
		store_close(w[i].s);
	CHECK(check_store() == 0);
}

static int hosts_run(struct tx *tx, void *ctx)
{
	struct job bound = {.kind = STR("k"), .subject = STR("c1")}, loose = {.kind = STR("k"), .subject = STR("c2")};
	int r = tx_jobs_bind(tx, STR("c1"), STR_NONE);
	if (r == 0)
		r = tx_job_add(tx, &bound);
	return r < 0 ? r : tx_job_add(tx, &loose);
}

static int claim_run(struct tx *tx, void *ctx)
{
	return tx_job_claim(tx, a, STR("x"), STR_NONE, clock_now_ms(), 1000, ctx);
}

static int save_run(struct tx *tx, void *ctx)
{
	return tx_job_save(tx, ctx);
}

/* Work on a host is only for its node; the other jobs of a dead node go to another node, and the dead node's saves are
 * refused. */
static void test_job_hosts(void)
{
	struct store *s = open_store(0), *other = open_store(0);
	struct job taken = {0}, again = {0}, bound = {0}, none;
	store_binds_jobs(s, true);
	CHECK(store_write_wait(s, hosts_run, NULL) == 0);
	CHECK(store_write_wait(other, claim_run, &taken) == 0 && str_is(taken.subject, "c2") && taken.fence == 1);
	CHECK(store_write_wait(other, claim_run, &none) == -ENOENT);
	CHECK(store_write_wait(s, claim_run, &bound) == 0 && str_is(bound.subject, "c1") &&
	      str_is(bound.host, store_node(s)));
	CHECK(store_write_wait(s, claim_run, &none) == -ENOENT);
	store_close(other);
	CHECK(store_write_wait(s, claim_run, &again) == 0 && str_eq(again.id, taken.id) && again.fence == 2);
	CHECK(store_write_wait(s, save_run, &taken) == -ESTALE && store_write_wait(s, save_run, &again) == 0);
	store_close(s);
}

/* kill -9. Each write makes two documents, a reference and an event, or nothing. */
#define PAIRS_UNDER_WAY 32
struct pair {
	struct write w;
	struct id id, twin;
	struct store *s;
	int pipe;
};

static int pair_run(struct tx *tx, void *ctx)
{
	struct pair *p = ctx;
	struct doc d = {.kind = STR("pair"),
	                .id = id_str(&p->id),
	                .parent = STR("p"),
	                .name = id_str(&p->twin),
	                .body = STR("{}")};
	struct event e = {.id = id_str(&p->id), .type = STR("PAIR"), .body = STR("{}"), .created_ms = 1};
	int r = tx_insert(tx, &d);
	d.kind = STR("twin");
	d.id = id_str(&p->twin);
	d.name = STR_NONE;
	if (r == 0)
		r = tx_insert(tx, &d);
	if (r == 0)
		r = tx_ref_put(tx, "pair", id_str(&p->twin), id_str(&p->id));
	return r < 0 ? r : tx_event_add(tx, &e);
}

static void pair_done(void *ctx, int result)
{
	struct pair *p = ctx;
	if (result < 0 || write(p->pipe, p->id.z, ID_LEN) != ID_LEN)
		_exit(3);
	p->id = id_new();
	p->twin = id_new();
	if (!store_write(p->s, &p->w))
		_exit(4);
}

static void crash_child(int out)
{
	static struct pair pairs[PAIRS_UNDER_WAY];
	/* Random bytes drawn before the fork would be the same in parent and child. */
	for (int i = 0; i < 64; i++)
		id_new();
	struct store *s = open_store(0);
	for (int i = 0; i < PAIRS_UNDER_WAY; i++) {
		pairs[i] = (struct pair){.w = {.run = pair_run, .done = pair_done, .ctx = &pairs[i]},
		                         .id = id_new(),
		                         .twin = id_new(),
		                         .s = s,
		                         .pipe = out};
		if (!store_write(s, &pairs[i].w))
			_exit(5);
	}
	for (;;)
		pause();
}

static void crash_round(char **acknowledged, size_t *count, int round)
{
	int ends[2];
	if (pipe(ends) < 0)
		exit(1);
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		crash_child(ends[1]);
	}
	close(ends[1]);
	size_t start = *count, wait_for = (size_t)(round * 37 % 400) * ID_LEN + 1;
	char chunk[ID_LEN * 128];
	ssize_t n;
	bool killed = false;
	while ((n = read(ends[0], chunk, sizeof chunk)) > 0) {
		*acknowledged = must_realloc(*acknowledged, *count + (size_t)n);
		memcpy(*acknowledged + *count, chunk, (size_t)n);
		*count += (size_t)n;
		if (!killed && *count - start >= wait_for) {
			usleep((useconds_t)(round * 7919 % 5000));
			kill(pid, SIGKILL);
			killed = true;
		}
	}
	close(ends[0]);
	int status = 0;
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(*count % ID_LEN == 0);
}

static void test_crashes(void)
{
	char *acknowledged = NULL;
	size_t count = 0, lost = 0;
	int64_t pairs, twins;
	struct doc got;
	struct str id;
	for (int round = 0; round < 20; round++) {
		crash_round(&acknowledged, &count, round);
		CHECK(check_store() == 0);
		struct store *s = open_store(0);
		struct tx *r = store_reader(s);
		for (size_t i = 0; i < count; i += ID_LEN) {
			bool whole = tx_get(r, a, "pair", (struct str){acknowledged + i, ID_LEN}, &got) == 0 &&
			             tx_ref_get(r, a, "pair", got.name, &id) == 0 &&
			             tx_get(r, a, "twin", got.name, &got) == 0;
			lost += !whole;
		}
		arena_reset(a);
		CHECK(tx_count(r, "pair", STR("p"), &pairs) == 0 && tx_count(r, "twin", STR("p"), &twins) == 0 &&
		      pairs == twins);
		CHECK((size_t)pairs >= count / ID_LEN);
		store_reader_free(r);
		store_close(s);
	}
	CHECK(lost == 0 && count > 0);
	printf("20 kills: %zu acknowledged writes, %zu lost\n", count / ID_LEN, lost);
	free(acknowledged);
}

int main(void)
{
	snprintf(dir, sizeof dir, "/tmp/steward-store-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	log_setup(LOG_WARN, false);
	a = arena_new();
	remote = getenv("TEST_STORE_URL");
	test_crashes();
	dir_clear();
	if (remote) {
		struct store *s = open_store(0);
		CHECK(store_write_wait(s, run_wipe, NULL) == 0);
		store_close(s);
		CHECK(check_store() == 0);
	}
	test_documents();
	test_rows();
	test_lists();
	test_damaged_list();
	test_walk();
	test_own_changes();
	test_fresh_reads();
	test_batches();
	test_neighbours();
	test_get_many();
	test_read_ahead();
	test_wide();
	test_snapshot_and_generation();
	if (!remote) {
		test_full_disk();
		test_copy_and_check();
		test_refusals();
	} else {
		test_impossible_texts();
		test_several_nodes();
		test_job_hosts();
	}
	test_threads();
	test_answers(); /* last: the clock stays virtual */
	arena_free(a);
	dir_clear();
	rmdir(dir);
	return CHECK_DONE();
}

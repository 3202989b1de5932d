/* Books over time. The store keeps every book that was ever in force with the day from which on it is, so that what was
 * metered under one is charged by it, whatever the operator's file says today. In memory they are an array that is
 * replaced as a whole and never freed while the service runs: readers take no lock. */
#include "prices/prices.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "store/store.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define BOOK_KIND "price_book"
#define BOOK_PARENT STR("service")
#define BOOK_BYTES_MAX (8u << 20)
#define DAY_MS INT64_C(86400000)

struct version {
	int64_t from_ms;
	struct price_book book;
};

struct versions {
	struct version *list; /* oldest first; at least one */
	size_t count;
};

struct prices {
	struct store *store;
	const char *file;
	struct arena *arena; /* of all that was ever read */
	_Atomic(struct versions *) now;
};

/* --- the file */

static int file_read(struct arena *a, const char *path, struct str *ret_text)
{
	FILE *f = fopen(path, "rbe");
	char *bytes = f ? arena_alloc(a, BOOK_BYTES_MAX + 1) : NULL;
	size_t n = f ? fread(bytes, 1, BOOK_BYTES_MAX + 1, f) : 0;
	int r = !f ? -errno : ferror(f) ? -EIO : n > BOOK_BYTES_MAX ? -EFBIG : 0;
	if (r < 0)
		fprintf(stderr, "steward: --price-book %s: %s\n", path, r == -EFBIG ? "more than 8 MB" : strerror(-r));
	if (f)
		fclose(f);
	*ret_text = (struct str){bytes, n};
	return r;
}

/* The book that is to hold. One that ships is known to be good. */
static int book_read(struct arena *a, const char *file, json_t **ret_book)
{
	const char *why = NULL;
	struct price_book book;
	struct str text = price_book_standard();
	int r = file ? file_read(a, file, &text) : 0;
	if (r < 0)
		return r;
	*ret_book = price_book_load(a, text, &why);
	r = !*ret_book ? -EINVAL : file ? price_book_take(a, *ret_book, &book, &why) : 0;
	if (r < 0)
		fprintf(stderr, "steward: --price-book %s: %s\n", file ? file : "(standard)", why);
	return r;
}

/* --- the store */

struct keeping {
	struct arena *arena;
	json_t *book;
};

static int docs_load(struct tx *tx, struct arena *a, struct doc **ret_docs, size_t *ret_count)
{
	*ret_count = 0;
	return tx_list_all(tx, a, BOOK_KIND, BOOK_PARENT, ret_docs, ret_count);
}

static int64_t tomorrow(void)
{
	int64_t now = clock_now_ms();
	return now - now % DAY_MS + DAY_MS;
}

/* A book that was to begin tomorrow and never did is replaced. */
static int keep_run(struct tx *tx, void *ctx)
{
	const struct keeping *k = ctx;
	struct doc *docs;
	size_t count;
	int r = docs_load(tx, k->arena, &docs, &count);
	if (r < 0)
		return r;
	json_t *last = count ? doc_json(k->arena, docs[count - 1].body) : NULL;
	if (last && json_equal(json_object_get(last, "book"), k->book))
		return 0;
	int64_t from = count ? tomorrow() : 0;
	struct str book = json_text(k->arena, k->book);
	struct str body = arena_printf(k->arena, "{\"from\":%lld,\"book\":%.*s}", (long long)from, STR_ARG(book));
	if (last && count > 1 && json_number(last, "from") >= from) {
		docs[count - 1].body = body;
		return tx_update(tx, &docs[count - 1]);
	}
	struct doc d = doc_new(k->arena, BOOK_KIND, BOOK_PARENT, STR_NONE, body);
	return tx_insert(tx, &d);
}

static int versions_read(struct prices *p, struct tx *tx, struct versions *v)
{
	struct doc *docs;
	size_t count;
	const char *why;
	int r = docs_load(tx, p->arena, &docs, &count);
	v->list = arena_new_array(p->arena, struct version, count + 1);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const json_t *body = doc_json(p->arena, docs[i].body);
		v->list[i].from_ms = json_number(body, "from");
		r = price_book_take(p->arena, json_object_get(body, "book"), &v->list[i].book, &why);
		if (r < 0)
			log_error("price book: one that was in force cannot be read: %s", why);
		v->count++;
	}
	return r;
}

static int versions_load(struct prices *p)
{
	struct versions *v = arena_new_of(p->arena, struct versions);
	struct tx *reader = store_reader(p->store);
	if (!reader)
		return -EIO;
	tx_begin_read(reader);
	int r = versions_read(p, reader, v);
	tx_end_read(reader);
	tx_rest(reader);
	store_reader_free(reader);
	if (r == 0)
		atomic_store(&p->now, v);
	return r;
}

int prices_reload(struct prices *p)
{
	struct arena *a = arena_new();
	struct keeping k = {.arena = a};
	int r = book_read(a, p->file, &k.book);
	if (r == 0)
		r = store_write_wait(p->store, keep_run, &k);
	arena_free(a);
	return r < 0 ? r : versions_load(p);
}

static int standard_take(struct prices *p)
{
	struct versions *v = arena_new_of(p->arena, struct versions);
	const char *why;
	v->list = arena_new_of(p->arena, struct version);
	v->count = 1;
	int r = price_book_parse(p->arena, price_book_standard(), &v->list->book, &why);
	if (r == 0)
		atomic_store(&p->now, v);
	return r;
}

int prices_read(struct store *store, struct prices **ret_prices)
{
	struct prices *p = must_calloc(1, sizeof *p);
	p->store = store;
	p->arena = arena_new();
	int r = versions_load(p);
	if (r == 0 && !atomic_load(&p->now)->count)
		r = standard_take(p);
	if (r < 0)
		prices_close(p);
	else
		*ret_prices = p;
	return r;
}

int prices_open(struct store *store, const char *file, struct prices **ret_prices)
{
	struct prices *p = must_calloc(1, sizeof *p);
	p->store = store;
	p->file = file;
	p->arena = arena_new();
	int r = prices_reload(p);
	if (r < 0)
		prices_close(p);
	else
		*ret_prices = p;
	return r;
}

void prices_close(struct prices *p)
{
	if (!p)
		return;
	arena_free(p->arena);
	free(p);
}

const struct price_book *prices_at(const struct prices *p, int64_t day_ms)
{
	const struct versions *v = atomic_load(&p->now);
	size_t i = v->count - 1;
	while (i > 0 && v->list[i].from_ms > day_ms)
		i--;
	return &v->list[i].book;
}

const struct price_book *prices_newest(const struct prices *p)
{
	const struct versions *v = atomic_load(&p->now);
	return &v->list[v->count - 1].book;
}

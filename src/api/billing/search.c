/* A search over the lines of an invoice. What filters look at is kept beside the lines, in a short form; of the lines
 * themselves only those of the page are read. */
#include "api/billing/pages.h"
#include "api/kit/verbs.h"

#include "base/clock.h"
#include "call/service.h"
#include "gate/dispatch.h"

#include <errno.h>
#include <stdlib.h>

#define DOCS_AT_ONCE 16

struct search {
	struct call *call;
	const json_t *filters, *groups, *clusters, *services;
	int64_t usage_from, usage_to, bill_from, bill_to; /* ends excluded; 0: any */
	bool zeros, by_price, descending;
	/* What was found: which document, which line of it. */
	struct found {
		int64_t doc, cents, day;
		uint32_t line;
		bool open;
	} * list;
	size_t count, room;
};

static int date_read(struct call *c, const json_t *filters, const char *name, int64_t more, int64_t *ret_ms)
{
	struct str text = json_field(filters, name);
	if (text.n && !clock_parse(text, ret_ms))
		return call_fail_fault(c, arena_printf(c->arena, "filters.%s", name), "must be a date");
	if (text.n)
		*ret_ms += more;
	return 0;
}

static int order_check(struct call *c, const char *from, const char *to, int64_t from_ms, int64_t to_ms)
{
	if (!from_ms || !to_ms || from_ms < to_ms)
		return 0;
	return call_fail_fault(c, arena_printf(c->arena, "filters.%s", from), "must not be after %s", to);
}

json_t *filter_of(struct arena *a, const json_t *list)
{
	json_t *filter = json_array_size(list) ? json_new(a) : NULL;
	for (size_t i = 0; i < json_array_size(list); i++)
		json_put(filter, json_string_value(json_array_get(list, i)), json_true());
	return filter;
}

bool filter_has(const json_t *filter, struct str value)
{
	char key[64]; /* ids, and names of services */
	if (!filter)
		return true;
	str_copy(value, key, sizeof key);
	return json_object_get(filter, key);
}

/* Both dates of a period belong to it. */
static int search_read(struct call *c, struct search *s)
{
	const json_t *f = s->filters = json_object_get(c->body, "filters");
	s->groups = filter_of(c->arena, json_object_get(f, "groupIds"));
	s->clusters = filter_of(c->arena, json_object_get(f, "clusterIds"));
	s->services = filter_of(c->arena, json_object_get(f, "skuServices"));
	s->zeros = json_flag(f, "includeZeroCentLineItems");
	s->by_price = str_is(json_field(c->body, "sortField"), "TOTAL_PRICE_CENTS");
	s->descending = str_is(json_field(c->body, "sortOrder"), "DESCENDING");
	int r = date_read(c, f, "usageStartDate", 0, &s->usage_from);
	if (r == 0)
		r = date_read(c, f, "usageEndDate", DAY_MS, &s->usage_to);
	if (r == 0)
		r = date_read(c, f, "billStartDate", 0, &s->bill_from);
	if (r == 0)
		r = date_read(c, f, "billEndDate", DAY_MS, &s->bill_to);
	if (r == 0)
		r = order_check(c, "usageStartDate", "usageEndDate", s->usage_from, s->usage_to);
	return r < 0 ? r : order_check(c, "billStartDate", "billEndDate", s->bill_from, s->bill_to);
}

static bool in_period(int64_t at, int64_t from, int64_t to)
{
	return (!from || at >= from) && (!to || at < to);
}

/* A line is billed on the day after the one that it is about, when that is over. */
static bool key_fits(const struct search *s, const json_t *key, int64_t cents, int64_t day)
{
	return (s->zeros || cents) && filter_has(s->groups, json_item(key, 0)) &&
	       filter_has(s->clusters, json_item(key, 1)) && filter_has(s->services, json_item(key, 2)) &&
	       in_period(day, s->usage_from, s->usage_to) &&
	       in_period(meter_day(day) + DAY_MS, s->bill_from, s->bill_to);
}

static void doc_search(struct search *s, const json_t *keys, int64_t number, bool open)
{
	const json_t *key;
	size_t i;
	json_array_foreach(keys, i, key)
	{
		int64_t cents = json_integer_value(json_array_get(key, 3)),
		        day = json_integer_value(json_array_get(key, 7));
		if (!key_fits(s, key, cents, day))
			continue;
		ARENA_FIT(s->call->arena, s->list, s->count, s->room);
		s->list[s->count++] = (struct found){number, cents, day, (uint32_t)i, open};
	}
}

static int kind_search(struct search *s, struct str invoice_id, bool open)
{
	struct arena *a = arena_new();
	struct doc *docs;
	size_t count = 1;
	int r = 0;
	for (int64_t at = 0; r == 0 && count; at += (int64_t)count) {
		count = 0;
		r = tx_list(s->call->tx, a, open ? OPEN_KIND : LINES_KIND, invoice_id, at, DOCS_AT_ONCE, &docs, &count);
		for (size_t i = 0; r == 0 && i < count; i++)
			doc_search(s, json_object_get(doc_json(a, docs[i].secret), "keys"), at + (int64_t)i, open);
		arena_reset(a);
	}
	arena_free(a);
	return r;
}

static int place_compare(const struct found *x, const struct found *y)
{
	if (x->open != y->open)
		return x->open ? 1 : -1;
	if (x->doc != y->doc)
		return x->doc < y->doc ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static int by_day(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	return x->day != y->day ? (x->day < y->day ? -1 : 1) : place_compare(x, y);
}

static int by_cents(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	return x->cents != y->cents ? (x->cents < y->cents ? -1 : 1) : place_compare(x, y);
}

static void search_sort(struct search *s)
{
	if (s->count)
		qsort(s->list, s->count, sizeof *s->list, s->by_price ? by_cents : by_day);
	for (size_t i = 0; s->descending && i < s->count / 2; i++) {
		struct found other = s->list[i];
		s->list[i] = s->list[s->count - 1 - i];
		s->list[s->count - 1 - i] = other;
	}
}

static struct str description_of(const struct call *c, int64_t day, const json_t *line)
{
	const struct sku *sku = price_book_sku(prices_at(c->service->prices, day), json_field(line, "sku"));
	struct str note = json_field(line, "note");
	return sku && sku->description.n ? sku->description : note.n ? note : json_field(line, "sku");
}

static void found_write(struct call *c, const struct found *f, const json_t *line)
{
	static const char *const same[] = {"cloudProvider", "clusterName",     "groupId",
	                                   "quantity",      "totalPriceCents", "unitPriceDollars"};
	json_t *out = json_new(c->arena);
	json_copy_fields(out, line, same, sizeof same / sizeof *same);
	json_put_time(out, "billDate", meter_day(f->day) + DAY_MS);
	json_put_str(out, "description", description_of(c, f->day, line));
	json_put_time(out, "usageDate", f->day);
	json_raw(&c->out, json_text(c->arena, out));
}

/* The lines of a page may be in as many documents, of which one at a time is held. */
static int page_write(struct search *s, struct str invoice_id, size_t from, size_t to)
{
	struct call *c = s->call;
	struct arena *a = arena_new();
	const json_t *items = NULL;
	const struct found *last = NULL;
	int r = 0;
	for (size_t i = from; r == 0 && i < to; i++) {
		const struct found *f = &s->list[i];
		if (!last || last->doc != f->doc || last->open != f->open) {
			struct doc *doc;
			size_t count = 0;
			arena_reset(a);
			r = tx_list(c->tx, a, f->open ? OPEN_KIND : LINES_KIND, invoice_id, f->doc, 1, &doc, &count);
			items = r == 0 && count ? json_object_get(doc_json(a, doc->body), "items") : NULL;
			last = f;
		}
		if (r == 0)
			found_write(c, f, json_array_get(items, f->line));
	}
	arena_free(a);
	return r;
}

int billing_lines_search(struct call *c)
{
	struct search s = {.call = c};
	struct invoice i;
	int r = invoice_of_path(c, &i);
	if (r == 0)
		r = search_read(c, &s);
	if (r < 0 || call_takes_long(c, json_number(i.state, "lines")))
		return r;
	r = kind_search(&s, i.doc.id, false);
	if (r == 0)
		r = kind_search(&s, i.doc.id, true);
	if (r < 0)
		return r;
	search_sort(&s);
	size_t from = (size_t)list_offset(c), to = from + (size_t)c->page_size;
	from = from < s.count ? from : s.count;
	to = to < s.count ? to : s.count;
	list_begin(c);
	r = page_write(&s, i.doc.id, from, to);
	list_end(c, (int64_t)s.count, to < s.count);
	return r;
}

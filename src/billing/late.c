/* What a host told only after its day was billed. Such days are noted in the invoice ("unsettled"); once the host is
 * back, what the meter has of them by then is held against the lines, and what is missing becomes lines of the invoice
 * that is open now. */
#include "billing/billing.h"

#include "base/clock.h"

#include <errno.h>

#define DOCS_AT_ONCE 16

struct late {
	struct arena *arena;
	const struct billing_run *run;
	struct invoice from, to; /* the invoice of the day, and the open one; the same, perhaps */
	int64_t day_ms;
	json_t *billed; /* {"CLUSTER/SKU/REGION": parts} */
	json_t *tiers;  /* of the day's month, with what came late */
	struct bill_line *lines;
	size_t count;
	int64_t cents;
};

static const char *key_of(struct arena *a, struct str cluster, struct str sku, struct str region)
{
	return arena_printf(a, "%.*s/%.*s/%.*s", STR_ARG(cluster), STR_ARG(sku), STR_ARG(region)).p;
}

static void doc_add(struct late *l, const struct doc *d)
{
	const json_t *keys = json_object_get(doc_json(l->arena, d->secret), "keys"), *key;
	size_t i;
	json_array_foreach(keys, i, key)
	{
		if (json_integer_value(json_array_get(key, 7)) != l->day_ms)
			continue;
		const char *name = key_of(l->arena, json_item(key, 1), json_item(key, 4), json_item(key, 5));
		int64_t parts = json_integer_value(json_array_get(key, 6));
		json_put(l->billed, name, json_integer(json_number(l->billed, name) + parts));
	}
}

/* Lines of the day: of its own invoice, and those that came late into the open one. */
static int billed_read(struct late *l, struct str invoice_id)
{
	struct doc *docs;
	size_t count = 1;
	int r = 0;
	for (int64_t at = 0; r == 0 && count; at += (int64_t)count) {
		count = 0;
		r = tx_list(l->run->reader, l->arena, LINES_KIND, invoice_id, at, DOCS_AT_ONCE, &docs, &count);
		for (size_t i = 0; r == 0 && i < count; i++)
			doc_add(l, &docs[i]);
	}
	return r;
}

/* Leaves of each row what was not billed; rows of which all was go. */
static size_t rows_left(const struct late *l, struct usage *rows, size_t count)
{
	size_t left = 0;
	for (size_t i = 0; i < count; i++) {
		const char *name = key_of(l->arena, rows[i].cluster_id, rows[i].sku, rows[i].region);
		rows[i].quantity -= json_number(l->billed, name);
		if (rows[i].quantity > 0)
			rows[left++] = rows[i];
	}
	return left;
}

static int lines_read(struct late *l)
{
	struct usage *rows;
	size_t count = 0;
	int64_t carry = 0;
	struct bill_state state = {.tiers = json_clone(l->arena, json_object_get(l->from.state, "tiers"))};
	l->billed = json_new(l->arena);
	int r = billed_read(l, l->from.doc.id);
	if (r == 0 && !str_eq(l->from.doc.id, l->to.doc.id))
		r = billed_read(l, l->to.doc.id);
	if (r == 0)
		r = meter_usage(l->run->reader, l->arena, l->from.doc.parent, l->day_ms, l->day_ms + DAY_MS, &rows,
		                &count);
	if (r < 0)
		return r;
	count = rows_left(l, rows, count);
	l->tiers = state.tiers;
	l->count = lines_make(l->arena, l->run->prices, l->from.doc.parent, rows, count, l->day_ms + DAY_MS, &state,
	                      &l->lines);
	for (size_t i = 0; i < l->count; i++)
		l->lines[i].note = arena_printf(l->arena, "late; %.*s", STR_ARG(l->lines[i].note));
	l->cents = lines_cents(l->arena, l->lines, l->count, &carry);
	return 0;
}

static void day_forget(json_t *state, int64_t day_ms)
{
	json_t *list = json_object_get(state, "unsettled");
	for (size_t i = json_array_size(list); i-- > 0;)
		if (json_integer_value(json_array_get(list, i)) == day_ms)
			json_array_remove(list, i);
	if (!json_array_size(list))
		json_object_del(state, "unsettled");
}

static int lines_add(struct tx *tx, const struct late *l, struct invoice *to)
{
	size_t docs = 0;
	struct doc *list = lines_docs(l->arena, LINES_KIND, to->doc.id, l->lines, l->count, l->run->now_ms, &docs);
	json_put(to->state, "frozen", json_integer(json_number(to->state, "frozen") + l->cents));
	json_put(to->state, "lines", json_integer(json_number(to->state, "lines") + (int64_t)l->count));
	int r = 0;
	for (size_t i = 0; r == 0 && i < docs; i++)
		r = tx_insert(tx, &list[i]);
	return r < 0 ? r : invoice_sum(tx, l->arena, l->run->prices, to, json_number(to->state, "open"), false);
}

static int late_run(struct tx *tx, void *ctx)
{
	const struct late *l = ctx;
	struct invoice from, to;
	bool same = str_eq(l->from.doc.id, l->to.doc.id);
	int r = invoice_get(tx, l->arena, l->from.doc.id, &from);
	if (r == 0)
		r = invoice_get(tx, l->arena, l->to.doc.id, &to);
	if (r == 0 && (from.doc.rev != l->from.doc.rev || to.doc.rev != l->to.doc.rev))
		r = -ESTALE;
	if (r < 0)
		return r;
	struct invoice *open = same ? &from : &to;
	day_forget(from.state, l->day_ms);
	json_put(from.state, "tiers", json_deep_copy(l->tiers));
	if (l->count)
		r = lines_add(tx, l, open);
	if (r == 0)
		r = invoice_save(tx, l->arena, &from, l->run->now_ms);
	return r == 0 && !same && l->count ? invoice_save(tx, l->arena, &to, l->run->now_ms) : r;
}

/* The next day of an invoice that is settled by now. -ENOENT: there is none. */
static int day_find(struct late *l, struct str org_id, int64_t settled_ms)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(l->run->reader, l->arena, INVOICE_KIND, org_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct invoice one = invoice_of(l->arena, &docs[i]);
		const json_t *day, *list = json_object_get(one.state, "unsettled");
		size_t k;
		json_array_foreach(list, k, day)
		{
			l->day_ms = json_integer_value(day);
			l->from = one;
			if (settled_ms >= l->day_ms + DAY_MS)
				return 0;
		}
	}
	return r < 0 ? r : -ENOENT;
}

static int late_once(const struct billing_run *run, struct arena *a, struct str org_id)
{
	struct late l = {.arena = a, .run = run};
	int64_t settled = 0;
	tx_begin_read(run->reader);
	int r = meter_settled(run->reader, a, org_id, &settled);
	if (r == 0)
		r = day_find(&l, org_id, settled);
	if (r == 0)
		r = invoice_last(run->reader, a, org_id, &l.to);
	if (r == 0 && !invoice_is(&l.to, "PENDING"))
		r = -ENOENT;
	if (r == 0)
		r = lines_read(&l);
	tx_end_read(run->reader);
	tx_rest(run->reader);
	return r < 0 ? r : store_write_wait(run->store, late_run, &l);
}

int invoices_late(const struct billing_run *run, struct str org_id)
{
	struct arena *a = arena_new();
	int r = 0;
	while (r == 0 || r == -ESTALE) {
		r = late_once(run, a, org_id);
		arena_reset(a);
	}
	arena_free(a);
	return r == -ENOENT ? 0 : r;
}

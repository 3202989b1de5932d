/* An organization's invoices, brought up to date: days that are over become lines for good, the day that is not over is
 * made anew, months that are over are closed.
 *
 * What was metered is read and made into lines outside of the write; the write holds the invoice against the revision
 * that was read, so that of two processes, or of one that was killed and its successor, one bills a day. */
#include "billing/billing.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>

#define MONTHS_BACK INT64_C(24) /* that the first invoice may begin before now */
#define MANY_LINES 5000         /* of a day: then days are read one by one */
#define WAIT_MS DAY_MS          /* for a host that is away; what it tells later is a correction */
#define UNSETTLED_MAX 62        /* days that are looked at again */
#define SETTLE_MS (HOUR_MS / 6) /* after a day: what began before its end may be told of a little later */

bool invoice_is(const struct invoice *i, const char *status)
{
	return str_is(json_field(i->body, "statusName"), status);
}

struct invoice invoice_of(struct arena *a, const struct doc *d)
{
	struct invoice i = {.doc = *d, .body = doc_json(a, d->body), .state = doc_json(a, d->secret)};
	if (!clock_parse(json_field(i.body, "startDate"), &i.from_ms) ||
	    !clock_parse(json_field(i.body, "endDate"), &i.to_ms))
		log_error("invoice %.*s: its dates cannot be read", STR_ARG(d->id));
	return i;
}

int invoice_get(struct tx *tx, struct arena *a, struct str id, struct invoice *ret_invoice)
{
	struct doc d;
	int r = tx_get(tx, a, INVOICE_KIND, id, &d);
	if (r == 0)
		*ret_invoice = invoice_of(a, &d);
	return r;
}

int invoice_last(struct tx *tx, struct arena *a, struct str org_id, struct invoice *ret_invoice)
{
	struct doc *docs;
	int64_t count;
	size_t got = 0;
	int r = tx_count(tx, INVOICE_KIND, org_id, &count);
	if (r == 0 && count)
		r = tx_list(tx, a, INVOICE_KIND, org_id, count - 1, 1, &docs, &got);
	if (r < 0 || !got)
		return r < 0 ? r : -ENOENT;
	*ret_invoice = invoice_of(a, &docs[0]);
	return 0;
}

int invoice_save(struct tx *tx, struct arena *a, struct invoice *i, int64_t now_ms)
{
	json_put_time(i->body, "updated", now_ms);
	i->doc.body = json_text(a, i->body);
	i->doc.secret = json_text(a, i->state);
	int r = tx_update(tx, &i->doc);
	i->doc.rev += r == 0;
	return r;
}

/* --- credits, tax, what is billed */

struct taking {
	int64_t left, taken;
	bool takes;
};

static int credit_take(struct tx *tx, struct arena *a, const struct doc *d, int64_t at_ms, struct taking *t)
{
	json_t *body = doc_json(a, d->body);
	int64_t remaining = json_number(body, "remaining"), from = json_number(body, "from"),
	        to = json_number(body, "to");
	if (at_ms < from || (to && at_ms >= to) || t->left <= 0 || remaining <= 0)
		return 0;
	int64_t part = remaining < t->left ? remaining : t->left;
	t->left -= part;
	t->taken += part;
	if (!t->takes)
		return 0;
	struct doc changed = *d;
	json_put(body, "remaining", json_integer(remaining - part));
	changed.body = json_text(a, body);
	return tx_update(tx, &changed);
}

/* Credits of the price book become documents, so that what is left of them is known. */
static int book_credits(struct tx *tx, struct arena *a, const struct price_org *org, struct str org_id)
{
	int r = 0;
	for (size_t i = 0; r == 0 && org && i < org->credit_count; i++) {
		const struct price_credit *c = &org->credits[i];
		struct doc d;
		r = tx_get_by_name(tx, a, CREDIT_KIND, org_id, c->id, &d);
		if (r != -ENOENT)
			continue;
		json_t *body = json_new(a);
		json_put(body, "cents", json_integer(c->cents));
		json_put(body, "remaining", json_integer(c->cents));
		json_put(body, "from", json_integer(c->from_ms));
		json_put(body, "to", json_integer(c->to_ms));
		json_put_str(body, "note", c->note);
		d = doc_new(a, CREDIT_KIND, org_id, c->id, json_text(a, body));
		r = tx_insert(tx, &d);
	}
	return r;
}

static int credits_take(struct tx *tx, struct arena *a, const struct invoice *i, struct taking *t)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, CREDIT_KIND, i->doc.parent, &docs, &count);
	for (size_t k = 0; r == 0 && k < count; k++)
		r = credit_take(tx, a, &docs[k], i->to_ms - 1, t);
	return r;
}

static void cents_put(json_t *body, const char *name, int64_t cents)
{
	json_put(body, name, json_integer(cents));
}

static json_t *party_json(const struct price_party *p)
{
	json_t *party = json_object(), *address = json_array();
	if (p->name.n)
		json_put_str(party, "name", p->name);
	for (size_t i = 0; i < p->address_count; i++)
		json_add_str(address, p->address[i]);
	json_put(party, "address", address);
	if (p->tax_id.n)
		json_put_str(party, "taxId", p->tax_id);
	return party;
}

/* Who writes the invoice, to whom, and when it is due: as the book of the month's last day has it, and the name that
 * the organization has while the month is open. A closed invoice keeps what it says. */
static int papers_put(struct tx *tx, struct arena *a, const struct price_book *book, const struct price_org *org,
                      struct invoice *i)
{
	struct doc d;
	json_t *customer = party_json(org ? &org->customer : &(struct price_party){.name = STR_NONE});
	int r = json_field(customer, "name").n ? -ENOENT : tx_get(tx, a, "org", i->doc.parent, &d);
	if (r == 0)
		json_put_str(customer, "name", json_field(doc_json(a, d.body), "name"));
	else if (!json_field(customer, "name").n) /* an organization that is gone keeps the name that it had */
		json_put_str(customer, "name", json_field(json_object_get(i->state, "customer"), "name"));
	json_put(i->state, "issuer", party_json(&book->issuer));
	json_put(i->state, "customer", customer);
	json_put(i->state, "due", json_integer(i->to_ms + book->due_days * DAY_MS));
	return r == -ENOENT ? 0 : r;
}

int invoice_sum(struct tx *tx, struct arena *a, const struct prices *prices, struct invoice *i, int64_t open_cents,
                bool takes)
{
	const struct price_book *book = prices ? prices_at(prices, i->to_ms - DAY_MS) : NULL;
	const struct price_org *org = book ? price_book_org(book, i->doc.parent) : NULL;
	int64_t subtotal = json_number(i->state, "frozen") + open_cents;
	struct taking t = {.left = subtotal, .takes = takes};
	int r = book_credits(tx, a, org, i->doc.parent);
	if (r == 0)
		r = credits_take(tx, a, i, &t);
	if (r < 0)
		return r;
	if (book) {
		json_put_str(i->state, "currency", book->currency);
		json_put(i->state, "taxPpm", json_integer(price_tax(book, org)));
		r = papers_put(tx, a, book, org, i);
		if (r < 0)
			return r;
	}
	int64_t net = subtotal - t.taken, ppm = json_number(i->state, "taxPpm");
	int64_t tax = net > 0 ? (int64_t)((money_times(net, ppm) + 500000) / 1000000) : 0;
	cents_put(i->body, "subtotalCents", subtotal);
	cents_put(i->body, "creditsCents", t.taken);
	cents_put(i->body, "salesTaxCents", tax);
	cents_put(i->body, "amountBilledCents", net > 0 ? net + tax : 0);
	cents_put(i->state, "open", open_cents);
	return 0;
}

/* --- a new one */

static int unpaid_sum(struct tx *tx, struct arena *a, struct str org_id, int64_t *ret_cents)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, INVOICE_KIND, org_id, &docs, &count);
	*ret_cents = 0;
	for (size_t k = 0; r == 0 && k < count; k++) {
		const json_t *body = doc_json(a, docs[k].body);
		if (str_is_one_of("CLOSED|FAILED|INVOICED", json_field(body, "statusName")))
			*ret_cents += json_number(body, "amountBilledCents") - json_number(body, "amountPaidCents");
	}
	return r;
}

static int invoice_insert(struct tx *tx, struct arena *a, struct str org_id, int64_t month_ms, int64_t now_ms)
{
	char month[METER_MONTH];
	int64_t from, to, owed;
	json_t *body = json_new(a), *state = json_new(a);
	static const char *const zeros[] = {"amountBilledCents", "amountPaidCents", "creditsCents", "salesTaxCents",
	                                    "subtotalCents"};
	int r = unpaid_sum(tx, a, org_id, &owed);
	if (r < 0)
		return r;
	meter_month(month_ms, month, &from, &to);
	struct doc d = doc_new(a, INVOICE_KIND, org_id, arena_dup(a, str_of(month)), STR_NONE);
	json_put_time(body, "created", now_ms);
	json_put_time(body, "endDate", to);
	json_put_str(body, "id", d.id);
	json_put_str(body, "orgId", org_id);
	json_put_time(body, "startDate", from);
	json_put_z(body, "statusName", "PENDING");
	json_put_time(body, "updated", now_ms);
	cents_put(body, "startingBalanceCents", owed);
	for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
		cents_put(body, zeros[i], 0);
	json_put(state, "next", json_integer(from));
	json_put(state, "tiers", json_object());
	d.body = json_text(a, body);
	d.secret = json_text(a, state);
	return tx_insert(tx, &d);
}

struct creation {
	struct arena *arena;
	struct str org_id;
	int64_t month_ms, now_ms;
};

/* Unless another process was first. */
static int creation_run(struct tx *tx, void *ctx)
{
	const struct creation *c = ctx;
	char month[METER_MONTH];
	int64_t from, to;
	struct doc d;
	meter_month(c->month_ms, month, &from, &to);
	int r = tx_get_by_name(tx, c->arena, INVOICE_KIND, c->org_id, str_of(month), &d);
	return r != -ENOENT ? r : invoice_insert(tx, c->arena, c->org_id, from, c->now_ms);
}

/* The month of the first invoice: that of the organization, or the first one in which it had anything. */
static int first_month(const struct billing_run *run, struct arena *a, struct str org_id, int64_t *ret_ms)
{
	char month[METER_MONTH];
	int64_t now_from, from, to;
	struct doc org;
	struct usage *rows;
	size_t count = 0;
	meter_month(run->now_ms, month, &now_from, &to);
	int r = tx_get(run->reader, a, "org", org_id, &org);
	int64_t at = r == 0 ? org.created_ms : run->now_ms - MONTHS_BACK * 31 * DAY_MS;
	if (run->now_ms - at > MONTHS_BACK * 31 * DAY_MS)
		at = run->now_ms - MONTHS_BACK * 31 * DAY_MS;
	for (r = 0; r == 0; at = to) {
		meter_month(at, month, &from, &to);
		if (from >= now_from)
			break;
		r = meter_usage(run->reader, a, org_id, from, to, &rows, &count);
		if (r < 0 || count)
			break;
	}
	*ret_ms = from < now_from ? from : now_from;
	return r;
}

/* --- days */

/* What one write does. */
struct advance {
	struct arena *arena;
	const struct billing_run *run;
	struct invoice invoice;
	struct bill_state state;
	struct doc *lines;
	size_t line_docs, line_room;
	struct doc *open;
	size_t open_docs;
	int64_t open_cents;
	bool closes, changed;
};

static void day_freeze(struct advance *v, const struct usage *rows, size_t count, int64_t day_ms)
{
	struct bill_line *lines;
	size_t docs;
	struct arena *a = v->arena;
	json_t *state = v->invoice.state;
	size_t made =
	        lines_make(a, v->run->prices, v->invoice.doc.parent, rows, count, day_ms + DAY_MS, &v->state, &lines);
	int64_t cents = lines_cents(a, lines, made, &v->state.carry);
	struct doc *list = lines_docs(a, LINES_KIND, v->invoice.doc.id, lines, made, v->run->now_ms, &docs);
	for (size_t i = 0; i < docs; i++) {
		ARENA_FIT(a, v->lines, v->line_docs, v->line_room);
		v->lines[v->line_docs++] = list[i];
	}
	json_put(state, "frozen", json_integer(json_number(state, "frozen") + cents));
	json_put(state, "lines", json_integer(json_number(state, "lines") + (int64_t)made));
	json_put(state, "next", json_integer(day_ms + DAY_MS));
	/* A day on which nothing was had needs no write of its own. */
	v->changed |= made > 0;
}

/* A host was away when the day was billed: what it tells later is a correction. */
static void day_unsettled(struct advance *v, int64_t day_ms)
{
	json_t *list = json_default(v->invoice.state, "unsettled", json_array());
	if (json_array_size(list) < UNSETTLED_MAX)
		json_array_append_new(list, json_integer(day_ms));
}

/* Whether nobody is expected to tell more about the day. A host that is away is waited for, from the first look that
 * misses it: not from the end of the day, because the service itself may have been away. */
static bool day_is_settled(struct advance *v, int64_t end_ms, int64_t settled_ms)
{
	json_t *state = v->invoice.state;
	int64_t since = json_number(state, "waits");
	if (settled_ms >= end_ms) {
		json_object_del(state, "waits");
		return true;
	}
	if (!since) {
		json_put(state, "waits", json_integer(v->run->now_ms));
		v->changed = true;
	}
	return since && v->run->now_ms - since >= WAIT_MS;
}

/* Days that are over and have no lines yet, up to the end of the range that was read. */
static void days_freeze(struct advance *v, const struct usage *rows, size_t count, int64_t settled_ms, int64_t to_ms,
                        size_t *ret_used)
{
	int64_t day = json_number(v->invoice.state, "next");
	size_t at = 0;
	while (day + DAY_MS <= to_ms && v->run->now_ms - day >= DAY_MS + SETTLE_MS &&
	       day_is_settled(v, day + DAY_MS, settled_ms)) {
		size_t from = at;
		while (at < count && rows[at].day_ms <= day)
			at++;
		if (settled_ms < day + DAY_MS)
			day_unsettled(v, day);
		day_freeze(v, rows + from, at - from, day);
		day += DAY_MS;
	}
	*ret_used = at;
}

static void open_make(struct advance *v, const struct usage *rows, size_t count, int64_t to_ms)
{
	struct bill_state state = {.tiers = json_clone(v->arena, v->state.tiers), .carry = v->state.carry};
	struct bill_line *all = NULL, *lines;
	size_t total = 0;
	/* More than one day may wait for a host. */
	for (size_t from = 0, at = 0; from < count; from = at) {
		while (at < count && rows[at].day_ms == rows[from].day_ms)
			at++;
		size_t made = lines_make(v->arena, v->run->prices, v->invoice.doc.parent, rows + from, at - from, to_ms,
		                         &state, &lines);
		v->open_cents += lines_cents(v->arena, lines, made, &state.carry);
		all = arena_grow(v->arena, all, total, total + made, sizeof *all);
		memcpy(all + total, lines, made * sizeof *all);
		total += made;
	}
	v->open = lines_docs(v->arena, OPEN_KIND, v->invoice.doc.id, all, total, v->run->now_ms, &v->open_docs);
	v->changed |= v->open_docs || json_number(v->invoice.state, "open");
}

static int open_replace(struct tx *tx, const struct advance *v)
{
	struct doc *old;
	size_t count = 0;
	int r = tx_list_all(tx, v->arena, OPEN_KIND, v->invoice.doc.id, &old, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = tx_delete(tx, OPEN_KIND, old[i].id);
	for (size_t i = 0; r == 0 && i < v->open_docs; i++)
		r = tx_insert(tx, &v->open[i]);
	return r;
}

/* A retry starts from the beginning: what the write changes is copied first. */
static int advance_run(struct tx *tx, void *ctx)
{
	const struct advance *v = ctx;
	struct arena *a = v->arena;
	struct invoice i = v->invoice;
	struct doc now;
	i.body = json_clone(a, v->invoice.body);
	i.state = json_clone(a, v->invoice.state);
	int r = tx_get(tx, a, INVOICE_KIND, i.doc.id, &now);
	if (r == 0 && now.rev != i.doc.rev)
		r = -ESTALE;
	for (size_t k = 0; r == 0 && k < v->line_docs; k++)
		r = tx_insert(tx, &v->lines[k]);
	if (r == 0)
		r = open_replace(tx, v);
	if (r == 0)
		r = invoice_sum(tx, a, v->run->prices, &i, v->open_cents, v->closes);
	if (r == 0 && v->closes)
		r = payment_close(tx, a, v->run, &i);
	if (r == 0)
		r = invoice_save(tx, a, &i, v->run->now_ms);
	return r == 0 && v->closes ? invoice_insert(tx, a, i.doc.parent, i.to_ms, v->run->now_ms) : r;
}

/* How far is read at once: all that is missing, or a day of an invoice with many lines. */
static int64_t range_end(const struct invoice *i, int64_t now_ms)
{
	int64_t next = json_number(i->state, "next"), days = (next - i->from_ms) / DAY_MS,
	        to = i->to_ms < now_ms ? i->to_ms : now_ms;
	bool many = days && json_number(i->state, "lines") / days > MANY_LINES;
	return many && next + DAY_MS < to ? next + DAY_MS : to;
}

/* One write's worth. 1: there is more. */
static int advance_once(const struct billing_run *run, struct arena *a, struct str org_id)
{
	struct advance v = {.arena = a, .run = run};
	struct usage *rows = NULL;
	size_t count = 0, used = 0;
	int64_t settled = 0;
	tx_begin_read(run->reader);
	int r = invoice_last(run->reader, a, org_id, &v.invoice);
	if (r == 0 && !invoice_is(&v.invoice, "PENDING"))
		r = -ENOENT;
	int64_t next = r == 0 ? json_number(v.invoice.state, "next") : 0,
	        to = r == 0 ? range_end(&v.invoice, run->now_ms) : 0;
	if (r == 0)
		r = meter_settled(run->reader, a, org_id, &settled);
	if (r == 0 && next < to)
		r = meter_usage(run->reader, a, org_id, next, to, &rows, &count);
	tx_end_read(run->reader);
	tx_rest(run->reader);
	if (r < 0)
		return r;
	v.state = (struct bill_state){.tiers = json_object_get(v.invoice.state, "tiers"),
	                              .carry = json_number(v.invoice.state, "carry")};
	days_freeze(&v, rows, count, settled, to, &used);
	json_put(v.invoice.state, "carry", json_integer(v.state.carry));
	next = json_number(v.invoice.state, "next");
	v.closes = next >= v.invoice.to_ms;
	bool more = v.closes || (v.line_docs && to < run->now_ms);
	if (!v.closes)
		open_make(&v, rows + used, count - used, to);
	if (!v.changed && !v.closes)
		return 0;
	r = store_write_wait(run->store, advance_run, &v);
	/* Another process, or the operator's command, was first: what it left is looked at next. */
	if (r == -ESTALE)
		return 1;
	/* Most have no lines, of which there are no sums to keep. */
	if (r == 0 && v.closes && json_number(v.invoice.state, "lines"))
		r = costs_keep(run, v.invoice.doc.id);
	return r < 0 ? r : more;
}

static int invoice_begin(const struct billing_run *run, struct arena *a, struct str org_id)
{
	struct invoice last;
	struct creation c = {.arena = a, .org_id = org_id, .now_ms = run->now_ms};
	tx_begin_read(run->reader);
	int r = invoice_last(run->reader, a, org_id, &last);
	if (r == -ENOENT)
		r = first_month(run, a, org_id, &c.month_ms);
	else if (r == 0)
		c.month_ms = 0;
	tx_end_read(run->reader);
	tx_rest(run->reader);
	return r < 0 || !c.month_ms ? r : store_write_wait(run->store, creation_run, &c);
}

int invoices_advance(const struct billing_run *run, struct str org_id)
{
	struct arena *a = arena_new();
	int r = invoice_begin(run, a, org_id), more = r == 0;
	while (more > 0) {
		arena_reset(a);
		more = advance_once(run, a, org_id);
		r = more < 0 && more != -ENOENT ? more : 0;
	}
	arena_free(a);
	return r;
}

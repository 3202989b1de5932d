/* Invoices as callers see them. They are only ever read through the API: what makes them is billing/billing.h. No verb
 * serves them, because they are shown with their lines, payments and the invoices of linked organizations. */
#include "api/billing/pages.h"
#include "api/kit/verbs.h"

#include "base/clock.h"
#include "call/service.h"
#include "gate/dispatch.h"

#include <errno.h>
#include <stdlib.h>

#define LINES_STREAMED 5000   /* from here on JSON is made while it is sent */
#define LINES_IN_MEMORY 50000 /* where it cannot be: with an envelope, in another dialect */
#define LINES_OF_LIST 2000    /* of each invoice of a list */
#define PPM_PERCENT 10000

int invoice_of_path(struct call *c, struct invoice *ret_invoice)
{
	struct str id = call_path(c, "invoiceId");
	int r = invoice_get(c->tx, c->arena, id, ret_invoice);
	if (r == 0 && !str_eq(ret_invoice->doc.parent, c->org.id))
		r = -ENOENT;
	return r == -ENOENT ? call_missing_param(c, "invoiceId") : r;
}

/* --- parts of the text */

/* The array of a list of documents' bodies. */
static int bodies_write(struct call *c, struct buf *b, const char *name, const char *kind, struct str parent)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(c->tx, c->arena, kind, parent, &docs, &count);
	json_key(b, name);
	json_open(b, '[');
	for (size_t i = 0; r == 0 && i < count; i++)
		json_raw(b, docs[i].body);
	json_close(b, ']');
	return r;
}

static int lines_write_of(struct call *c, struct buf *b, const char *kind, struct str invoice_id)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(c->tx, c->arena, kind, invoice_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct str items = lines_items(&docs[i]);
		if (items.n > 2)
			json_raw(b, (struct str){items.p + 1, items.n - 2});
	}
	return r;
}

static int lines_write(struct call *c, struct buf *b, const struct invoice *i, bool with_lines)
{
	json_key(b, "lineItems");
	json_open(b, '[');
	int r = with_lines ? lines_write_of(c, b, LINES_KIND, i->doc.id) : 0;
	if (r == 0 && with_lines)
		r = lines_write_of(c, b, OPEN_KIND, i->doc.id);
	json_close(b, ']');
	return r;
}

/* The link of an invoice of another organization: the call's own path has this one's id. */
static void linked_link(struct call *c, struct buf *b, const struct doc *d)
{
	struct str href = link_href(c, catalog_op("getInvoice"), "invoiceId", d->id);
	const char *at = memmem(href.p, href.n, c->org.id.p, c->org.id.n);
	json_key(b, "links");
	json_open(b, '[');
	json_open(b, '{');
	json_key(b, "href");
	json_str(b, at ? arena_printf(c->arena, "%.*s%.*s%s", (int)(at - href.p), href.p, STR_ARG(d->parent),
	                              arena_z(c->arena, (struct str){at + c->org.id.n,
	                                                             (size_t)(href.p + href.n - at) - c->org.id.n}))
	               : href);
	json_key(b, "rel");
	json_z(b, "self");
	json_close(b, '}');
	json_close(b, ']');
}

/* A stored body, left open for more fields. */
static void body_begin(struct buf *b, struct str body)
{
	json_sep(b);
	buf_add(b, body.p, body.n - 1);
}

/* Invoices of the same month of the organizations that this one pays for. */
static int linked_write(struct call *c, struct buf *b, const struct doc *d)
{
	struct doc *links, other;
	size_t count = 0;
	int r = tx_list_all(c->tx, c->arena, LINK_KIND, d->parent, &links, &count);
	json_key(b, "linkedInvoices");
	json_open(b, '[');
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = tx_get_by_name(c->tx, c->arena, INVOICE_KIND, links[i].name, d->name, &other);
		if (r == 0) {
			body_begin(b, other.body);
			linked_link(c, b, &other);
			json_close(b, '}');
		}
		r = r == -ENOENT ? 0 : r;
	}
	json_close(b, ']');
	return r;
}

/* What the reference's invoices leave out, and an invoice must say: in which currency, who writes it to whom, by which
 * rate it is taxed, when it is due. It is for whoever asks (X-Steward-Whole: true), as a header, since the body is the
 * reference's. Invoices that an older version closed have none of it. */
static void papers_tell(struct call *c, const struct invoice *i)
{
	static const char *const copied[] = {"currency", "customer", "issuer"};
	int64_t due = json_number(i->state, "due");
	if (!due || !str_ieq(request_header(c->request, "x-steward-whole"), STR("true")))
		return;
	json_t *papers = json_new(c->arena);
	json_copy_fields(papers, i->state, copied, sizeof copied / sizeof *copied);
	json_put_time(papers, "dueDate", due);
	json_put(papers, "taxPercent", json_real((double)json_number(i->state, "taxPpm") / PPM_PERCENT));
	char *text = json_dumps(papers, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (text)
		call_header(c, STR("x-steward-invoice"), arena_dup(c->arena, str_of(text)));
	free(text);
}

static int whole_text(struct call *c, const struct invoice *i, bool with_lines, struct buf *b)
{
	body_begin(b, i->doc.body);
	int r = lines_write(c, b, i, with_lines);
	if (r == 0)
		r = linked_write(c, b, &i->doc);
	if (r == 0)
		r = bodies_write(c, b, "payments", PAYMENT_KIND, i->doc.id);
	if (r == 0)
		r = bodies_write(c, b, "refunds", REFUND_KIND, i->doc.id);
	json_close(b, '}');
	return r;
}

/* --- one */

static void entity_add(struct call *c, struct buf *to, const struct doc *d, struct str text, bool in_list)
{
	entity_write(c, to, text, catalog_op("getInvoice"), "invoiceId", d->id, in_list);
}

static int64_t lines_count(const struct invoice *i)
{
	return json_number(i->state, "lines");
}

/* HEAD has no body, and an envelope or another dialect needs the whole in one piece. */
static bool can_stream(const struct call *c)
{
	return !c->envelope && !c->pretty && !c->dialect;
}

int billing_invoice_get(struct call *c)
{
	struct invoice i;
	struct buf b = {0};
	int r = invoice_of_path(c, &i);
	if (r < 0)
		return r;
	if (c->produces == PRODUCES_CSV)
		return lines_send(c, &i, STR_NONE);
	bool streamed = lines_count(&i) > LINES_STREAMED && can_stream(c);
	if (!streamed && lines_count(&i) > LINES_IN_MEMORY)
		return call_fail_about(c, 400, "INVOICE_TOO_LARGE", i.doc.id,
		                       "The invoice %.*s has %lld lines, too many for this form. Ask for it as CSV, "
		                       "without envelope and pretty, or search its lines.",
		                       STR_ARG(i.doc.id), (long long)lines_count(&i));
	if (call_takes_long(c, streamed ? 0 : lines_count(&i) * 2))
		return 0;
	papers_tell(c, &i);
	r = whole_text(c, &i, !streamed, &b);
	if (r == 0 && !streamed) {
		entity_add(c, &c->out, &i.doc, buf_view(&b), false);
	} else if (r == 0) {
		struct buf entity = {0};
		entity_add(c, &entity, &i.doc, buf_view(&b), false);
		r = lines_send(c, &i, buf_keep(&entity, c->arena));
	}
	buf_free(&b);
	return r;
}

int billing_invoice_csv(struct call *c)
{
	struct invoice i;
	int r = invoice_of_path(c, &i);
	return r < 0 ? r : lines_send(c, &i, STR_NONE);
}

/* --- lists */

struct wanted {
	struct str statuses;
	int64_t from_ms, to_ms; /* 0: any */
	bool by_start, ascending, linked;
};

static void wanted_read(const struct call *c, struct wanted *ret_wanted)
{
	*ret_wanted = (struct wanted){.statuses = call_query(c, "statusNames"),
	                              .by_start = str_is(call_query(c, "sortBy"), "START_DATE"),
	                              .ascending = str_is(call_query(c, "orderBy"), "asc"),
	                              .linked = call_query_bool(c, "viewLinkedInvoices", true)};
	if (!clock_parse(call_query(c, "fromDate"), &ret_wanted->from_ms))
		ret_wanted->from_ms = 0;
	if (!clock_parse(call_query(c, "toDate"), &ret_wanted->to_ms))
		ret_wanted->to_ms = 0;
}

static bool is_wanted(const struct wanted *w, const struct invoice *i)
{
	return (!w->statuses.n || str_list_has(w->statuses, json_field(i->body, "statusName"))) &&
	       (!w->from_ms || i->from_ms >= w->from_ms) && (!w->to_ms || i->to_ms <= w->to_ms);
}

/* Months do not overlap: both orders are that of the months, which are the names. */
static int by_month(const void *a, const void *b)
{
	const struct doc *x = a, *y = b;
	size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
	return memcmp(x->name.p, y->name.p, n);
}

static int item_write(struct call *c, const void *ctx, const struct doc *d)
{
	const struct wanted *w = ctx;
	struct buf b = {0};
	int r = 0;
	body_begin(&b, d->body);
	if (w->linked)
		r = linked_write(c, &b, d);
	json_close(&b, '}');
	entity_add(c, &c->out, d, buf_view(&b), true);
	buf_free(&b);
	return r;
}

int billing_invoices_list(struct call *c)
{
	struct wanted w;
	struct doc *docs;
	size_t count = 0, kept = 0;
	int r = tx_list_all(c->tx, c->arena, INVOICE_KIND, c->org.id, &docs, &count);
	if (r < 0)
		return r;
	wanted_read(c, &w);
	for (size_t i = 0; i < count; i++) {
		struct invoice one = invoice_of(c->arena, &docs[i]);
		if (is_wanted(&w, &one))
			docs[kept++] = docs[i];
	}
	if (kept)
		qsort(docs, kept, sizeof *docs, by_month);
	for (size_t i = 0; !w.ascending && i < kept / 2; i++) {
		struct doc other = docs[i];
		docs[i] = docs[kept - 1 - i];
		docs[kept - 1 - i] = other;
	}
	struct segment all = {.docs = docs, .count = kept};
	if (!kept)
		all.docs = arena_new_of(c->arena, struct doc);
	return list_segments(c, &all, 1, item_write, NULL, &w);
}

static int pending_write(struct call *c, const void *ctx, const struct doc *d)
{
	struct invoice i = invoice_of(c->arena, d);
	struct buf b = {0};
	int r = whole_text(c, &i, lines_count(&i) <= LINES_OF_LIST, &b);
	if (r == 0)
		entity_add(c, &c->out, d, buf_view(&b), true);
	buf_free(&b);
	return r;
}

/* One month is open at a time; after the end of one, the one before may still wait for a host to tell what ran. */
int billing_invoices_pending(struct call *c)
{
	struct invoice last;
	struct doc *one = arena_new_of(c->arena, struct doc);
	size_t count = 0;
	int r = invoice_last(c->tx, c->arena, c->org.id, &last);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0 && invoice_is(&last, "PENDING"))
		one[count++] = last.doc;
	struct segment all = {.docs = one, .count = count};
	return list_segments(c, &all, 1, pending_write, NULL, NULL);
}

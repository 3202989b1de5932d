/* Lines of invoices from what was metered. Money is counted in atoms (prices/prices.h), so that nothing is rounded
 * before the cents of a day are given to its lines. */
#include "billing/billing.h"

#include "base/clock.h"

#include <stdlib.h>

#define CENT ((int64_t)MONEY_CENT)
#define TIERS_FEW 16
#define DECIMALS INT64_C(1000000000)
#define BEFORE_MAX INT64_C(7200000000000000000) /* parts: the last tier of every book has begun */

/* What the month has had of the row's SKU and region, which grows by the row. */
static int64_t quantity_before(struct arena *a, json_t *tiers, const struct usage *u)
{
	const char *key = arena_printf(a, "%.*s/%.*s", STR_ARG(u->sku), STR_ARG(u->region)).p;
	int64_t before = json_number(tiers, key), left = BEFORE_MAX - before;
	json_put(tiers, key, json_integer(u->quantity < left ? before + u->quantity : BEFORE_MAX));
	return before;
}

static struct str note_join(struct arena *a, struct str region, struct str more)
{
	return !more.n ? region : !region.n ? more : arena_printf(a, "%.*s; %.*s", STR_ARG(region), STR_ARG(more));
}

struct making {
	struct arena *arena;
	const struct price_book *book;
	const struct price_org *org;
	struct bill_state *state;
	int64_t to_ms;
	struct bill_line *lines;
	size_t count, room;
};

static struct bill_line line_of(const struct making *m, const struct usage *u, const struct sku *sku)
{
	int64_t end = u->day_ms + DAY_MS;
	enum price_unit unit = sku ? sku->unit : PRICE_COUNT;
	return (struct bill_line){.from_ms = u->day_ms,
	                          .to_ms = end < m->to_ms ? end : m->to_ms,
	                          .group_id = u->group_id,
	                          .group_name = u->group_name,
	                          .cluster_id = u->cluster_id,
	                          .cluster_name = u->cluster_name,
	                          .sku = u->sku,
	                          .provider = u->provider,
	                          .region = u->region,
	                          .service = sku ? sku->service : STR("Svc"),
	                          .unit = price_unit_name(unit),
	                          .parts = u->quantity,
	                          .unit_parts = price_unit_parts(unit)};
}

static void line_add(struct making *m, const struct bill_line *l)
{
	ARENA_FIT(m->arena, m->lines, m->count, m->room);
	m->lines[m->count++] = *l;
}

static void row_add(struct making *m, const struct usage *u)
{
	const struct sku *sku = price_book_sku(m->book, u->sku);
	const struct price *price = sku ? sku_price(sku, u->region, u->day_ms) : NULL;
	int64_t before = quantity_before(m->arena, m->state->tiers, u);
	struct bill_line l = line_of(m, u, sku);
	struct price_part few[TIERS_FEW], *parts = few;
	struct str note = STR_NONE;
	if (!price) {
		l.note = note_join(m->arena, u->region, STR("no price"));
		line_add(m, &l);
		return;
	}
	l.discount_ppm = price_discount(m->org, u->sku, u->day_ms, &note);
	l.note = note_join(m->arena, u->region, note);
	if (price->tier_count > TIERS_FEW)
		parts = arena_new_array(m->arena, struct price_part, price->tier_count);
	size_t count = price_split(price, sku->unit, before, u->quantity, parts);
	for (size_t i = 0; i < count; i++) {
		l.parts = parts[i].quantity;
		l.tier = *parts[i].tier;
		l.tiered = price->tier_count > 1;
		l.gross = parts[i].amount;
		l.net = l.gross - money_share(l.gross, l.discount_ppm);
		line_add(m, &l);
	}
}

struct share {
	int64_t rest;
	size_t line;
};

/* The largest rest first; among equal ones the first line. */
static int share_compare(const void *a, const void *b)
{
	const struct share *x = a, *y = b;
	if (x->rest != y->rest)
		return x->rest < y->rest ? 1 : -1;
	return x->line < y->line ? -1 : x->line > y->line;
}

int64_t lines_cents(struct arena *a, struct bill_line *lines, size_t count, int64_t *carry)
{
	struct share *shares = arena_new_array(a, struct share, count + 1);
	money_atoms sum = *carry;
	int64_t given = 0;
	for (size_t i = 0; i < count; i++) {
		sum += lines[i].net;
		lines[i].cents = (int64_t)(lines[i].net / MONEY_CENT);
		shares[i] = (struct share){(int64_t)(lines[i].net % MONEY_CENT), i};
		given += lines[i].cents;
	}
	/* The carry is half a cent at most, so the sum with it is rounded half up without being negative. */
	int64_t total = sum + CENT / 2 < 0 ? 0 : (int64_t)((sum + CENT / 2) / MONEY_CENT);
	*carry = (int64_t)(sum - money_times(MONEY_CENT, total));
	qsort(shares, count, sizeof *shares, share_compare);
	for (size_t i = 0; i < count && given < total; i++, given++)
		lines[shares[i].line].cents++;
	for (size_t i = 0; i < count; i++) {
		int64_t full = (int64_t)((lines[i].gross + MONEY_CENT / 2) / MONEY_CENT);
		lines[i].discount_cents = lines[i].discount_ppm && full > lines[i].cents ? full - lines[i].cents : 0;
	}
	return given;
}

size_t lines_make(struct arena *a, const struct prices *prices, struct str org_id, const struct usage *rows,
                  size_t count, int64_t to_ms, struct bill_state *state, struct bill_line **ret_lines)
{
	const struct price_book *book = prices_at(prices, count ? rows[0].day_ms : 0);
	struct making m = {
	        .arena = a, .book = book, .org = price_book_org(book, org_id), .state = state, .to_ms = to_ms};
	for (size_t i = 0; i < count; i++)
		row_add(&m, &rows[i]);
	*ret_lines = m.lines;
	return m.count;
}

struct bill_line line_of_correction(int64_t cents, struct str note, int64_t at_ms)
{
	return (struct bill_line){.from_ms = at_ms,
	                          .to_ms = at_ms,
	                          .sku = STR("CREDIT"),
	                          .provider = STR("SVC"),
	                          .service = STR("Credits"),
	                          .note = note,
	                          .unit = price_unit_name(PRICE_COUNT),
	                          .parts = 1,
	                          .unit_parts = 1,
	                          .cents = cents};
}

/* --- as text */

void decimal_write(struct buf *b, int64_t value, int64_t parts)
{
	char digits[16];
	int64_t magnitude = value < 0 ? -value : value, whole = magnitude / parts;
	int64_t fraction = (int64_t)((money_times(magnitude % parts, DECIMALS) + parts / 2) / parts);
	whole += fraction / DECIMALS;
	fraction %= DECIMALS;
	if (value < 0)
		buf_c(b, '-');
	buf_printf(b, "%lld", (long long)whole);
	if (!fraction)
		return;
	int n = snprintf(digits, sizeof digits, ".%09lld", (long long)fraction);
	while (n > 1 && digits[n - 1] == '0')
		n--;
	buf_add(b, digits, (size_t)n);
}

static void text_put(struct buf *b, const char *name, struct str value)
{
	if (!value.n)
		return;
	json_key(b, name);
	json_str(b, value);
}

static void time_put(struct buf *b, const char *name, int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	json_key(b, name);
	json_z(b, text);
}

static void number_put(struct buf *b, const char *name, int64_t value, int64_t parts)
{
	json_key(b, name);
	decimal_write(b, value, parts);
}

/* As schemas have it: a name of a cluster that they would not allow is a part of the note. */
static void line_write(struct buf *b, const struct bill_line *l, int64_t now_ms)
{
	json_open(b, '{');
	text_put(b, "cloudProvider", str_is_one_of("AWS|GCP|AZURE|SVC", l->provider) ? l->provider : STR("SVC"));
	text_put(b, "clusterName", l->cluster_name);
	time_put(b, "created", now_ms);
	number_put(b, "discountCents", l->discount_cents, 1);
	time_put(b, "endDate", l->to_ms);
	text_put(b, "groupId", l->group_id);
	text_put(b, "groupName", l->group_name);
	text_put(b, "note", l->note);
	number_put(b, "percentDiscount", l->discount_ppm, 10000);
	number_put(b, "quantity", l->parts, l->unit_parts);
	text_put(b, "sku", l->sku);
	time_put(b, "startDate", l->from_ms);
	if (l->tiered) {
		number_put(b, "tierLowerBound", l->tier.from, 1);
		if (l->tier.to)
			number_put(b, "tierUpperBound", l->tier.to, 1);
	}
	json_key(b, "totalPriceCents");
	json_int(b, l->cents);
	text_put(b, "unit", str_of(l->unit));
	number_put(b, "unitPriceDollars", l->tier.nano, DECIMALS);
	json_close(b, '}');
}

static void key_write(struct buf *b, const struct bill_line *l)
{
	json_open(b, '[');
	json_str(b, l->group_id);
	json_str(b, l->cluster_id);
	json_str(b, l->service);
	json_int(b, l->cents);
	json_str(b, l->sku);
	json_str(b, l->region);
	json_int(b, l->parts);
	json_int(b, l->from_ms);
	json_close(b, ']');
}

static void name_write(struct buf *b, struct str id, struct str before, struct str name)
{
	if (!id.n || str_eq(id, before))
		return;
	json_key_str(b, id);
	json_str(b, name);
}

/* Lines of one project, and of one cluster, lie together: their names are written once. */
static void names_write(struct buf *b, const struct bill_line *lines, size_t count)
{
	const struct bill_line none = {0}, *before = &none;
	json_open(b, '{');
	for (size_t i = 0; i < count; before = &lines[i++]) {
		name_write(b, lines[i].group_id, before->group_id, lines[i].group_name);
		name_write(b, lines[i].cluster_id, before->cluster_id, lines[i].cluster_name);
	}
	json_close(b, '}');
}

#define ITEMS_BEGIN "{\"items\":"
#define KEYS_BEGIN "{\"keys\":"

static struct doc doc_make(struct arena *a, const char *kind, struct str invoice_id, const struct bill_line *lines,
                           size_t count, int64_t now_ms)
{
	struct buf items = {0}, keys = {0};
	buf_z(&items, ITEMS_BEGIN);
	buf_z(&keys, KEYS_BEGIN);
	json_open(&items, '[');
	json_open(&keys, '[');
	for (size_t i = 0; i < count; i++) {
		line_write(&items, &lines[i], now_ms);
		key_write(&keys, &lines[i]);
	}
	json_close(&items, ']');
	json_close(&keys, ']');
	buf_c(&items, '}');
	buf_z(&keys, ",\"names\":");
	names_write(&keys, lines, count);
	buf_c(&keys, '}');
	struct doc d = doc_new(a, kind, invoice_id, STR_NONE, buf_keep(&items, a));
	d.secret = buf_keep(&keys, a);
	return d;
}

struct doc *lines_docs(struct arena *a, const char *kind, struct str invoice_id, const struct bill_line *lines,
                       size_t count, int64_t now_ms, size_t *ret_count)
{
	size_t made = (count + LINES_OF_DOC - 1) / LINES_OF_DOC;
	struct doc *docs = arena_new_array(a, struct doc, made + 1);
	for (size_t i = 0; i < made; i++) {
		size_t from = i * LINES_OF_DOC, left = count - from;
		docs[i] =
		        doc_make(a, kind, invoice_id, lines + from, left < LINES_OF_DOC ? left : LINES_OF_DOC, now_ms);
	}
	*ret_count = made;
	return docs;
}

struct str lines_items(const struct doc *d)
{
	size_t begin = sizeof ITEMS_BEGIN - 1;
	return d->body.n > begin ? (struct str){d->body.p + begin, d->body.n - begin - 1} : STR("[]");
}

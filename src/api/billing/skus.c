/* What invoices are made of, as the newest price book has it. SKUs are no documents: the book is in memory. */
#include "api/billing/billing.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "call/service.h"
#include "prices/prices.h"

#include <errno.h>

static const char *const unit_words[PRICE_UNITS] = {
        [PRICE_NODE_HOURS] = "a node-hour", [PRICE_GB_HOURS] = "a GB-hour", [PRICE_GB] = "a GB", [PRICE_COUNT] = "one"};

static struct doc sku_doc(struct call *c, const struct sku *s)
{
	json_t *body = json_new(c->arena);
	json_put_str(body, "description", s->description);
	json_put_str(body, "id", s->id);
	return (struct doc){.id = s->id, .name = s->id, .body = json_text(c->arena, body)};
}

/* Billionths of the currency as a decimal number, without zeros at its end. */
static void amount_write(struct buf *b, int64_t nano)
{
	char digits[] = "000000000";
	size_t n = sizeof digits - 1;
	for (int64_t left = nano % 1000000000; left; left /= 10)
		digits[--n] = (char)('0' + left % 10);
	n = sizeof digits - 1;
	while (n > 2 && digits[n - 1] == '0')
		n--;
	buf_printf(b, "%lld.%.*s", (long long)(nano / 1000000000), (int)n, digits);
}

/* What it costs today: "0.08 USD for hours", with its regions and steps where there are several. */
static struct str price_text(struct call *c, const struct price_book *book, const struct sku *s)
{
	struct buf b = {0};
	int64_t now = clock_now_ms();
	for (size_t i = 0; i < s->price_count; i++) {
		const struct price *p = &s->prices[i];
		if (p->from_ms > now || p->to_ms <= now)
			continue;
		buf_z(&b, b.n ? "; " : "");
		for (size_t k = 0; k < p->region_count; k++)
			buf_printf(&b, "%s%.*s", k ? ", " : "in ", STR_ARG(p->regions[k]));
		buf_z(&b, p->region_count ? ": " : "");
		for (size_t k = 0; k < p->tier_count; k++) {
			if (k)
				buf_printf(&b, ", from %lld on ", (long long)p->tiers[k].from);
			amount_write(&b, p->tiers[k].nano);
		}
		buf_printf(&b, " %.*s for %s", STR_ARG(book->currency), unit_words[s->unit]);
	}
	return buf_keep(&b, c->arena);
}

static int sku_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	const struct sku *s = price_book_sku(prices_newest(c->service->prices), call_path(c, "skuId"));
	if (!s)
		return -ENOENT;
	*ret_doc = sku_doc(c, s);
	struct str price = price_text(c, prices_newest(c->service->prices), s);
	if (price.n)
		call_header(c, STR("x-steward-price"), price);
	return 0;
}

static int sku_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	const struct price_book *b = prices_newest(c->service->prices);
	struct doc *docs = arena_new_array(c->arena, struct doc, b->sku_count);
	for (size_t i = 0; i < b->sku_count; i++)
		docs[i] = sku_doc(c, &b->skus[i]);
	return segments_docs(c, docs, b->sku_count, ret_list, ret_count);
}

const struct resource_hooks sku_hooks = {.load = sku_load, .segments = sku_segments};

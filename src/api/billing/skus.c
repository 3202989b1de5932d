/* What invoices are made of, as the newest price book has it. SKUs are no documents: the book is in memory. */
#include "api/billing/billing.h"
#include "api/kit/verbs.h"
#include "call/service.h"
#include "prices/prices.h"

#include <errno.h>

static struct doc sku_doc(struct call *c, const struct sku *s)
{
	json_t *body = json_new(c->arena);
	json_put_str(body, "description", s->description);
	json_put_str(body, "id", s->id);
	return (struct doc){.id = s->id, .name = s->id, .body = json_text(c->arena, body)};
}

static int sku_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	const struct sku *s = price_book_sku(prices_newest(c->service->prices), call_path(c, "skuId"));
	if (!s)
		return -ENOENT;
	*ret_doc = sku_doc(c, s);
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

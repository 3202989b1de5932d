/* Price books. Any bytes: one that is refused says why and where; in one that is taken every SKU is found, prices that
 * hold have tiers without gaps, and a quantity costs the same whole and in two pieces. */
#include "fuzz.h"

#include "base/json.h"
#include "prices/prices.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_setup();
	return 0;
}

static money_atoms cost(const struct price *p, enum price_unit unit, int64_t before, int64_t quantity)
{
	struct price_part *parts = must_calloc(p->tier_count, sizeof *parts);
	money_atoms sum = 0;
	int64_t all = 0;
	size_t count = price_split(p, unit, before, quantity, parts);
	HOLDS(count <= p->tier_count);
	for (size_t i = 0; i < count; i++) {
		HOLDS(parts[i].quantity > 0 && parts[i].amount >= 0);
		all += parts[i].quantity;
		sum += parts[i].amount;
	}
	HOLDS(all == quantity);
	free(parts);
	return sum;
}

static void price_look(const struct price *p, enum price_unit unit)
{
	const int64_t some = price_unit_parts(unit) * 7 + 3;
	HOLDS(p->from_ms < p->to_ms && p->tier_count > 0 && p->tiers[0].from == 0);
	for (size_t i = 0; i < p->tier_count; i++)
		HOLDS(i + 1 < p->tier_count ? p->tiers[i].to == p->tiers[i + 1].from : p->tiers[i].to == 0);
	HOLDS(cost(p, unit, 0, 2 * some) == cost(p, unit, 0, some) + cost(p, unit, some, some));
}

static void book_look(const struct price_book *b)
{
	HOLDS(b->currency.n == 3 && b->sku_count > 0 && b->tax_ppm >= 0 && b->tax_ppm <= 1000000);
	for (size_t i = 0; i < b->sku_count; i++) {
		const struct sku *s = &b->skus[i];
		HOLDS(price_book_sku(b, s->id) == s && s->price_count > 0);
		for (size_t k = 0; k < s->price_count; k++) {
			const struct price *p = &s->prices[k];
			struct str region = p->region_count ? p->regions[0] : STR("");
			price_look(p, s->unit);
			HOLDS(sku_price(s, region, p->from_ms) == p);
		}
	}
	for (size_t i = 0; i < b->org_count; i++) {
		int64_t off = price_discount(&b->orgs[i], b->skus[0].id, 0, NULL);
		HOLDS(price_book_org(b, b->orgs[i].id) == &b->orgs[i] && off >= 0 && off <= 1000000);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = fuzz_input(data, size);
	char *exact = fuzz_copy(input);
	struct arena *a = arena_new();
	struct price_book b;
	const char *why = NULL;
	int r = price_book_parse(a, (struct str){exact, input.n}, &b, &why);
	HOLDS(r <= 0 && (r == 0) == (why == NULL));
	HOLDS(r == 0 || strstr(why, ": "));
	if (r == 0)
		book_look(&b);
	arena_free(a);
	free(exact);
	return 0;
}

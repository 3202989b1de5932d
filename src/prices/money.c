/* What quantities cost: whole numbers throughout, and cents that add up. */
#include "prices/prices.h"

#include <stdlib.h>

#define PARTS_MAX INT64_C(3600000000) /* of a unit, at most; each unit's number divides it */
#define MILLION 1000000

static money_atoms quantity_cost(enum price_unit unit, int64_t quantity, int64_t nano)
{
	return money_times(money_times(quantity, nano), PARTS_MAX / price_unit_parts(unit));
}

size_t price_split(const struct price *p, enum price_unit unit, int64_t before, int64_t quantity,
                   struct price_part *ret_parts)
{
	int64_t parts = price_unit_parts(unit), end = before + quantity;
	size_t count = 0;
	for (size_t i = 0; i < p->tier_count; i++) {
		const struct price_tier *t = &p->tiers[i];
		int64_t from = t->from * parts, to = t->to && t->to * parts < end ? t->to * parts : end;
		from = from > before ? from : before;
		if (to > from)
			ret_parts[count++] = (struct price_part){
			        .tier = t, .quantity = to - from, .amount = quantity_cost(unit, to - from, t->nano)};
	}
	return count;
}

money_atoms money_share(money_atoms amount, int64_t ppm)
{
	return money_times(amount / MILLION, ppm) + money_times(amount % MILLION, ppm) / MILLION;
}

struct remainder {
	money_atoms rest;
	size_t at;
};

static int remainder_compare(const void *a, const void *b)
{
	const struct remainder *x = a, *y = b;
	if (x->rest != y->rest)
		return x->rest > y->rest ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Whole cents that are not above it. */
static int64_t cents_below(money_atoms amount)
{
	money_atoms cents = amount / MONEY_CENT;
	return (int64_t)(cents - (amount % MONEY_CENT < 0));
}

int64_t money_cents(const money_atoms *amounts, size_t count, int64_t *ret_cents)
{
	struct remainder *rests = must_calloc(count + 1, sizeof *rests);
	money_atoms sum = 0;
	int64_t given = 0;
	for (size_t i = 0; i < count; i++) {
		ret_cents[i] = cents_below(amounts[i]);
		rests[i] = (struct remainder){.rest = amounts[i] - money_times(MONEY_CENT, ret_cents[i]), .at = i};
		sum += amounts[i];
		given += ret_cents[i];
	}
	int64_t total = cents_below(sum + MONEY_CENT / 2);
	/* Fewer than there are: each remainder is less than a cent. */
	qsort(rests, count, sizeof *rests, remainder_compare);
	for (size_t i = 0; i < count && given < total; i++, given++)
		ret_cents[rests[i].at]++;
	free(rests);
	return total;
}

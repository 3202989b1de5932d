/* The price book: what each SKU costs, from when to when, and what an organization gets of it. It is the operator's
 * file; without one, the book that ships is used.
 *
 * Money is integer arithmetic. A book writes amounts as text ("0.08"), which are kept in billionths of the currency. A
 * metered quantity is a whole number of the SKU's smallest parts: of a node-hour the second, of a gigabyte-hour the
 * kilobyte-second. So what a quantity costs is a whole number of `money_atoms`, however it is cut into lines. */
#ifndef STEWARD_PRICES_PRICES_H
#define STEWARD_PRICES_PRICES_H

#include "base/arena.h"
#include "base/str.h"

#include <jansson.h>

struct store;

/* 36,000,000,000,000,000 of them are a cent: a billionth of the currency for a kilobyte-second of a gigabyte-hour. */
__extension__ typedef __int128 money_atoms;
#define MONEY_CENT ((money_atoms)INT64_C(36000000000000000))
__extension__ typedef unsigned __int128 money_bits;
/* The product; by unsigned numbers, because clang's check of signed ones needs a library that is not everywhere. */
static inline money_atoms money_times(money_atoms amount, int64_t n)
{
	return (money_atoms)((money_bits)amount * (money_bits)(money_atoms)n);
}

enum price_unit {
	PRICE_NODE_HOURS, /* parts: node-seconds, 3,600 to the unit */
	PRICE_GB_HOURS,   /* kilobyte-seconds, 3,600,000,000 to the unit */
	PRICE_GB,         /* kilobytes, 1,000,000 to the unit */
	PRICE_COUNT       /* things, 1 to the unit */
};
#define PRICE_UNITS 4
/* How many parts make a unit, and its name in lines ("hours", "GB hours", "GB", "each"). */
int64_t price_unit_parts(enum price_unit unit);
const char *price_unit_name(enum price_unit unit);

/* A range of a month's quantity of one organization, SKU and region, in units; `to` 0: without end. */
struct price_tier {
	int64_t from, to;
	int64_t nano; /* for a unit, in billionths of the currency */
};

/* What a SKU costs in some regions (none named: in all), from one day to another. */
struct price {
	int64_t from_ms, to_ms; /* days in UTC; to_ms is excluded */
	const struct str *regions;
	size_t region_count;
	const struct price_tier *tiers; /* at least one; the first begins at 0 */
	size_t tier_count;
};

struct sku {
	struct str id, description;
	struct str service;  /* as the cost explorer names it: "Clusters", "Storage", "Backup", ... */
	struct str provider; /* "AWS", "GCP", "AZURE", "SVC" */
	enum price_unit unit;
	const struct price *prices;
	size_t price_count;
};

/* Of one organization. */
struct price_discount {
	int64_t from_ms, to_ms;
	int64_t ppm;            /* millionths that are taken off: 100000 is ten percent */
	const struct str *skus; /* none: all; "AWS_*": all that begin so */
	size_t sku_count;
	struct str note;
};
struct price_credit {
	struct str id, note; /* id: unique within the organization */
	int64_t from_ms, to_ms;
	int64_t cents;
};
/* Who writes an invoice, or whom it is written to, as it stands there. */
struct price_party {
	struct str name, tax_id; /* empty: not told */
	const struct str *address;
	size_t address_count; /* lines */
};
struct price_org {
	struct str id;
	struct price_party customer;
	int64_t tax_ppm; /* -1: the book's */
	const struct price_discount *discounts;
	size_t discount_count;
	const struct price_credit *credits;
	size_t credit_count;
};

struct price_book {
	struct str currency; /* "USD" */
	int64_t tax_ppm;
	struct price_party issuer;
	int64_t due_days;       /* after the end of its month an invoice is due */
	const struct sku *skus; /* by id */
	size_t sku_count;
	const struct price_org *orgs; /* by id */
	size_t org_count;
};

/* Checks a book and takes it in. -EINVAL: *ret_why names the place and what is wrong with it
 * ("skus[3].prices[0].tiers[1].from: must be 100, where the tier before ends"). */
must_check int price_book_parse(struct arena *a, struct str text, struct price_book *ret_book, const char **ret_why);
/* Its two steps: the text, NULL when it is no JSON; and what that holds. */
json_t *price_book_load(struct arena *a, struct str text, const char **ret_why);
must_check int price_book_take(struct arena *a, const json_t *book, struct price_book *ret_book, const char **ret_why);
/* The text of the book that ships. */
struct str price_book_standard(void);

/* Books by the day from which each is in force. A book that differs from the last one holds from the next day in UTC
 * on; what was metered before keeps its price. The first book of a store holds for all time before, too. */
struct prices;
/* The newest book is that of the file (NULL: the one that ships); kept in the store, where it is new. A fault goes to
 * stderr. */
must_check int prices_open(struct store *store, const char *file, struct prices **ret_prices);
/* Only what the store keeps: for commands beside the service. The book that ships, where it keeps none. */
must_check int prices_read(struct store *store, struct prices **ret_prices);
void prices_close(struct prices *p); /* accepts NULL */
/* Reads the file and the store again; what was got before stays valid. From one thread at a time. */
must_check int prices_reload(struct prices *p);

/* The book of a day, and the newest. From any thread. Never NULL. */
const struct price_book *prices_at(const struct prices *p, int64_t day_ms);
const struct price_book *prices_newest(const struct prices *p);

/* NULL: it has none. */
const struct sku *price_book_sku(const struct price_book *b, struct str id);
const struct price_org *price_book_org(const struct price_book *b, struct str org_id);
/* The price of that day and region: one that names the region comes before one that names none. NULL: it costs
 * nothing. */
const struct price *sku_price(const struct sku *s, struct str region, int64_t day_ms);
/* Millionths off for that organization, SKU and day: the largest that holds; *ret_note its note. org may be NULL. */
int64_t price_discount(const struct price_org *org, struct str sku, int64_t day_ms, struct str *ret_note);
int64_t price_tax(const struct price_book *b, const struct price_org *org);

/* A quantity by tiers: `before` is what the month already had of it. At most tier_count parts. */
struct price_part {
	const struct price_tier *tier;
	int64_t quantity;   /* parts of the unit */
	money_atoms amount; /* without discount */
};
size_t price_split(const struct price *p, enum price_unit unit, int64_t before, int64_t quantity,
                   struct price_part *ret_parts);
/* amount * ppm / 1000000, rounded down to an atom. */
money_atoms money_share(money_atoms amount, int64_t ppm);
/* Whole cents of amounts that add up to the whole cents (rounded half up) of their sum: largest remainder, and among
 * equal ones the first. Returns that sum. */
int64_t money_cents(const money_atoms *amounts, size_t count, int64_t *ret_cents);

#endif

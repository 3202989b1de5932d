/* Reading a price book. Everything in it is checked before any of it is used: a key that nobody knows, a price that
 * would never hold, two that hold at once. The first fault is told with its place. */
#include "prices/prices.h"

#include "base/clock.h"
#include "base/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#define SKUS_MAX 20000
#define LIST_MAX 1000
#define TEXT_MAX 300
#define ADDRESS_MAX 8
#define DUE_MAX 365
#define DUE_DAYS 14
#define UNITS_MAX INT64_C(2000000000) /* of a tier: its parts fit into 64 bits */
#define NANO_DIGITS 9
#define NANO_MAX INT64_C(1000000000000000) /* a million for a unit */
#define CENTS_MAX INT64_C(100000000000000)
#define FOREVER INT64_MAX

static const struct {
	const char *name;
	int64_t parts;
} units[PRICE_UNITS] = {[PRICE_NODE_HOURS] = {"hours", 3600},
                        [PRICE_GB_HOURS] = {"GB hours", INT64_C(3600000000)},
                        [PRICE_GB] = {"GB", 1000000},
                        [PRICE_COUNT] = {"each", 1}};

int64_t price_unit_parts(enum price_unit unit)
{
	return units[unit].parts;
}

const char *price_unit_name(enum price_unit unit)
{
	return units[unit].name;
}

struct reading {
	struct arena *arena;
	const char *why; /* the first fault; NULL: none yet */
};

/* A place in the book: "skus[3].prices[0]". Texts are in the arena. */
static const char *place_in(struct reading *r, const char *at, const char *name)
{
	return *at ? arena_printf(r->arena, "%s.%s", at, name).p : name;
}

static const char *place_nth(struct reading *r, const char *at, const char *name, size_t i)
{
	return arena_printf(r->arena, "%s[%zu]", place_in(r, at, name), i).p;
}

static void printf_like(3, 4) fault(struct reading *r, const char *at, const char *format, ...)
{
	va_list args;
	if (r->why)
		return;
	va_start(args, format);
	struct str what = arena_vprintf(r->arena, format, args);
	va_end(args);
	r->why = arena_printf(r->arena, "%s: %.*s", *at ? at : "the book", STR_ARG(what)).p;
}

/* --- values */

static bool is_among(const char *names, struct str key)
{
	struct str rest = str_of(names), one;
	for (bool more = true; more;) {
		more = str_cut(rest, ' ', &one, &rest);
		if (str_eq(one, key))
			return true;
	}
	return false;
}

/* Each key is one of the names, which stand between spaces. */
static bool keys_check(struct reading *r, const char *at, const json_t *object, const char *names)
{
	const char *key;
	const json_t *value;
	if (!json_is_object(object)) {
		fault(r, at, "must be an object with some of: %s", names);
		return false;
	}
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		if (!is_among(names, str_of(key)))
			fault(r, place_in(r, at, key), "is not known here; there are: %s", names);
	}
	return !r->why;
}

static struct str text_read(struct reading *r, const char *at, const json_t *object, const char *name, bool needed)
{
	const json_t *value = json_object_get(object, name);
	struct str text = json_str_of(value);
	if (!value && !needed)
		return STR("");
	if (!json_is_string(value) || !text.n || text.n > TEXT_MAX)
		fault(r, place_in(r, at, name), "must be a text of 1 to %d bytes", TEXT_MAX);
	return arena_dup(r->arena, text);
}

/* A decimal number as text, in steps of 10^-digits. */
static bool decimal_parse(struct str text, int digits, int64_t max, int64_t *ret_value)
{
	int64_t value = 0;
	int after = -1;
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (c == '.' && after < 0 && i > 0 && i + 1 < text.n) {
			after = 0;
			continue;
		}
		if (c < '0' || c > '9' || after == digits || value > max)
			return false;
		value = value * 10 + (c - '0');
		after += after >= 0;
	}
	for (after = after < 0 ? 0 : after; after < digits && value <= max; after++)
		value *= 10;
	*ret_value = value;
	return text.n > 0 && value <= max;
}

static int64_t decimal_read(struct reading *r, const char *at, const json_t *object, const char *name, int digits,
                            int64_t max, const char *example)
{
	int64_t value = 0;
	const json_t *given = json_object_get(object, name);
	if (json_is_number(given))
		fault(r, place_in(r, at, name), "must be a text, so that it is exact: \"%s\"", example);
	else if (!decimal_parse(json_str_of(given), digits, max, &value))
		fault(r, place_in(r, at, name),
		      "must be a decimal number as text with at most %d digits after the point: \"%s\"", digits,
		      example);
	return value;
}

static int64_t percent_read(struct reading *r, const char *at, const json_t *object, const char *name)
{
	return decimal_read(r, at, object, name, 4, 1000000, "12.5");
}

static int64_t date_read(struct reading *r, const char *at, const json_t *object, const char *name, int64_t otherwise)
{
	const json_t *value = json_object_get(object, name);
	struct str text = json_str_of(value);
	int64_t ms = otherwise;
	if (value && (text.n != 10 || text.p[4] != '-' || text.p[7] != '-' || !clock_parse(text, &ms)))
		fault(r, place_in(r, at, name), "must be a day in UTC: \"2026-11-01\"");
	return ms;
}

static void dates_read(struct reading *r, const char *at, const json_t *object, int64_t *ret_from, int64_t *ret_to)
{
	*ret_from = date_read(r, at, object, "from", INT64_MIN);
	*ret_to = date_read(r, at, object, "to", FOREVER);
	if (*ret_to <= *ret_from)
		fault(r, place_in(r, at, "to"), "must be after \"from\": it is the first day that is no longer meant");
}

/* An array of so many; 0 when there is none, or it is no array. */
static size_t list_size(struct reading *r, const char *at, const json_t *object, const char *name, size_t min,
                        size_t max)
{
	const json_t *list = json_object_get(object, name);
	size_t count = json_array_size(list);
	if ((list && !json_is_array(list)) || count < min || count > max)
		fault(r, place_in(r, at, name), "must be a list of %zu to %zu", min, max);
	return r->why ? 0 : count;
}

static const struct str *texts_read(struct reading *r, const char *at, const json_t *object, const char *name,
                                    size_t *ret_count)
{
	size_t count = list_size(r, at, object, name, 0, LIST_MAX);
	struct str *list = arena_new_array(r->arena, struct str, count + 1);
	for (size_t i = 0; i < count; i++) {
		list[i] = arena_dup(r->arena, json_item(json_object_get(object, name), i));
		if (!list[i].n)
			fault(r, place_nth(r, at, name, i), "must be a text");
	}
	if (json_object_get(object, name) && !count)
		fault(r, place_in(r, at, name), "is empty: leave it out when all are meant");
	*ret_count = count;
	return list;
}

/* --- prices */

static void tier_read(struct reading *r, const char *at, const json_t *tier, bool last, struct price_tier *t)
{
	const json_t *to = json_object_get(tier, "to"), *from = json_object_get(tier, "from");
	if (!keys_check(r, at, tier, "from to price"))
		return;
	t->nano = decimal_read(r, at, tier, "price", NANO_DIGITS, NANO_MAX, "0.08");
	if (from && (!json_is_integer(from) || json_integer_value(from) != t->from))
		fault(r, place_in(r, at, "from"), "must be %lld, where the tier before ends", (long long)t->from);
	if (last && to)
		fault(r, place_in(r, at, "to"), "must not be there: the last tier has no end");
	if (last)
		return;
	t->to = json_integer_value(to);
	if (!json_is_integer(to) || t->to <= t->from || t->to > UNITS_MAX)
		fault(r, place_in(r, at, "to"), "must be a whole number of units above %lld, at most %lld",
		      (long long)t->from, (long long)UNITS_MAX);
}

static void tiers_read(struct reading *r, const char *at, const json_t *price, struct price *p)
{
	size_t count = list_size(r, at, price, "tiers", 1, LIST_MAX);
	struct price_tier *tiers = arena_new_array(r->arena, struct price_tier, count + 1);
	for (size_t i = 0; i < count; i++) {
		tiers[i].from = i ? tiers[i - 1].to : 0;
		tier_read(r, place_nth(r, at, "tiers", i), json_array_get(json_object_get(price, "tiers"), i),
		          i + 1 == count, &tiers[i]);
	}
	p->tiers = tiers;
	p->tier_count = count;
}

static void price_read(struct reading *r, const char *at, const json_t *price, struct price *p)
{
	if (!keys_check(r, at, price, "from to regions price tiers"))
		return;
	dates_read(r, at, price, &p->from_ms, &p->to_ms);
	p->regions = texts_read(r, at, price, "regions", &p->region_count);
	if (!json_object_get(price, "price") == !json_object_get(price, "tiers")) {
		fault(r, at, "must have either \"price\" or \"tiers\"");
		return;
	}
	if (json_object_get(price, "tiers")) {
		tiers_read(r, at, price, p);
		return;
	}
	struct price_tier *only = arena_new_of(r->arena, struct price_tier);
	only->nano = decimal_read(r, at, price, "price", NANO_DIGITS, NANO_MAX, "0.08");
	p->tiers = only;
	p->tier_count = 1;
}

static bool region_is_of(const struct price *p, struct str region)
{
	for (size_t i = 0; i < p->region_count; i++)
		if (str_eq(p->regions[i], region))
			return true;
	return false;
}

/* Whether both hold for some region on some day, neither before the other. */
static bool prices_clash(const struct price *a, const struct price *b)
{
	if (a->to_ms <= b->from_ms || b->to_ms <= a->from_ms || !a->region_count != !b->region_count)
		return false;
	bool shared = !a->region_count;
	for (size_t i = 0; i < a->region_count; i++)
		shared |= region_is_of(b, a->regions[i]);
	return shared;
}

static void prices_list_read(struct reading *r, const char *at, const json_t *sku, struct sku *s)
{
	size_t count = list_size(r, at, sku, "prices", 1, LIST_MAX);
	struct price *prices = arena_new_array(r->arena, struct price, count + 1);
	for (size_t i = 0; i < count && !r->why; i++) {
		const char *here = place_nth(r, at, "prices", i);
		price_read(r, here, json_array_get(json_object_get(sku, "prices"), i), &prices[i]);
		for (size_t k = 0; k < i && !r->why; k++)
			if (prices_clash(&prices[i], &prices[k]))
				fault(r, here, "holds for days and regions for which prices[%zu] holds too", k);
	}
	s->prices = prices;
	s->price_count = count;
}

/* --- SKUs */

/* What is metered has a unit of its own, whatever it costs: the name says which; NULL: it is not metered. */
static const char *unit_metered(struct str id)
{
	static const struct {
		const char *part, *unit;
	} parts[] = {{"_STORAGE", "GB hours"}, {"_EXPORT", "GB"},     {"_SNAPSHOT", "each"},
	             {"_INSTANCE_", "hours"},  {"_ROUTER_", "hours"}, {"_READ_ONLY_", "hours"},
	             {"_ANALYTICS_", "hours"}};
	for (size_t i = 0; id.n && i < sizeof parts / sizeof *parts; i++) {
		size_t n = strlen(parts[i].part);
		const char *at = memmem(id.p, id.n, parts[i].part, n);
		if (at && (parts[i].part[n - 1] == '_' || at + n == id.p + id.n))
			return parts[i].unit;
	}
	return NULL;
}

static enum price_unit unit_read(struct reading *r, const char *at, const json_t *sku)
{
	struct str text = json_field(sku, "unit");
	const char *metered = unit_metered(json_field(sku, "id"));
	if (metered && !str_is(text, metered)) {
		fault(r, place_in(r, at, "unit"), "must be \"%s\", which is how it is metered", metered);
		return PRICE_COUNT;
	}
	for (int u = 0; u < PRICE_UNITS; u++)
		if (str_is(text, units[u].name))
			return (enum price_unit)u;
	fault(r, place_in(r, at, "unit"), "must be \"hours\", \"GB hours\", \"GB\" or \"each\"");
	return PRICE_COUNT;
}

static bool id_is_good(struct str id)
{
	for (size_t i = 0; i < id.n; i++)
		if (!((id.p[i] >= 'A' && id.p[i] <= 'Z') || (id.p[i] >= '0' && id.p[i] <= '9') || id.p[i] == '_'))
			return false;
	return id.n > 0 && id.n <= 100;
}

#define SERVICES                                                                                                       \
	"Svc|Clusters|Storage|Serverless Instances|Backup|Data Transfer|BI Connector|DSC Compute|DSC Storage|Premium " \
	"Features|Svc Data Federation|Svc Stream Processing|App Services|Charts|Cloud Manager|Cloud Manager "          \
	"Standard/Premium|Legacy Backup|AI Model APIs|Automated Embedding|Native Reranking|Flex "                      \
	"Consulting|Support|Credits"

static void sku_read(struct reading *r, const char *at, const json_t *sku, struct sku *s)
{
	if (!keys_check(r, at, sku, "id description service provider unit prices"))
		return;
	s->id = text_read(r, at, sku, "id", true);
	s->description = text_read(r, at, sku, "description", true);
	s->service = text_read(r, at, sku, "service", true);
	s->provider = text_read(r, at, sku, "provider", true);
	if (!id_is_good(s->id))
		fault(r, place_in(r, at, "id"), "must be of capital letters, digits and _");
	if (!str_is_one_of(SERVICES, s->service))
		fault(r, place_in(r, at, "service"), "must be one of %s", SERVICES);
	if (!str_is_one_of("AWS|GCP|AZURE|SVC", s->provider))
		fault(r, place_in(r, at, "provider"), "must be AWS, GCP, AZURE or SVC");
	s->unit = unit_read(r, at, sku);
	prices_list_read(r, at, sku, s);
}

static int text_compare(struct str a, struct str b)
{
	int c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
	return c ? c : a.n < b.n ? -1 : a.n > b.n;
}

static int sku_compare(const void *a, const void *b)
{
	return text_compare(((const struct sku *)a)->id, ((const struct sku *)b)->id);
}

static void skus_read(struct reading *r, const json_t *book, struct price_book *b)
{
	size_t count = list_size(r, "", book, "skus", 1, SKUS_MAX);
	struct sku *skus = arena_new_array(r->arena, struct sku, count + 1);
	for (size_t i = 0; i < count && !r->why; i++)
		sku_read(r, place_nth(r, "", "skus", i), json_array_get(json_object_get(book, "skus"), i), &skus[i]);
	if (r->why)
		return;
	qsort(skus, count, sizeof *skus, sku_compare);
	for (size_t i = 1; i < count; i++)
		if (str_eq(skus[i].id, skus[i - 1].id))
			fault(r, "skus", "has \"%.*s\" more than once", STR_ARG(skus[i].id));
	b->skus = skus;
	b->sku_count = count;
}

/* --- organizations */

static void discounts_read(struct reading *r, const char *at, const json_t *org, struct price_org *o)
{
	size_t count = list_size(r, at, org, "discounts", 0, LIST_MAX);
	struct price_discount *list = arena_new_array(r->arena, struct price_discount, count + 1);
	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_array_get(json_object_get(org, "discounts"), i);
		const char *here = place_nth(r, at, "discounts", i);
		if (!keys_check(r, here, one, "percent skus from to note"))
			return;
		dates_read(r, here, one, &list[i].from_ms, &list[i].to_ms);
		list[i].ppm = percent_read(r, here, one, "percent");
		list[i].skus = texts_read(r, here, one, "skus", &list[i].sku_count);
		list[i].note = text_read(r, here, one, "note", false);
	}
	o->discounts = list;
	o->discount_count = count;
}

static void credits_read(struct reading *r, const char *at, const json_t *org, struct price_org *o)
{
	size_t count = list_size(r, at, org, "credits", 0, LIST_MAX);
	struct price_credit *list = arena_new_array(r->arena, struct price_credit, count + 1);
	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_array_get(json_object_get(org, "credits"), i);
		const char *here = place_nth(r, at, "credits", i);
		if (!keys_check(r, here, one, "id amount from to note"))
			return;
		dates_read(r, here, one, &list[i].from_ms, &list[i].to_ms);
		list[i].id = text_read(r, here, one, "id", true);
		list[i].note = text_read(r, here, one, "note", false);
		list[i].cents = decimal_read(r, here, one, "amount", 2, CENTS_MAX, "500.00");
		for (size_t k = 0; k < i; k++)
			if (str_eq(list[k].id, list[i].id))
				fault(r, place_in(r, here, "id"), "is that of credits[%zu] too", k);
	}
	o->credits = list;
	o->credit_count = count;
}

static int org_compare(const void *a, const void *b)
{
	return text_compare(((const struct price_org *)a)->id, ((const struct price_org *)b)->id);
}

static bool org_id_is_good(const char *id)
{
	return strlen(id) == 24 && strspn(id, "0123456789abcdef") == 24;
}

static void party_read(struct reading *r, const char *in, const json_t *object, const char *name, struct price_party *p)
{
	const json_t *party = json_object_get(object, name);
	const char *at = place_in(r, in, name);
	if (!party || !keys_check(r, at, party, "name address taxId"))
		return;
	p->name = text_read(r, at, party, "name", true);
	p->tax_id = text_read(r, at, party, "taxId", false);
	p->address = texts_read(r, at, party, "address", &p->address_count);
	if (p->address_count > ADDRESS_MAX)
		fault(r, place_in(r, at, "address"), "must have at most %d lines", ADDRESS_MAX);
}

static int64_t due_read(struct reading *r, const json_t *book)
{
	const json_t *days = json_object_get(book, "dueDays");
	if (days && (!json_is_integer(days) || json_integer_value(days) < 0 || json_integer_value(days) > DUE_MAX))
		fault(r, "dueDays", "must be a whole number from 0 to %d", DUE_MAX);
	return days ? json_integer_value(days) : DUE_DAYS;
}

static void orgs_read(struct reading *r, const json_t *book, struct price_book *b)
{
	const json_t *all = json_object_get(book, "organizations");
	struct price_org *orgs = arena_new_array(r->arena, struct price_org, json_object_size(all) + 1);
	const char *id;
	json_t *org;
	if (all && !json_is_object(all))
		fault(r, "organizations", "must be an object, by the ids of organizations");
	json_object_foreach((json_t *)(uintptr_t)all, id, org)
	{
		const char *at = place_in(r, "organizations", id);
		struct price_org *o = &orgs[b->org_count++];
		if (!org_id_is_good(id))
			fault(r, at, "is no id of an organization: those have 24 hexadecimal digits");
		if (!keys_check(r, at, org, "taxPercent discounts credits customer"))
			return;
		o->id = arena_dup(r->arena, str_of(id));
		o->tax_ppm = json_object_get(org, "taxPercent") ? percent_read(r, at, org, "taxPercent") : -1;
		party_read(r, at, org, "customer", &o->customer);
		discounts_read(r, at, org, o);
		credits_read(r, at, org, o);
	}
	qsort(orgs, b->org_count, sizeof *orgs, org_compare);
	b->orgs = orgs;
}

static bool currency_is_good(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] < 'A' || text.p[i] > 'Z')
			return false;
	return text.n == 3;
}

int price_book_take(struct arena *a, const json_t *book, struct price_book *ret_book, const char **ret_why)
{
	struct reading r = {.arena = a};
	struct price_book b = {.currency = STR_NONE};
	if (keys_check(&r, "", book, "currency taxPercent issuer dueDays skus organizations")) {
		b.currency = text_read(&r, "", book, "currency", true);
		if (!currency_is_good(b.currency))
			fault(&r, "currency", "must be three capital letters: \"USD\"");
		b.tax_ppm = json_object_get(book, "taxPercent") ? percent_read(&r, "", book, "taxPercent") : 0;
		party_read(&r, "", book, "issuer", &b.issuer);
		b.due_days = due_read(&r, book);
		skus_read(&r, book, &b);
		orgs_read(&r, book, &b);
	}
	if (r.why) {
		*ret_why = r.why;
		return -EINVAL;
	}
	*ret_book = b;
	return 0;
}

json_t *price_book_load(struct arena *a, struct str text, const char **ret_why)
{
	json_error_t error;
	json_t *book = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &error);
	if (!book)
		*ret_why = arena_printf(a, "line %d, column %d: %s", error.line, error.column, error.text).p;
	return book ? json_keep(a, book) : NULL;
}

int price_book_parse(struct arena *a, struct str text, struct price_book *ret_book, const char **ret_why)
{
	const json_t *book = price_book_load(a, text, ret_why);
	return book ? price_book_take(a, book, ret_book, ret_why) : -EINVAL;
}

/* --- looking up */

const struct sku *price_book_sku(const struct price_book *b, struct str id)
{
	const struct sku key = {.id = id};
	return id.n ? bsearch(&key, b->skus, b->sku_count, sizeof key, sku_compare) : NULL;
}

const struct price_org *price_book_org(const struct price_book *b, struct str org_id)
{
	const struct price_org key = {.id = org_id};
	return org_id.n && b->org_count ? bsearch(&key, b->orgs, b->org_count, sizeof key, org_compare) : NULL;
}

const struct price *sku_price(const struct sku *s, struct str region, int64_t day_ms)
{
	const struct price *general = NULL;
	for (size_t i = 0; i < s->price_count; i++) {
		const struct price *p = &s->prices[i];
		if (day_ms < p->from_ms || day_ms >= p->to_ms)
			continue;
		if (region_is_of(p, region))
			return p;
		if (!p->region_count)
			general = p;
	}
	return general;
}

static bool discount_takes(const struct price_discount *d, struct str sku)
{
	for (size_t i = 0; i < d->sku_count; i++) {
		struct str name = d->skus[i];
		bool begins = str_ends(name, STR("*"));
		if (begins ? str_starts(sku, (struct str){name.p, name.n - 1}) : str_eq(name, sku))
			return true;
	}
	return !d->sku_count;
}

int64_t price_discount(const struct price_org *org, struct str sku, int64_t day_ms, struct str *ret_note)
{
	int64_t best = 0;
	struct str note = STR_NONE;
	for (size_t i = 0; org && i < org->discount_count; i++) {
		const struct price_discount *d = &org->discounts[i];
		if (day_ms < d->from_ms || day_ms >= d->to_ms || d->ppm <= best || !discount_takes(d, sku))
			continue;
		best = d->ppm;
		note = d->note;
	}
	if (ret_note)
		*ret_note = note;
	return best;
}

int64_t price_tax(const struct price_book *b, const struct price_org *org)
{
	return org && org->tax_ppm >= 0 ? org->tax_ppm : b->tax_ppm;
}

/* The price book: what it refuses and in which words; which price holds where and when; tiers; cents that add up. */
#include "prices/prices.h"

#include "base/clock.h"
#include "base/json.h"
#include "check.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static struct arena *a;

#define SKU(prices)                                                                                               \
	"{\"currency\":\"EUR\",\"taxPercent\":\"19\",\"skus\":[{\"id\":\"AWS_STORAGE\",\"description\":\"Disk\"," \
	"\"service\":\"Storage\",\"provider\":\"AWS\",\"unit\":\"GB hours\",\"prices\":" prices "}]}"

static struct price_book good(const char *text)
{
	struct price_book b = {.currency = STR_NONE};
	const char *why = NULL;
	int r = price_book_parse(a, str_of(text), &b, &why);
	CHECK(r == 0);
	if (r < 0)
		fprintf(stderr, "%s\n", why);
	return b;
}

static void bad(const char *text, const char *words)
{
	struct price_book b;
	const char *why = "";
	CHECK(price_book_parse(a, str_of(text), &b, &why) == -EINVAL);
	CHECK(strstr(why, words) != NULL);
	if (!strstr(why, words))
		fprintf(stderr, "\"%s\" is not in \"%s\"\n", words, why);
}

static int64_t day(const char *text)
{
	int64_t ms = 0;
	CHECK(clock_parse(str_of(text), &ms));
	return ms;
}

static void test_faults(void)
{
	bad("{\"currency\": }", "line 1, column");
	bad("{\"currency\":\"EUR\",\"currency\":\"EUR\"}", "duplicate");
	bad("[]", "the book: must be an object");
	bad("{\"currency\":\"euro\",\"skus\":[]}", "currency: must be three capital letters");
	bad("{\"currency\":\"EUR\",\"skus\":[]}", "skus: must be a list of 1 to");
	bad("{\"currency\":\"EUR\",\"sku\":[]}", "sku: is not known here");
	bad("{\"currency\":\"EUR\",\"tax Percent\":\"1\"}", "is not known here");
	bad("{\"currency\":\"EUR\",\"issuer\":{\"address\":[\"x\"]}}", "issuer.name: must be a text");
	bad("{\"currency\":\"EUR\",\"issuer\":{\"name\":\"x\",\"phone\":\"1\"}}", "issuer.phone: is not known here");
	bad("{\"currency\":\"EUR\",\"issuer\":{\"name\":\"x\",\"address\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\","
	    "\"8\",\"9\"]}}",
	    "issuer.address: must have at most 8 lines");
	bad("{\"currency\":\"EUR\",\"dueDays\":366}", "dueDays: must be a whole number from 0 to 365");
	bad("{\"currency\":\"EUR\",\"skus\":[{}]}", "skus[0].id: must be");
	bad(SKU("[]"), "skus[0].prices: must be a list of 1 to");
	bad(SKU("[{}]"), "skus[0].prices[0]: must have either \"price\" or \"tiers\"");
	bad(SKU("[{\"price\":0.08}]"), "skus[0].prices[0].price: must be a text, so that it is exact");
	bad(SKU("[{\"price\":\"0.0000000001\"}]"), "at most 9 digits after the point");
	bad(SKU("[{\"price\":\"-1\"}]"), "skus[0].prices[0].price: must be a decimal number as text");
	bad(SKU("[{\"price\":\"1.\"}]"), "must be a decimal number");
	bad(SKU("[{\"price\":\".5\"}]"), "must be a decimal number");
	bad(SKU("[{\"price\":\"1.2.3\"}]"), "must be a decimal number");
	bad(SKU("[{\"price\":\"\"}]"), "must be a decimal number");
	bad(SKU("[{\"price\":\"1000001\"}]"), "must be a decimal number");
	bad(SKU("[{\"price\":\"99999999999999999999999999\"}]"), "must be a decimal number");
	bad(SKU("[{\"price\":\"1\",\"from\":\"2026-13-01\"}]"), "skus[0].prices[0].from: must be a day in UTC");
	bad(SKU("[{\"price\":\"1\",\"from\":\"2026-11-01T00:00\"}]"), "must be a day in UTC");
	bad(SKU("[{\"price\":\"1\",\"from\":\"2026-11-01\",\"to\":\"2026-11-01\"}]"), "to: must be after \"from\"");
	bad(SKU("[{\"price\":\"1\",\"regions\":[]}]"), "regions: is empty");
	bad(SKU("[{\"price\":\"1\"},{\"price\":\"2\",\"from\":\"2026-01-01\"}]"),
	    "skus[0].prices[1]: holds for days and regions for which prices[0] holds too");
	bad(SKU("[{\"price\":\"1\",\"regions\":[\"A\",\"B\"]},{\"price\":\"2\",\"regions\":[\"B\"]}]"),
	    "prices[1]: holds for days");
	bad("{\"currency\":\"EUR\",\"skus\":[{\"id\":\"AWS_STORAGE\",\"description\":\"d\",\"service\":\"Storage\","
	    "\"provider\":\"AWS\",\"unit\":\"each\",\"prices\":[{\"price\":\"1\"}]}]}",
	    "unit: must be \"GB hours\", which is how it is metered");
	bad(SKU("[{\"tiers\":[{\"price\":\"1\"},{\"price\":\"2\"}]}]"), "tiers[0].to: must be a whole number of units");
	bad(SKU("[{\"tiers\":[{\"to\":5,\"price\":\"1\"},{\"from\":6,\"price\":\"2\"}]}]"),
	    "skus[0].prices[0].tiers[1].from: must be 5, where the tier before ends");
	bad(SKU("[{\"tiers\":[{\"to\":5,\"price\":\"1\"}]}]"), "tiers[0].to: must not be there");
	bad("{\"currency\":\"EUR\",\"skus\":[{\"id\":\"aws\"}]}", "skus[0].description: must be a text");
	bad("{\"currency\":\"EUR\",\"skus\":[{\"id\":\"aws\",\"description\":\"d\",\"service\":\"Storage\","
	    "\"provider\":\"AWS\",\"unit\":\"GB\",\"prices\":[{\"price\":\"1\"}]}]}",
	    "skus[0].id: must be of capital letters");
}

static void test_org_faults(void)
{
#define ORG(text)                                                                                                   \
	"{\"currency\":\"EUR\",\"skus\":[{\"id\":\"A\",\"description\":\"d\",\"service\":\"Storage\",\"provider\":" \
	"\"AWS\","                                                                                                  \
	"\"unit\":\"GB\",\"prices\":[{\"price\":\"1\"}]}],\"organizations\":{" text "}}"
	bad(ORG("\"x\":{}"), "organizations.x: is no id of an organization");
	bad(ORG("\"0123456789abcdef01234567\":{\"discounts\":[{\"percent\":\"101\"}]}"),
	    "organizations.0123456789abcdef01234567.discounts[0].percent: must be a decimal number");
	bad(ORG("\"0123456789abcdef01234567\":{\"credits\":[{\"id\":\"c\",\"amount\":\"1.001\"}]}"),
	    "credits[0].amount: must be a decimal number as text with at most 2 digits");
	bad(ORG("\"0123456789abcdef01234567\":{\"credits\":[{\"id\":\"c\",\"amount\":\"1\"},{\"id\":\"c\","
	        "\"amount\":\"2\"}]}"),
	    "credits[1].id: is that of credits[0] too");
	bad(ORG("\"0123456789abcdef01234567\":{\"rebate\":1}"), "rebate: is not known here");
}

static void test_dates(void)
{
	struct price_book b = good(
	        SKU("[{\"price\":\"1\",\"to\":\"2026-03-01\"},{\"price\":\"2\",\"from\":\"2026-03-01\","
	            "\"to\":\"2026-06-01\"},{\"price\":\"3\",\"regions\":[\"EU_WEST_1\"],\"from\":\"2026-04-01\"}]"));
	const struct sku *s = price_book_sku(&b, STR("AWS_STORAGE"));
	CHECK(s && price_book_sku(&b, STR("AWS_STORAG")) == NULL && price_book_sku(&b, STR("")) == NULL);
	CHECK(sku_price(s, STR("US_EAST_1"), day("2026-02-28"))->tiers[0].nano == 1000000000);
	CHECK(sku_price(s, STR("US_EAST_1"), day("2026-03-01"))->tiers[0].nano == 2000000000);
	CHECK(sku_price(s, STR("EU_WEST_1"), day("2026-03-31"))->tiers[0].nano == 2000000000);
	CHECK(sku_price(s, STR("EU_WEST_1"), day("2026-04-01"))->tiers[0].nano == 3000000000);
	CHECK(sku_price(s, STR("US_EAST_1"), day("2026-06-01")) == NULL);
	CHECK(sku_price(s, STR("EU_WEST_1"), day("2036-06-01"))->tiers[0].nano == 3000000000);
	CHECK(b.tax_ppm == 190000 && str_is(b.currency, "EUR") && b.due_days == 14 && !b.issuer.name.n);
}

static void test_orgs(void)
{
	struct price_book b =
	        good(ORG("\"0123456789abcdef01234567\":{\"taxPercent\":\"7.5\",\"discounts\":[{\"percent\":\"10\"},"
	                 "{\"percent\":\"12.5\",\"skus\":[\"AWS_*\"],\"from\":\"2026-02-01\",\"to\":\"2026-03-01\","
	                 "\"note\":\"winter\"}],\"credits\":[{\"id\":\"c\",\"amount\":\"500.5\"}]}"));
	const struct price_org *o = price_book_org(&b, STR("0123456789abcdef01234567"));
	struct str note;
	CHECK(o && price_tax(&b, o) == 75000 && price_tax(&b, NULL) == 0);
	CHECK(price_discount(o, STR("AWS_X"), day("2026-02-01"), &note) == 125000 && str_is(note, "winter"));
	CHECK(price_discount(o, STR("GCP_X"), day("2026-02-01"), &note) == 100000 && !note.n);
	CHECK(price_discount(o, STR("AWS_X"), day("2026-03-01"), NULL) == 100000);
	CHECK(price_discount(NULL, STR("AWS_X"), day("2026-03-01"), NULL) == 0);
	CHECK(o->credit_count == 1 && o->credits[0].cents == 50050);
	CHECK(price_book_org(&b, STR("0123456789abcdef01234568")) == NULL);
}

/* A quantity in one piece costs what it costs in any pieces. */
static void test_tiers(void)
{
	struct price_book b =
	        good(SKU("[{\"tiers\":[{\"to\":10,\"price\":\"0\"},{\"to\":100,\"price\":\"0.000000003\"},"
	                 "{\"price\":\"0.07\"}]}]"));
	const struct price *p = sku_price(&b.skus[0], STR(""), 0);
	const int64_t unit = price_unit_parts(PRICE_GB_HOURS);
	struct price_part parts[3];
	CHECK(price_split(p, PRICE_GB_HOURS, 0, 10 * unit, parts) == 1 && parts[0].amount == 0);
	CHECK(price_split(p, PRICE_GB_HOURS, 0, 0, parts) == 0);
	CHECK(price_split(p, PRICE_GB_HOURS, 5 * unit, 100 * unit, parts) == 3);
	CHECK(parts[0].quantity == 5 * unit && parts[1].quantity == 90 * unit && parts[2].quantity == 5 * unit);
	CHECK(parts[0].tier->from == 0 && parts[1].tier->to == 100 && parts[2].tier->to == 0);
	CHECK(parts[2].amount == 35 * MONEY_CENT);
	CHECK(price_split(p, PRICE_GB_HOURS, 100 * unit, 1, parts) == 1 && parts[0].amount == 70000000);
	money_atoms whole = 0, pieces = 0;
	for (size_t i = price_split(p, PRICE_GB_HOURS, 0, 200 * unit, parts); i-- > 0;)
		whole += parts[i].amount;
	int64_t done = 0;
	srand(7);
	while (done < 200 * unit) {
		int64_t some = rand() % (3 * unit) + 1;
		some = some < 200 * unit - done ? some : 200 * unit - done;
		for (size_t i = price_split(p, PRICE_GB_HOURS, done, some, parts); i-- > 0;)
			pieces += parts[i].amount;
		done += some;
	}
	CHECK(whole == pieces);
}

static void test_units(void)
{
	struct price_tier tier = {.nano = 360000000}; /* 0.36 */
	struct price p = {.tiers = &tier, .tier_count = 1};
	struct price_part part;
	CHECK(price_split(&p, PRICE_NODE_HOURS, 0, 100, &part) == 1 && part.amount == MONEY_CENT); /* 100 seconds */
	CHECK(price_split(&p, PRICE_GB, 0, 1000000, &part) == 1 && part.amount == 36 * MONEY_CENT);
	CHECK(price_split(&p, PRICE_COUNT, 0, 2, &part) == 1 && part.amount == 72 * MONEY_CENT);
	CHECK(money_share(3 * MONEY_CENT, 500000) == MONEY_CENT * 3 / 2 && money_share(MONEY_CENT, 0) == 0);
	CHECK(money_share(-3 * MONEY_CENT, 1000000) == -3 * MONEY_CENT);
}

static void test_cents(void)
{
	const money_atoms thirds[] = {MONEY_CENT / 3, MONEY_CENT / 3, MONEY_CENT / 3};
	const money_atoms uneven[] = {MONEY_CENT / 4, MONEY_CENT / 2, MONEY_CENT / 4};
	int64_t cents[50];
	CHECK(money_cents(thirds, 3, cents) == 1 && cents[0] == 1 && cents[1] == 0 && cents[2] == 0);
	CHECK(money_cents(uneven, 3, cents) == 1 && cents[0] == 0 && cents[1] == 1 && cents[2] == 0);
	const money_atoms halves[] = {MONEY_CENT / 2, MONEY_CENT / 2, -MONEY_CENT / 2};
	CHECK(money_cents(halves, 3, cents) == 1 && cents[0] + cents[1] + cents[2] == 1);
	CHECK(money_cents(halves, 0, cents) == 0);
	srand(11);
	for (int round = 0; round < 200; round++) {
		money_atoms list[50], sum = 0;
		int64_t added = 0;
		for (int i = 0; i < 50; i++) {
			list[i] = money_times(MONEY_CENT, rand() % 50 - 10) +
			          money_times(MONEY_CENT / 1000, rand() % 1000);
			sum += list[i];
		}
		int64_t total = money_cents(list, 50, cents);
		for (int i = 0; i < 50; i++) {
			money_atoms off = money_times(MONEY_CENT, cents[i]) - list[i];
			CHECK(off > -MONEY_CENT && off < MONEY_CENT);
			added += cents[i];
		}
		money_atoms off = money_times(MONEY_CENT, total) - sum;
		CHECK(added == total && off <= MONEY_CENT / 2 && off >= -MONEY_CENT / 2);
	}
}

/* --- books over time */

static void file_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

static int64_t price_on(const struct prices *p, int64_t ms)
{
	const struct sku *s = price_book_sku(prices_at(p, ms), STR("AWS_STORAGE"));
	return sku_price(s, STR(""), ms)->tiers[0].nano / 1000000000;
}

/* A changed book never changes what a day before it costs. */
static void test_versions(void)
{
	char dir[] = "/tmp/prices-XXXXXX", path[64];
	struct store *store = NULL;
	struct prices *p = NULL, *other = NULL;
	CHECK(mkdtemp(dir) != NULL);
	snprintf(path, sizeof path, "%s/book.json", dir);
	CHECK(store_open(&(struct store_options){.data_dir = dir}, &store) == 0);
	CHECK(prices_read(store, &p) == 0 && prices_newest(p)->sku_count > 400);
	prices_close(p);
	const int64_t day_ms = INT64_C(86400000), today = clock_now_ms() / day_ms * day_ms;
	file_write(path, SKU("[{\"price\":\"1\"}]"));
	CHECK(prices_open(store, path, &p) == 0 && price_on(p, 0) == 1 && price_on(p, today + 9 * day_ms) == 1);
	file_write(path, SKU("[{\"price\":\"2\"}]"));
	CHECK(prices_reload(p) == 0);
	int64_t tomorrow = clock_now_ms() / day_ms * day_ms + day_ms;
	CHECK(price_on(p, today) == 1 && price_on(p, tomorrow) == 2 && price_on(p, tomorrow + 99 * day_ms) == 2);
	file_write(path, SKU("[ {\"price\" : \"3\"}]"));
	CHECK(prices_reload(p) == 0 && prices_reload(p) == 0);
	CHECK(price_on(p, today) == 1 && price_on(p, tomorrow) == 3);
	CHECK(prices_read(store, &other) == 0 && price_on(other, today) == 1 && price_on(other, tomorrow) == 3);
	prices_close(other);
	file_write(path, "{");
	int saved = dup(2), null = open("/dev/null", O_WRONLY);
	dup2(null, 2);
	close(null);
	CHECK(prices_reload(p) == -EINVAL);
	unlink(path);
	CHECK(prices_reload(p) == -ENOENT);
	dup2(saved, 2);
	close(saved);
	CHECK(price_on(p, tomorrow) == 3);
	prices_close(p);
	store_close(store);
	const char *const files[] = {"steward.db", "steward.db-wal", "steward.db-shm"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, files[i]);
		unlink(path);
	}
	CHECK(rmdir(dir) == 0);
}

/* Every size of every provider has its price. */
static void test_standard(void)
{
	struct price_book b;
	const char *why;
	CHECK(price_book_parse(a, price_book_standard(), &b, &why) == 0);
	CHECK(price_book_sku(&b, STR("AWS_INSTANCE_M10")) && price_book_sku(&b, STR("GCP_ROUTER_M30")) &&
	      price_book_sku(&b, STR("AZURE_STORAGE")) && price_book_sku(&b, STR("AWS_INSTANCE_FLEX")));
}

int main(void)
{
	json_setup();
	a = arena_new();
	test_faults();
	test_org_faults();
	test_dates();
	test_orgs();
	test_tiers();
	test_units();
	test_cents();
	test_versions();
	test_standard();
	arena_free(a);
	return CHECK_DONE();
}

/* Lines that add up to the cent whatever they cost; and a host that was away when its days were billed: what it tells
 * later becomes lines of the open invoice, once. */
#include "billing/billing.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "check.h"
#include "store/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define T0 INT64_C(1761955200000) /* 2025-11-01 */
#define ORG STR("6740c3a1f2b4d5e6a7b8c9d0")

static struct arena *a;
static struct store *store;
static struct tx *reader;
static struct prices *prices;

/* --- cents */

static void test_cents(void)
{
	enum { LINES = 50 };
	struct bill_line lines[LINES];
	srandom(18);
	for (int round = 0; round < 40; round++) {
		int64_t carry = 0, given = 0;
		money_atoms all = 0;
		for (int day = 0; day < 31; day++) {
			size_t count = (size_t)(random() % LINES);
			int64_t sum = 0;
			for (size_t i = 0; i < count; i++) {
				lines[i] = (struct bill_line){.net = (money_atoms)random() * random() /
				                                     (1 + random() % 1000)};
				all += lines[i].net;
			}
			int64_t total = lines_cents(a, lines, count, &carry);
			for (size_t i = 0; i < count; i++) {
				int64_t whole = (int64_t)(lines[i].net / MONEY_CENT);
				CHECK(lines[i].cents == whole || lines[i].cents == whole + 1);
				sum += lines[i].cents;
			}
			CHECK(sum == total);
			given += total;
			CHECK(given == (int64_t)((all + MONEY_CENT / 2) / MONEY_CENT));
		}
		arena_reset(a);
	}
}

static void test_largest_remainder(void)
{
	struct bill_line lines[3] = {{.net = MONEY_CENT / 3}, {.net = MONEY_CENT / 2}, {.net = MONEY_CENT / 2}};
	int64_t carry = 0;
	CHECK(lines_cents(a, lines, 3, &carry) == 1);
	CHECK(lines[0].cents == 0 && lines[1].cents == 1 && lines[2].cents == 0);
	CHECK(carry == (int64_t)(MONEY_CENT / 3));
}

static bool decimal_is(int64_t value, int64_t parts, const char *wanted)
{
	struct buf b = {0};
	decimal_write(&b, value, parts);
	bool same = str_is(buf_view(&b), wanted);
	buf_free(&b);
	return same;
}

static void test_decimals(void)
{
	CHECK(decimal_is(0, 1, "0") && decimal_is(-150, 100, "-1.5") && decimal_is(259201, 3600, "72.000277778"));
	CHECK(decimal_is(INT64_C(3600000000) * 5 - 1, INT64_C(3600000000), "5") && decimal_is(7, 10000, "0.0007"));
}

/* More disks than 64 bits count in a month: the tiers stay at the last one. */
static void test_huge(void)
{
	struct usage row = {.day_ms = T0,
	                    .sku = STR("AWS_STORAGE"),
	                    .provider = STR("AWS"),
	                    .region = STR("US_EAST_1"),
	                    .quantity = INT64_C(1000000000000000000)};
	struct bill_state state = {.tiers = json_new(a)};
	struct bill_line *lines;
	int64_t cents = 0;
	for (int day = 0; day < 12; day++) {
		size_t count = lines_make(a, prices, ORG, &row, 1, T0 + DAY_MS, &state, &lines);
		int64_t more = lines_cents(a, lines, count, &state.carry);
		CHECK(count == 1 && lines[0].parts == row.quantity && more > 0);
		CHECK(!cents || (more - cents >= -1 && more - cents <= 1));
		cents = more;
	}
	CHECK(json_number(state.tiers, "AWS_STORAGE/US_EAST_1") > 0);
}

/* --- a host that is away */

struct told {
	struct str host;
	int64_t at_ms;
	bool begins;
};

static int told_run(struct tx *tx, void *ctx)
{
	const struct told *t = ctx;
	struct meter_subject s = {.org_id = ORG,
	                          .group_id = STR("6740c3a1f2b4d5e6a7b8c9d1"),
	                          .group_name = STR("project"),
	                          .id = STR("6740c3a1f2b4d5e6a7b8c9d2"),
	                          .name = STR("cluster"),
	                          .host = t->host};
	struct meter_thing node = {.key = STR("node/a"),
	                           .sku = STR("AWS_INSTANCE_M10"),
	                           .provider = STR("AWS"),
	                           .region = STR("US_EAST_1"),
	                           .amount = 1};
	return t->begins ? meter_begin(tx, a, &s, &node, t->at_ms) : meter_mark(tx, a, t->host, t->at_ms);
}

static void tell(struct str host, int64_t at_ms, bool begins)
{
	struct told t = {host, at_ms, begins};
	CHECK(store_write_wait(store, told_run, &t) == 0);
}

static int org_run(struct tx *tx, void *ctx)
{
	struct doc org = {.kind = STR("org"), .id = ORG, .created_ms = T0, .body = STR("{\"name\":\"org\"}")};
	return tx_insert(tx, &org);
}

static void bill(int64_t now_ms)
{
	struct billing_run run = {.store = store, .reader = reader, .prices = prices, .now_ms = now_ms};
	CHECK(invoices_advance(&run, ORG) == 0);
	CHECK(invoices_late(&run, ORG) == 0);
}

/* The invoices, and the parts that all of them have billed. */
static int64_t billed(size_t *ret_invoices, int64_t *ret_late)
{
	struct doc *invoices, *docs;
	size_t count;
	int64_t parts = 0;
	*ret_late = 0;
	tx_begin_read(reader);
	CHECK(tx_list_all(reader, a, INVOICE_KIND, ORG, &invoices, ret_invoices) == 0);
	for (size_t i = 0; i < *ret_invoices; i++) {
		int64_t cents = 0;
		CHECK(tx_list_all(reader, a, LINES_KIND, invoices[i].id, &docs, &count) == 0);
		for (size_t k = 0; k < count; k++) {
			const json_t *keys = json_object_get(doc_json(a, docs[k].secret), "keys"), *key;
			size_t n;
			*ret_late += memmem(docs[k].body.p, docs[k].body.n, "late;", 5) != NULL;
			json_array_foreach(keys, n, key)
			{
				parts += json_integer_value(json_array_get(key, 6));
				cents += json_integer_value(json_array_get(key, 3));
			}
		}
		CHECK(cents == json_number(doc_json(a, invoices[i].secret), "frozen"));
	}
	tx_end_read(reader);
	return parts;
}

static void cost_seen(void *ctx, const struct cost *c)
{
	*(int64_t *)ctx += c->cents;
}

/* Projects and clusters that are no more keep their names beside the lines, and beside the sums of a closed month. */
static void test_names(void)
{
	struct doc *docs;
	size_t count;
	tx_begin_read(reader);
	CHECK(tx_list_all(reader, a, INVOICE_KIND, ORG, &docs, &count) == 0 && count == 2);
	for (size_t n = 0; n < count; n++) {
		struct invoice i = invoice_of(a, &docs[n]);
		for (int64_t less = 0; less < 2; less++) {
			json_t *names = json_new(a);
			int64_t cents = 0;
			CHECK(costs_each(reader, &i, i.from_ms, i.to_ms - less, cost_seen, &cents, names) == 0);
			CHECK(str_is(json_field(names, "6740c3a1f2b4d5e6a7b8c9d1"), "project"));
			CHECK(str_is(json_field(names, "6740c3a1f2b4d5e6a7b8c9d2"), "cluster"));
		}
	}
	tx_end_read(reader);
}

static void test_late(void)
{
	size_t invoices;
	int64_t late;
	CHECK(store_write_wait(store, org_run, NULL) == 0);
	tell(STR("away"), T0 + DAY_MS, true);
	tell(STR("away"), T0 + DAY_MS * 28, false);
	bill(T0 + DAY_MS * 28);
	CHECK(billed(&invoices, &late) == 26 * 86400); /* the last day is only just over */
	bill(T0 + DAY_MS * 28 + HOUR_MS);
	CHECK(billed(&invoices, &late) == 27 * 86400 && invoices == 1 && !late);
	/* The host is not heard of: its days wait, and are then billed as they are known. */
	bill(T0 + DAY_MS * 31);
	CHECK(billed(&invoices, &late) == 27 * 86400 && invoices == 1);
	bill(T0 + DAY_MS * 32 - 1);
	CHECK(billed(&invoices, &late) == 27 * 86400 && invoices == 1);
	bill(T0 + DAY_MS * 32);
	CHECK(billed(&invoices, &late) == 27 * 86400 && invoices == 2 && !late);
	/* It is back, and was running all the time. */
	tell(STR("away"), T0 + DAY_MS * 33, false);
	bill(T0 + DAY_MS * 33 + HOUR_MS);
	CHECK(billed(&invoices, &late) == 32 * 86400 && invoices == 2 && late > 0);
	int64_t before = late;
	bill(T0 + DAY_MS * 33 + HOUR_MS * 2);
	CHECK(billed(&invoices, &late) == 32 * 86400 && late == before);
}

int main(void)
{
	char dir[] = "/tmp/billing-XXXXXX", path[64];
	json_setup();
	a = arena_new();
	test_cents();
	test_largest_remainder();
	test_decimals();
	if (!mkdtemp(dir) || seal_setup(dir) < 0 || store_open(&(struct store_options){.data_dir = dir}, &store) < 0 ||
	    prices_open(store, NULL, &prices) < 0)
		return 1;
	reader = store_reader(store);
	test_huge();
	test_late();
	test_names();
	prices_close(prices);
	store_reader_free(reader);
	CHECK(store_check(dir, stderr) == 0);
	store_close(store);
	const char *const files[] = {"steward.db", "steward.db-wal", "steward.db-shm", "secret.key"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, files[i]);
		unlink(path);
	}
	CHECK(rmdir(dir) == 0);
	arena_free(a);
	return CHECK_DONE();
}

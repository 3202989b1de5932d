/* Which tables of a server are measured: readings and names as a server would give them, without one. And what a
 * histogram tells. */
#include "base/buf.h"
#include "check.h"
#include "engine/postgres/observe/collections.h"

#include <math.h>

#define DB 5
#define ID "65f0000000000000000000a1"

/* What was given away in a round. */
static struct {
	struct {
		char name[TABLE_NAME];
		int64_t mono_us;
		double in[TABLE_INPUTS];
	} samples[100];
	size_t count;
	char names[50][TABLE_NAME];
	size_t name_count;
} got;

static void sample_note(void *ctx, const struct engine_sample *s)
{
	CHECK(s->subject == MEASURE_TABLE && strcmp(s->cluster_id, ID) == 0 && s->epoch == 7);
	snprintf(got.samples[got.count].name, TABLE_NAME, "%s", s->name);
	got.samples[got.count].mono_us = s->mono_us;
	memcpy(got.samples[got.count++].in, s->inputs, sizeof got.samples[0].in);
}

static void names_note(void *ctx, const char *cluster_id, const char *node, const char *const *names, size_t count)
{
	got.name_count = count;
	for (size_t i = 0; i < count; i++)
		snprintf(got.names[i], TABLE_NAME, "%s", names[i]);
}

static const struct engine_sampling to = {.whole = true, .take = sample_note, .tables = names_note};

static PGresult *result_new(int columns)
{
	PGresult *r = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	PGresAttDesc names[5] = {{.name = (char[]){"a"}},
	                         {.name = (char[]){"b"}},
	                         {.name = (char[]){"c"}},
	                         {.name = (char[]){"d"}},
	                         {.name = (char[]){"e"}}};
	CHECK(r && PQsetResultAttrs(r, columns, names));
	return r;
}

static void cell_set(PGresult *r, int row, int column, const char *text)
{
	char copy[400];
	int n = snprintf(copy, sizeof copy, "%s", text);
	CHECK(PQsetvalue(r, row, column, copy, n));
}

static void row_add(PGresult *r, unsigned relid, const char *kind, unsigned total_us, const char *buckets)
{
	int row = PQntuples(r);
	char number[16];
	snprintf(number, sizeof number, "%d", DB);
	cell_set(r, row, 0, number);
	snprintf(number, sizeof number, "%u", relid);
	cell_set(r, row, 1, number);
	cell_set(r, row, 2, kind);
	snprintf(number, sizeof number, "%u", total_us);
	cell_set(r, row, 3, number);
	cell_set(r, row, 4, buckets);
}

static void name_add(PGresult *r, unsigned relid, const char *name)
{
	int row = PQntuples(r);
	char number[16];
	snprintf(number, sizeof number, "%u", relid);
	cell_set(r, row, 0, number);
	cell_set(r, row, 1, name);
}

static void names_take(struct pg_tables *t, PGresult *names)
{
	pg_tables_names(t, DB, "shop", names);
	PQclear(names);
}

static void give(struct pg_tables *t)
{
	struct engine_sample s = {.cluster_id = ID, .node = "a", .epoch = 7};
	got.count = got.name_count = 0;
	pg_tables_give(t, &s, true, &to);
	pg_tables_forget(t);
}

static void test_readings(void)
{
	struct pg_tables *t = pg_tables_new();
	PGresult *r = result_new(5), *names = result_new(2);
	row_add(r, 100, "r", 3000, "{1,2,4,8,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,16}");
	row_add(r, 100, "w", 9000, "{0,0,0,0,0,0,0,0,0,0,3,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}");
	row_add(r, 200, "c", 50000, "{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0}");
	pg_tables_take(t, r, 1000000);
	CHECK(pg_tables_want(t, DB, "shop") && !pg_tables_want(t, DB + 1, "other"));
	give(t);
	CHECK(got.count == 0 && got.name_count == 0); /* no name is known */

	r = result_new(5);
	row_add(r, 100, "r", 3000, "{1,2,4,8,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,16}");
	row_add(r, 100, "w", 9000, "{0,0,0,0,0,0,0,0,0,0,3,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}");
	row_add(r, 200, "c", 50000, "{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0}");
	row_add(r, 300, "r", 10, "{1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}");
	pg_tables_take(t, r, 2000000);
	name_add(names, 100, "orders");
	name_add(names, 200, "s.items");
	name_add(names, 300, "new");
	names_take(t, names);
	CHECK(!pg_tables_want(t, DB, "shop"));
	give(t);
	CHECK(got.name_count == 3 && strcmp(got.names[0], "shop.s.items") == 0 &&
	      strcmp(got.names[1], "shop.orders") == 0);
	CHECK(got.count == 4 && strcmp(got.samples[1].name, "shop.orders") == 0 && got.samples[1].mono_us == 2000000);
	const double *in = got.samples[1].in;
	CHECK(in[TABLE_LEADS] == 1 && in[TABLE_TIME(TABLE_READS)] == 3 && in[TABLE_TIME(TABLE_WRITES)] == 9);
	CHECK(in[TABLE_COUNT(TABLE_READS, 0)] == 1 && in[TABLE_COUNT(TABLE_READS, 3)] == 8);
	CHECK(in[TABLE_COUNT(TABLE_READS, 27)] == 16 && in[TABLE_COUNT(TABLE_WRITES, 10)] == 3);
	/* The new one began at nothing, when the others were read last. */
	CHECK(strcmp(got.samples[2].name, "shop.new") == 0 && got.samples[2].mono_us == 1000000);
	CHECK(got.samples[2].in[TABLE_COUNT(TABLE_READS, 0)] == 0 &&
	      got.samples[3].in[TABLE_COUNT(TABLE_READS, 0)] == 1);

	/* One is dropped, one has another name. */
	r = result_new(5);
	row_add(r, 100, "r", 3000, "{1}");
	row_add(r, 200, "c", 50000, "{1}");
	pg_tables_take(t, r, 3000000);
	names = result_new(2);
	name_add(names, 100, "renamed");
	names_take(t, names);
	CHECK(!pg_tables_want(t, DB, "shop")); /* what is gone is not asked for again and again */
	give(t);
	CHECK(got.name_count == 1 && strcmp(got.names[0], "shop.renamed") == 0 && got.count == 1);
	pg_tables_free(t);
}

/* Table 1000 + i has taken i + 1 seconds. */
static void many_take(struct pg_tables *t, unsigned count, int64_t mono_us)
{
	PGresult *r = result_new(5), *names = result_new(2);
	for (unsigned i = 0; i < count; i++) {
		char name[16];
		row_add(r, 1000 + i, "r", (i + 1) * 1000000, "{1}");
		snprintf(name, sizeof name, "t%u", i);
		name_add(names, 1000 + i, name);
	}
	pg_tables_take(t, r, mono_us);
	names_take(t, names);
}

static bool was_given(const char *name)
{
	for (size_t i = 0; i < got.name_count; i++)
		if (strcmp(got.names[i], name) == 0)
			return true;
	return false;
}

static void test_first_and_pinned(void)
{
	struct pg_tables *t = pg_tables_new();
	const char *pins[] = {"shop.t3", "shop.unused", "elsewhere.t"};
	many_take(t, 30, 1000000);
	give(t);
	CHECK(got.name_count == TABLES_TOP && strcmp(got.names[0], "shop.t29") == 0 && !was_given("shop.t9"));

	pg_tables_pin(t, pins, 3);
	CHECK(pg_tables_want(t, DB, "shop") && pg_tables_want(t, 6, "elsewhere") && !pg_tables_want(t, 7, "other"));
	many_take(t, 30, 2000000);
	PGresult *names = result_new(2);
	for (unsigned i = 0; i < 30; i++) {
		char name[16];
		snprintf(name, sizeof name, "t%u", i);
		name_add(names, 1000 + i, name);
	}
	name_add(names, 77, "unused"); /* nobody has used it, so it has no row */
	names_take(t, names);
	give(t);
	CHECK(got.name_count == TABLES_TOP + 2 && was_given("shop.t3") && was_given("shop.unused"));
	CHECK(!was_given("shop.t4") && strcmp(got.samples[got.count - 1].name, "shop.unused") == 0);
	CHECK(got.samples[got.count - 1].in[TABLE_COUNT(TABLE_READS, 0)] == 0);

	pg_tables_pin(t, NULL, 0);
	many_take(t, 30, 3000000);
	give(t);
	CHECK(got.name_count == TABLES_TOP && !was_given("shop.t3") && !was_given("shop.unused"));
	pg_tables_free(t);
}

/* After a start of the service, what is kept goes on, also where the server began anew as well; a server's restart
 * takes nothing away. */
static void test_kept(void)
{
	struct pg_tables *t = pg_tables_new();
	const char *kept[] = {"shop.t2", "shop.idle", "shop.dropped", "later.x"};
	CHECK(pg_tables_is_new(t));
	pg_tables_keep(t, kept, 4);
	CHECK(!pg_tables_is_new(t));
	PGresult *r = result_new(5), *names = result_new(2);
	row_add(r, 1002, "r", 10, "{1}");
	pg_tables_take(t, r, 1000000);
	CHECK(pg_tables_want(t, DB, "shop") && pg_tables_want(t, 9, "later"));
	give(t);
	CHECK(got.count == 0 && got.name_count == 4); /* nothing goes before it was looked for */
	pg_tables_take(t, result_new(5), 2000000);
	name_add(names, 1002, "t2");
	name_add(names, 500, "idle");
	names_take(t, names);
	CHECK(!pg_tables_want(t, DB, "shop") && pg_tables_want(t, 9, "later"));
	give(t);
	CHECK(got.count == 2 && got.name_count == 3 && was_given("shop.t2") && was_given("shop.idle") &&
	      was_given("later.x"));
	many_take(t, 30, 3000000);
	give(t);
	CHECK(was_given("shop.t2") && !was_given("shop.dropped"));
	pg_tables_free(t);

	t = pg_tables_new();
	many_take(t, 5, 1000000);
	give(t);
	pg_tables_take(t, result_new(5), 2000000);
	give(t);
	CHECK(got.count == 5 && got.name_count == 5 && got.samples[0].in[TABLE_COUNT(TABLE_READS, 0)] == 0);
	pg_tables_free(t);
}

static void test_names_of_tables(void)
{
	CHECK(strcmp(pg_table_in("shop.a.b", "shop"), "a.b") == 0 &&
	      strcmp(pg_table_in("my.shop.t", "my.shop"), "t") == 0);
	CHECK(!pg_table_in("shop.", "shop") && !pg_table_in("shops.t", "shop") && !pg_table_in("shop", "shop"));
	struct buf b = {0};
	buf_c(&b, '{');
	pg_array_add(&b, STR("a\"b\\c"));
	pg_array_add(&b, STR("d,e"));
	CHECK(str_is(buf_view(&b), "{\"a\\\"b\\\\c\",\"d,e\""));
	buf_free(&b);
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9 * b;
}

/* Any time that a statement can have taken is found again within a tenth of it, or 5 us. */
static void test_buckets(void)
{
	CHECK(latency_bucket(0) == 0 && latency_bucket(9) == 0 && latency_bucket(10) == 1);
	CHECK(latency_bucket(99999999) == LATENCY_BUCKETS - 1 && latency_bucket(UINT64_MAX) == LATENCY_BUCKETS - 1);
	for (uint64_t us = 0; us < 100000000; us += 1 + us / 1000) {
		unsigned bucket = latency_bucket(us);
		CHECK(us < latency_bound_us(bucket) && (bucket == 0 || us >= latency_bound_us(bucket - 1)));
		CHECK(fabs(latency_middle_us(bucket) - (double)us) <= fmax(0.1 * (double)us, 5));
	}
}

/* Percentiles of a histogram, in milliseconds. */
static void test_percentiles(void)
{
	double counts[LATENCY_BUCKETS] = {0};
	CHECK(isnan(table_percentile(counts, 0.5)));
	counts[0] = 0.25;
	CHECK(near(table_percentile(counts, 0.5), 0.005) && near(table_percentile(counts, 1), 0.005));
	counts[0] = 0;
	counts[latency_bucket(585000)] = counts[latency_bucket(3000)] = 50;
	CHECK(fabs(table_percentile(counts, 0.25) - 3) <= 0.3 && fabs(table_percentile(counts, 0.5) - 3) <= 0.3);
	CHECK(fabs(table_percentile(counts, 0.51) - 585) <= 58.5 && fabs(table_percentile(counts, 1) - 585) <= 58.5);
	counts[LATENCY_BUCKETS - 1] = 1e6;
	CHECK(table_percentile(counts, 0.5) > 82000 && table_percentile(counts, 0.99) < 100000);
	for (size_t i = 0; i < LATENCY_BUCKETS; i++)
		counts[i] = 0.1 * (double)(i % 3);
	for (double share = 0.01, last = 0; share < 1; share += 0.01) {
		CHECK(table_percentile(counts, share) >= last);
		last = table_percentile(counts, share);
	}
}

/* Files of versions up to 1.0 have 26 buckets for each kind: what was counted stays where it was, as far as they tell. */
static void test_old_buckets(void)
{
	enum { OLD = 26, ROOM = 84 };
	const struct series_layout *layout = &measure_layouts[MEASURE_TABLE];
	float old[ROOM], now[TABLE_COLUMNS];
	double counts[LATENCY_BUCKETS], sum = 0;
	for (size_t i = 0; i < ROOM; i++)
		old[i] = 0;
	old[TABLE_LEADS] = 1;
	old[TABLE_TIME(TABLE_WRITES)] = 7;
	old[TABLE_COUNTS + 0 + 10] = 50;      /* reads: 2,048 to 4,096 us */
	old[TABLE_COUNTS + 2 * OLD + 25] = 3; /* commands: 67 seconds and longer */
	old[TABLE_COUNTS + OLD] = NAN;
	layout->convert(old, now);
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		counts[i] = (double)now[TABLE_COUNT(TABLE_READS, i)];
		sum += counts[i];
		CHECK(counts[i] == 0 || (latency_bound_us(i) > 2048 && latency_bound_us(i - 1) < 4096));
		CHECK(isnan(now[TABLE_COUNT(TABLE_WRITES, i)]));
	}
	CHECK(fabs(sum - 50) < 1e-4 && now[TABLE_LEADS] == 1 && now[TABLE_TIME(TABLE_WRITES)] == 7);
	CHECK(fabs(table_percentile(counts, 0.5) - 3.072) <= 0.31);
	CHECK(now[TABLE_COUNT(TABLE_COMMANDS, LATENCY_BUCKETS - 1)] > 2);
}

int main(void)
{
	test_readings();
	test_first_and_pinned();
	test_kept();
	test_names_of_tables();
	test_buckets();
	test_percentiles();
	test_old_buckets();
	return CHECK_DONE();
}

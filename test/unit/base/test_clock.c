/* Dates: every form of ISO 8601 that names a moment, and nothing else. */
#include "base/clock.h"

#include "check.h"

static bool is(const char *text, const char *expected)
{
	char out[CLOCK_TEXT] = "none";
	int64_t ms;
	if (clock_parse(str_of(text), &ms))
		clock_format(ms, out);
	if (strcmp(out, expected) != 0)
		fprintf(stderr, "%s: %s, not %s\n", text, out, expected);
	return strcmp(out, expected) == 0;
}

static void test_months(void)
{
	CHECK(is("2026-11-15", "2026-11-15T00:00:00Z"));
	CHECK(is("20261115T1030", "2026-11-15T10:30:00Z"));
	CHECK(is("2026-11-15T10:30:00,5+02:00", "2026-11-15T08:30:00Z"));
	CHECK(is("2026-11-15 10:30:00-0130", "2026-11-15T12:00:00Z"));
	CHECK(is("2024-02-29t23:59:60z", "2024-03-01T00:00:00Z"));
	CHECK(is("2026-12-31T24:00:00", "2027-01-01T00:00:00Z"));
	CHECK(is("2023-02-29", "none"));
	CHECK(is("2026-13-01", "none"));
	CHECK(is("2026-11", "none"));
	CHECK(is("2026-11-15T25:00", "none"));
	CHECK(is("2026-11-15T10:30:00+24:00", "none"));
	CHECK(is("9999-12-31T23:59:59-01:00", "none"));
}

static void test_years(void)
{
	CHECK(is("2026-319", "2026-11-15T00:00:00Z"));
	CHECK(is("2026319T10:00Z", "2026-11-15T10:00:00Z"));
	CHECK(is("2024-366", "2024-12-31T00:00:00Z"));
	CHECK(is("2026-001", "2026-01-01T00:00:00Z"));
	CHECK(is("2026-366", "none"));
	CHECK(is("2026-000", "none"));
	CHECK(is("2026-31", "none"));
}

static void test_weeks(void)
{
	CHECK(is("2026-W46-7", "2026-11-15T00:00:00Z"));
	CHECK(is("2026W467T103000Z", "2026-11-15T10:30:00Z"));
	CHECK(is("2026-W01-1", "2025-12-29T00:00:00Z"));
	CHECK(is("2020-W53-7", "2021-01-03T00:00:00Z"));
	CHECK(is("2021-W01-1", "2021-01-04T00:00:00Z"));
	CHECK(is("1969-W01-1", "1968-12-30T00:00:00Z"));
	CHECK(is("2021-W53-1", "none"));
	CHECK(is("2026-W00-1", "none"));
	CHECK(is("2026-W46-8", "none"));
	CHECK(is("2026-W46-0", "none"));
	CHECK(is("2026-W46", "none"));
	CHECK(is("2026-W467", "none"));
}

int main(void)
{
	test_months();
	test_years();
	test_weeks();
	return CHECK_DONE();
}

/* Durations: what they come to, and that none is longer than ten years, whatever the numbers. */
#include "base/duration.h"
#include "check.h"

#define DAY_MS INT64_C(86400000)

static int64_t length(const char *text)
{
	int64_t ms = -1;
	return duration_parse(str_of(text), &ms) ? ms : -1;
}

static void test_lengths(void)
{
	CHECK(length("PT1M") == 60000 && length("P1D") == DAY_MS && length("P1DT1S") == DAY_MS + 1000);
	CHECK(length("P10Y") == 3650 * DAY_MS && length("P3660D") == 3660 * DAY_MS);
	CHECK(length("P") < 0 && length("PT") < 0 && length("P1DT") < 0 && length("P0D") < 0 && length("PT1M1H") < 0);
}

/* Each product or sum of these is more than ten years, most of them more than 64 bits. */
static void test_bounds(void)
{
	CHECK(length("P999999333Y") < 0 && length("P1000000000Y") < 0 && length("P999999999M") < 0);
	CHECK(length("P18446744073709551615D") < 0 && length("PT9223372036854775807S") < 0);
	CHECK(length("P3661D") < 0 && length("P10Y11D") < 0 && length("P10Y3650D") < 0);
	CHECK(length("P10Y121M522W3660DT87840H5270400M316224000S") < 0);
}

int main(void)
{
	test_lengths();
	test_bounds();
	return CHECK_DONE();
}

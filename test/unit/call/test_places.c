/* Shares of places, and the pace of who reads. */
#include "call/places.h"
#include "call/stream.h"

#include "check.h"

#include <errno.h>

static void test_shares(void)
{
	struct places p = PLACES(16);
	CHECK(places_enter(&p, 1, 11) == 0 && places_enter(&p, 1, 11) == 0);
	CHECK(places_enter(&p, 1, 11) == -EDQUOT); /* an eighth for a caller */
	CHECK(places_enter(&p, 2, 11) == -EDQUOT); /* also in another organization */
	CHECK(places_enter(&p, 1, 12) == 0 && places_enter(&p, 1, 13) == 0);
	CHECK(places_enter(&p, 1, 14) == -EDQUOT); /* a quarter for an organization */
	places_leave(&p, 1, 12);
	CHECK(places_enter(&p, 1, 14) == 0);
}

static void test_reserve(void)
{
	struct places p = PLACES(16);
	for (uint64_t org = 1; org <= 3; org++)
		for (uint64_t caller = 0; caller < 4; caller++)
			CHECK(places_enter(&p, org, org * 10 + caller) == 0);
	CHECK(places_are_scarce(&p));
	CHECK(places_enter(&p, 4, 40) == 0);
	CHECK(places_enter(&p, 4, 41) == -EBUSY); /* who has one has no part of the reserve */
	CHECK(places_enter(&p, 5, 40) == -EBUSY);
	CHECK(places_enter(&p, 5, 50) == 0 && places_enter(&p, 6, 60) == 0 && places_enter(&p, 7, 70) == 0);
	CHECK(places_enter(&p, 8, 80) == -EBUSY);
	places_leave(&p, 2, 21);
	CHECK(places_enter(&p, 8, 80) == 0);
}

static void test_pace(void)
{
	const int64_t second = 1000000, window = STREAM_WINDOW_US / second;
	struct pace p = {0};
	uint64_t taken = 0;
	/* Fast enough, for any time. */
	for (int64_t i = 0; i < 10 * window; i++)
		CHECK(!pace_is_slow(&p, second, taken += STREAM_LEAST, STREAM_LEAST));
	/* A byte a second is no reading. */
	p = (struct pace){.taken = taken};
	for (int64_t i = 1; i < window; i++)
		CHECK(!pace_is_slow(&p, second, ++taken, STREAM_LEAST));
	CHECK(pace_is_slow(&p, second, ++taken, STREAM_LEAST));
	/* A pause counts with what comes after it in the window. */
	p = (struct pace){.taken = taken};
	CHECK(!pace_is_slow(&p, (window - 1) * second, taken, STREAM_LEAST));
	CHECK(!pace_is_slow(&p, second, taken + (uint64_t)window * STREAM_LEAST, STREAM_LEAST));
	/* All the time that we did not wait for it is not its own. */
	p = (struct pace){.taken = 0};
	CHECK(!pace_is_slow(&p, 0, 0, STREAM_LEAST));
}

int main(void)
{
	test_shares();
	test_reserve();
	test_pace();
	return CHECK_DONE();
}

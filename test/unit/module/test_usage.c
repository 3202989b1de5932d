/* What federated queries have read: days, weeks and months, and who begins a day. */
#include "module/usage.h"

#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t day_of(int year, int month, int day)
{
	/* Days by counting: from 1970, year by year and month by month. */
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	uint64_t n = 0;
	for (int y = 1970; y < year; y++)
		n += y % 4 == 0 && (y % 100 != 0 || y % 400 == 0) ? 366 : 365;
	for (int m = 1; m < month; m++)
		n += (uint64_t)lengths[m - 1] +
		     (m == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 1 : 0);
	return n + (uint64_t)day - 1;
}

static void test_spans_begin(void)
{
	for (int year = 1999; year < 2105; year++)
		for (int month = 1; month <= 12; month++) {
			uint64_t first = day_of(year, month, 1);
			CHECK(usage_begin(USAGE_MONTH, first) == first);
			CHECK(usage_begin(USAGE_MONTH, first + 27) == first);
			CHECK(usage_begin(USAGE_MONTH, first - 1) < first);
		}
	uint64_t monday = day_of(2026, 11, 16);
	for (uint64_t d = monday; d < monday + 7; d++)
		CHECK(usage_begin(USAGE_WEEK, d) == monday);
	CHECK(usage_begin(USAGE_WEEK, monday + 7) == monday + 7);
	CHECK(usage_begin(USAGE_DAY, monday) == monday);
}

static void test_days_are_begun(void)
{
	char path[] = "/tmp/steward-usage-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	uint64_t day = day_of(2026, 11, 18); /* a Wednesday */
	struct usage u = {.mark = USAGE_MARK, .day = day, .month = usage_month(day)};
	usage_count(&u, 100);
	usage_most(&u, 70);
	usage_most(&u, 30);
	u.queries = 3;
	CHECK(u.most == 70);
	usage_roll(&u, fd, day);
	CHECK(usage_sum(&u, USAGE_DAY, day) == 100);
	usage_roll(&u, fd, day + 1);
	CHECK(usage_sum(&u, USAGE_DAY, day + 1) == 0);
	usage_count(&u, 10);
	CHECK(usage_sum(&u, USAGE_DAY, day + 1) == 10 && usage_sum(&u, USAGE_WEEK, day + 1) == 110);
	/* Asked before anybody has begun the day. */
	CHECK(usage_sum(&u, USAGE_DAY, day + 2) == 0 && usage_sum(&u, USAGE_WEEK, day + 2) == 110);
	CHECK(usage_sum(&u, USAGE_WEEK, day + 5) == 0 && usage_sum(&u, USAGE_MONTH, day + 5) == 110);
	/* A clock that went back. */
	usage_roll(&u, fd, day);
	CHECK(u.day == day + 1);
	/* Another month: queries are counted anew. A place of the ring that had another day is empty. */
	CHECK(u.queries == 3);
	usage_roll(&u, fd, day + USAGE_DAYS);
	CHECK(u.queries == 0 && u.most == 0);
	CHECK(usage_sum(&u, USAGE_DAY, day + USAGE_DAYS) == 0);
	usage_count(&u, 5);
	CHECK(usage_sum(&u, USAGE_MONTH, day + USAGE_DAYS) == 5);
	usage_roll(&u, fd, day + 1000);
	CHECK(usage_sum(&u, USAGE_MONTH, day + 1000) == 0);
	close(fd);
	unlink(path);
}

int main(void)
{
	test_spans_begin();
	test_days_are_begun();
	return CHECK_DONE();
}

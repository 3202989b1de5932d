/* Times of schedules against a walk over minutes, and retentions. */
#include "api/snapshots/times.h"

#include "check.h"

#include <stdlib.h>
#include <time.h>

#define MINUTE 60000LL
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR_2026 1767225600000LL

static bool fits(const struct timed_item *item, const struct reference *at, int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000), tomorrow = seconds + 86400;
	struct tm t, next;
	gmtime_r(&seconds, &t);
	gmtime_r(&tomorrow, &next);
	bool time = t.tm_min == at->minute && t.tm_hour == at->hour;
	switch (item->frequency) {
	case HOURLY: return t.tm_min == at->minute && (t.tm_hour - at->hour + 24) % item->interval == 0;
	case WEEKLY: return time && (t.tm_wday + 6) % 7 + 1 == item->interval;
	case MONTHLY: return time && (item->interval == 40 ? next.tm_mday == 1 : t.tm_mday == item->interval);
	case YEARLY: return time && t.tm_mday == 1 && t.tm_mon + 1 == item->interval;
	case DAILY:
	case ON_DEMAND:
	case FREQUENCIES: break;
	}
	return time;
}

static int64_t walked(const struct timed_item *item, const struct reference *at, int64_t after)
{
	int64_t ms = after / MINUTE * MINUTE + MINUTE;
	while (!fits(item, at, ms))
		ms += MINUTE;
	return ms;
}

static void test_next(void)
{
	static const int64_t hours[] = {1, 2, 4, 6, 8, 12};
	srandom(7);
	for (int i = 0; i < 400; i++) {
		struct timed_item item = {.frequency = (enum frequency)(random() % YEARLY), .interval = 1};
		struct reference at = {(int)(random() % 24), (int)(random() % 60)};
		int64_t after = YEAR_2026 + random() % (3 * 365) * DAY + random() % DAY;
		if (item.frequency == HOURLY)
			item.interval = hours[random() % 6];
		else if (item.frequency == WEEKLY)
			item.interval = 1 + random() % 7;
		else if (item.frequency == MONTHLY)
			item.interval = random() % 4 ? 1 + random() % 28 : 40;
		int64_t next = item_next(&item, &at, after);
		CHECK(next == walked(&item, &at, after));
		CHECK(item_is_due(&item, &at, after, next) && !item_is_due(&item, &at, after, next - 1));
		CHECK(item_next(&item, &at, next) > next && item_next(&item, &at, next - 1) == next);
	}
	struct timed_item yearly = {YEARLY, 3};
	struct reference noon = {12, 0};
	CHECK(item_next(&yearly, &noon, YEAR_2026) == YEAR_2026 + (31 + 28) * DAY + 12 * HOUR);
	CHECK(item_next(&yearly, &noon, YEAR_2026 + 200 * DAY) == YEAR_2026 + (365 + 31 + 28) * DAY + 12 * HOUR);
}

static void test_rules(void)
{
	CHECK(frequency_find(STR("hourly")) == HOURLY && frequency_find(STR("ON_DEMAND")) == ON_DEMAND);
	CHECK(frequency_find(STR("never")) < 0 && frequency_find(STR_NONE) < 0);
	CHECK(frequency_allows(HOURLY, 6) && !frequency_allows(HOURLY, 5) && !frequency_allows(HOURLY, 3) &&
	      !frequency_allows(HOURLY, 0) && !frequency_allows(HOURLY, 24));
	CHECK(frequency_allows(MONTHLY, 40) && !frequency_allows(MONTHLY, 29) && !frequency_allows(DAILY, 2));
	CHECK(retention_ms(STR("days"), 2) == 2 * DAY && retention_ms(STR("WEEKS"), 1) == 7 * DAY);
	CHECK(retention_ms(STR("days"), 0) == 0 && retention_ms(STR("days"), -1) == 0);
	CHECK(retention_ms(STR("years"), INT64_MAX) == 0 && retention_ms(STR("fortnights"), 1) == 0);
	CHECK(schedule_from(5, 9) == 5 && schedule_from(9 + DAY, 9) == 9 + DAY && schedule_from(10 + 2 * DAY, 9) == 9);
}

/* Each cluster has its own time in a period, and keeps it. */
static void test_drills(void)
{
	unsigned parts[7] = {0};
	for (unsigned i = 0; i < 700; i++) {
		char id[25];
		snprintf(id, sizeof id, "67%06x0000000000%06x", i / 10, i * 7919);
		int64_t after = YEAR_2026 + random() % (365 * DAY), next = drill_next(str_of(id), after, 7 * DAY);
		CHECK(next > after && next <= after + 7 * DAY);
		CHECK(drill_next(str_of(id), next, 7 * DAY) == next + 7 * DAY);
		CHECK(drill_next(str_of(id), next - 1, 7 * DAY) == next);
		parts[next % (7 * DAY) / DAY]++;
	}
	for (unsigned i = 0; i < 7; i++)
		CHECK(parts[i] > 50 && parts[i] < 170);
	CHECK(drill_next(STR("67"), 5, 1) == 6);
}

static void test_overdue(void)
{
	/* Complete at half past, each hour on the hour. */
	CHECK(overdue_from(HOUR / 2, HOUR, 2 * HOUR) == HOUR / 2 + 2 * HOUR);
	/* Never before the second of the times that it missed. */
	CHECK(overdue_from(0, 7 * DAY, 8 * DAY) == 8 * DAY);
}

int main(void)
{
	test_next();
	test_rules();
	test_drills();
	test_overdue();
	return CHECK_DONE();
}

/* Times of schedules. Days are counted, not walked: a schedule that was not looked at for years costs no more than one
 * that was looked at a minute ago. */
#include "api/snapshots/times.h"

#include <strings.h>
#include <time.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)
#define CENTURY_DAYS 36525LL
#define LAST_DAY 40

static const struct {
	const char *name, *other, *intervals;
} frequencies[FREQUENCIES] = {
        {"hourly", "HOURLY", "1, 2, 4, 6, 8 or 12"},   {"daily", "DAILY", "1"},
        {"weekly", "WEEKLY", "from 1 to 7"},           {"monthly", "MONTHLY", "from 1 to 28, or 40 for the last day"},
        {"yearly", "YEARLY", "a month, from 1 to 12"}, {"ondemand", "ON_DEMAND", "1"},
};

int frequency_find(struct str name)
{
	for (int i = 0; i < FREQUENCIES; i++)
		if (str_is(name, frequencies[i].name) || str_is(name, frequencies[i].other))
			return i;
	return -1;
}

const char *frequency_name(enum frequency f)
{
	return frequencies[f].name;
}

const char *frequency_intervals(enum frequency f)
{
	return frequencies[f].intervals;
}

bool frequency_allows(enum frequency f, int64_t interval)
{
	switch (f) {
	case HOURLY: return interval >= 1 && interval <= 12 && 24 % interval == 0 && interval != 3;
	case WEEKLY: return interval >= 1 && interval <= 7;
	case MONTHLY: return (interval >= 1 && interval <= 28) || interval == LAST_DAY;
	case YEARLY: return interval >= 1 && interval <= 12;
	case DAILY:
	case ON_DEMAND:
	case FREQUENCIES: break;
	}
	return interval == 1;
}

int64_t retention_ms(struct str unit, int64_t value)
{
	static const struct {
		const char *name;
		int64_t days;
	} units[] = {{"days", 1}, {"weeks", 7}, {"months", 31}, {"years", 366}};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (str_ieq(unit, str_of(units[i].name)))
			return value < 1 || value > CENTURY_DAYS / units[i].days ? 0 : value * units[i].days * DAY_MS;
	return 0;
}

static int64_t day_ms(int year, int month, int day)
{
	struct tm t = {.tm_year = year - 1900, .tm_mon = month, .tm_mday = day};
	return (int64_t)timegm(&t) * 1000;
}

static struct tm date_of(int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm t;
	gmtime_r(&seconds, &t);
	return t;
}

/* The day of the item in that month (from 0, and beyond 11 in the next year). */
static int64_t month_day(const struct timed_item *item, int year, int month)
{
	if (item->frequency == YEARLY)
		return day_ms(year, (int)item->interval - 1, 1);
	return item->interval == LAST_DAY ? day_ms(year, month + 1, 0) : day_ms(year, month, (int)item->interval);
}

int64_t item_next(const struct timed_item *item, const struct reference *at, int64_t after_ms)
{
	int64_t ref = at->hour * HOUR_MS + at->minute * MINUTE_MS, day = after_ms / DAY_MS * DAY_MS;
	if (item->frequency == HOURLY) {
		int64_t step = item->interval * HOUR_MS, first = ref % step, since = after_ms - day;
		return day + first + (since < first ? 0 : (since - first) / step * step + step);
	}
	if (item->frequency == DAILY || item->frequency == ON_DEMAND)
		return day + ref > after_ms ? day + ref : day + ref + DAY_MS;
	if (item->frequency == WEEKLY) {
		int64_t weekday = (day / DAY_MS + 3) % 7; /* 1970 began on a Thursday; from Monday, 0 */
		int64_t next = day + (item->interval - 1 - weekday + 7) % 7 * DAY_MS + ref;
		return next > after_ms ? next : next + 7 * DAY_MS;
	}
	struct tm t = date_of(after_ms);
	int year = t.tm_year + 1900, month = t.tm_mon;
	for (;;) {
		int64_t next = month_day(item, year, month) + ref;
		if (next > after_ms)
			return next;
		if (item->frequency == YEARLY)
			year++;
		else
			month++;
	}
}

bool item_is_due(const struct timed_item *item, const struct reference *at, int64_t from_ms, int64_t to_ms)
{
	return from_ms < to_ms && item_next(item, at, from_ms) <= to_ms;
}

int64_t schedule_from(int64_t last_ms, int64_t now_ms)
{
	return last_ms > now_ms + DAY_MS ? now_ms : last_ms;
}

int64_t drill_next(struct str cluster_id, int64_t after_ms, int64_t period_ms)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < cluster_id.n; i++)
		hash = (hash ^ (unsigned char)cluster_id.p[i]) * 0x100000001b3u;
	int64_t place = (int64_t)(hash % (uint64_t)period_ms), next = after_ms - after_ms % period_ms + place;
	return next > after_ms ? next : next + period_ms;
}

int64_t overdue_from(int64_t last_ms, int64_t first_ms, int64_t second_ms)
{
	int64_t twice = last_ms + 2 * (second_ms - first_ms);
	return twice > second_ms ? twice : second_ms;
}

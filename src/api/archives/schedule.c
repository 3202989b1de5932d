/* Windows are looked for day by day, from the day before the moment on, because a window that begins in the evening may
 * end after midnight. A window is whole days apart from the next one, so the search ends within two months. */
#include "api/archives/schedule.h"

#include "base/json.h"

#include <time.h>

#define MINUTE_MS INT64_C(60000)
#define DAY_MS INT64_C(86400000)
#define DAYS_LOOKED_AT 64 /* more than lie between two windows of a month */

static bool has(const json_t *schedule, const char *name)
{
	return json_object_get(schedule, name);
}

static void day_check(const json_t *schedule, const char *type, const char *field, struct arena *a,
                      struct faults *faults)
{
	if (str_is(json_field(schedule, "type"), type) && !has(schedule, field))
		faults_add(faults, a, arena_printf(a, "schedule.%s", field), "is required where the type is %s", type);
}

static void hours_check(const json_t *schedule, struct arena *a, struct faults *faults)
{
	static const char *const pairs[][2] = {{"startHour", "endHour"},
	                                       {"endHour", "startHour"},
	                                       {"startMinute", "startHour"},
	                                       {"endMinute", "endHour"}};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		if (has(schedule, pairs[i][0]) && !has(schedule, pairs[i][1]))
			faults_add(faults, a, arena_printf(a, "schedule.%s", pairs[i][1]), "is required beside %s",
			           pairs[i][0]);
}

void archive_schedule_check(const json_t *schedule, struct arena *a, struct faults *faults)
{
	size_t before = faults->count;
	if (!json_field(schedule, "type").n) {
		faults_add(faults, a, STR("schedule.type"), "is required");
		return;
	}
	day_check(schedule, "WEEKLY", "dayOfWeek", a, faults);
	day_check(schedule, "MONTHLY", "dayOfMonth", a, faults);
	if (faults->count == before)
		hours_check(schedule, a, faults);
}

static int month_days(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return days[month] + (month == 1 && leap);
}

/* A month without that day has its window on its last one. */
static bool is_of_day(const json_t *schedule, int64_t day_ms)
{
	struct str type = json_field(schedule, "type");
	time_t at = (time_t)(day_ms / 1000);
	struct tm tm;
	gmtime_r(&at, &tm);
	if (str_is(type, "WEEKLY"))
		return json_number(schedule, "dayOfWeek") == (tm.tm_wday ? tm.tm_wday : 7);
	if (!str_is(type, "MONTHLY"))
		return true;
	json_int_t day = json_number(schedule, "dayOfMonth");
	int last = month_days(tm.tm_year + 1900, tm.tm_mon);
	return tm.tm_mday == (day < last ? day : last);
}

/* Of a day, in milliseconds; a schedule without hours is open all day, as one that ends when it starts is. */
static int64_t time_of_day(const json_t *schedule, const char *hour, const char *minute)
{
	return ((int64_t)json_number(schedule, hour) * 60 + json_number(schedule, minute)) * MINUTE_MS;
}

bool archive_schedule_window(const json_t *schedule, int64_t at_ms, struct archive_window *ret_window)
{
	struct str type = json_field(schedule, "type");
	if (!type.n || str_is(type, "DEFAULT"))
		return false;
	int64_t start = time_of_day(schedule, "startHour", "startMinute"),
	        end = time_of_day(schedule, "endHour", "endMinute"), day = at_ms - at_ms % DAY_MS - DAY_MS;
	if (end <= start)
		end += DAY_MS;
	for (int i = 0; i < DAYS_LOOKED_AT; i++, day += DAY_MS)
		if (day + end > at_ms && is_of_day(schedule, day)) {
			*ret_window = (struct archive_window){day + start, day + end};
			return true;
		}
	return false;
}

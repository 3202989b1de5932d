/* Days, months, and spans of seconds that are cut at them. */
#include "meter/interval.h"

#include "base/clock.h"

#include <stdio.h>

#define DAY_MS (DAY_SECONDS * 1000)

int64_t meter_day(int64_t ms)
{
	int64_t into = ms % DAY_MS;
	return ms - into - (into < 0 ? DAY_MS : 0);
}

static int64_t month_begin(int year, int month)
{
	char text[CLOCK_TEXT];
	int64_t ms = 0;
	year += month > 12;
	snprintf(text, sizeof text, "%04d-%02d-01", year, month > 12 ? month - 12 : month);
	return clock_parse(str_of(text), &ms) ? ms : 0;
}

static int digits(const char *text, size_t n)
{
	int value = 0;
	for (size_t i = 0; i < n; i++)
		value = value * 10 + (text[i] - '0');
	return value;
}

void meter_month(int64_t ms, char ret_month[METER_MONTH], int64_t *ret_from_ms, int64_t *ret_to_ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	int year = digits(text, 4), month = digits(text + 5, 2);
	if (ret_month)
		str_copy((struct str){text, METER_MONTH - 1}, ret_month, METER_MONTH);
	if (ret_from_ms)
		*ret_from_ms = month_begin(year, month);
	if (ret_to_ms)
		*ret_to_ms = month_begin(year, month + 1);
}

struct interval interval_common(struct interval a, struct interval b)
{
	return (struct interval){a.from > b.from ? a.from : b.from, a.to < b.to ? a.to : b.to};
}

static struct interval cut(struct interval i, int64_t end, struct interval *ret_rest)
{
	end = end < i.to ? end : i.to;
	*ret_rest = (struct interval){end, i.to};
	return (struct interval){i.from, end};
}

struct interval interval_day(struct interval i, struct interval *ret_rest)
{
	return cut(i, meter_day(i.from * 1000) / 1000 + DAY_SECONDS, ret_rest);
}

struct interval interval_month(struct interval i, struct interval *ret_rest)
{
	int64_t end;
	meter_month(i.from * 1000, NULL, NULL, &end);
	return cut(i, end / 1000, ret_rest);
}

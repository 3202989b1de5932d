/* Real and virtual time, and ISO 8601. */
#include "base/clock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

static atomic_bool is_virtual;
static _Atomic int64_t virtual_ms;

int64_t clock_machine_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_now_ms(void)
{
	return is_virtual ? virtual_ms : clock_machine_ms();
}

void clock_make_virtual(void)
{
	virtual_ms = clock_machine_ms();
	is_virtual = true;
}

bool clock_is_virtual(void)
{
	return is_virtual;
}

void clock_advance_ms(int64_t ms)
{
	virtual_ms += ms;
}

void clock_reset(void)
{
	virtual_ms = clock_machine_ms();
}

int64_t clock_mono_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_boot_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_put_back(struct clock_seen *s)
{
	struct clock_seen now = {clock_now_ms(), clock_boot_us() / 1000};
	int64_t passed = clock_is_virtual() ? 0 : now.boot_ms - s->boot_ms;
	int64_t back = s->ms ? s->ms + passed - now.ms : 0;
	*s = now;
	return back > 0 ? back : 0;
}

/* Converts between days since 1970-01-01 and a proleptic Gregorian date. It counts in 400-year eras that start in
 * March, so that the leap day is the last day of a year. */
static int64_t days_from_date(int64_t y, int m, int d)
{
	y -= m <= 2;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t yoe = y - era * 400;
	int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void date_from_days(int64_t days, int *ret_y, int *ret_m, int *ret_d)
{
	days += 719468;
	int64_t era = (days >= 0 ? days : days - 146096) / 146097;
	int64_t doe = days - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153;
	*ret_d = (int)(doy - (153 * mp + 2) / 5 + 1);
	*ret_m = (int)(mp < 10 ? mp + 3 : mp - 9);
	*ret_y = (int)(yoe + era * 400 + (*ret_m <= 2));
}

static void two_digits(char *p, int value)
{
	p[0] = (char)('0' + value / 10);
	p[1] = (char)('0' + value % 10);
}

void clock_format(int64_t ms, char ret_text[CLOCK_TEXT])
{
	int64_t s = ms / 1000;
	if (ms % 1000 < 0)
		s--;
	int64_t days = s / 86400, rest = s % 86400;
	if (rest < 0) {
		rest += 86400;
		days--;
	}
	int y, m, d;
	date_from_days(days, &y, &m, &d);
	if (y < 0 || y > 9999) {
		snprintf(ret_text, CLOCK_TEXT, "%04d-%02d-%02dT%02d:%02d:%02dZ", y, m, d, (int)(rest / 3600),
		         (int)(rest / 60 % 60), (int)(rest % 60));
		return;
	}
	/* Every document and event has a date, so this avoids the cost of snprintf(). */
	memcpy(ret_text, "0000-00-00T00:00:00Z", 21);
	two_digits(ret_text, y / 100);
	two_digits(ret_text + 2, y % 100);
	two_digits(ret_text + 5, m);
	two_digits(ret_text + 8, d);
	two_digits(ret_text + 11, (int)(rest / 3600));
	two_digits(ret_text + 14, (int)(rest / 60 % 60));
	two_digits(ret_text + 17, (int)(rest % 60));
}

struct scan {
	const char *p, *end;
};

static bool digits(struct scan *s, int count, int *ret_value)
{
	if (s->end - s->p < count)
		return false;
	int v = 0;
	for (int i = 0; i < count; i++) {
		if (s->p[i] < '0' || s->p[i] > '9')
			return false;
		v = v * 10 + (s->p[i] - '0');
	}
	s->p += count;
	*ret_value = v;
	return true;
}

static bool take(struct scan *s, char c)
{
	if (s->p >= s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static bool at_digit(const struct scan *s)
{
	return s->p < s->end && *s->p >= '0' && *s->p <= '9';
}

static bool scan_zone(struct scan *s, int *ret_minutes)
{
	int hours = 0, minutes = 0;
	if (s->p == s->end || take(s, 'Z') || take(s, 'z')) {
		*ret_minutes = 0;
		return s->p == s->end;
	}
	int sign = take(s, '+') ? 1 : take(s, '-') ? -1 : 0;
	if (!sign || !digits(s, 2, &hours) || hours > 23)
		return false;
	if (s->p < s->end) {
		take(s, ':');
		if (!digits(s, 2, &minutes) || minutes > 59)
			return false;
	}
	*ret_minutes = sign * (hours * 60 + minutes);
	return s->p == s->end;
}

static bool scan_time(struct scan *s, int *ret_seconds, int *ret_ms)
{
	int hour, minute = 0, second = 0, ms = 0;
	if (!digits(s, 2, &hour))
		return false;
	if (take(s, ':') || at_digit(s)) {
		if (!digits(s, 2, &minute))
			return false;
		if (take(s, ':') || at_digit(s)) {
			if (!digits(s, 2, &second))
				return false;
			if (take(s, '.') || take(s, ',')) {
				if (!at_digit(s))
					return false;
				for (int unit = 100; at_digit(s); s->p++, unit /= 10)
					ms += (*s->p - '0') * unit;
			}
		}
	}
	bool midnight_end = hour == 24 && !minute && !second && !ms;
	if ((hour > 23 && !midnight_end) || minute > 59 || second > 60)
		return false;
	*ret_seconds = hour * 3600 + minute * 60 + second;
	*ret_ms = ms;
	return true;
}

static bool is_leap(int y)
{
	return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

/* Month and day: "01-31" or "0131". */
static bool scan_month_day(struct scan *s, int y, bool extended, int64_t *ret_days)
{
	static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int m, d;
	if (!digits(s, 2, &m) || (extended && !take(s, '-')) || !digits(s, 2, &d))
		return false;
	if (m < 1 || m > 12 || d < 1 || d > month_days[m - 1] + (m == 2 && is_leap(y)))
		return false;
	*ret_days = days_from_date(y, m, d);
	return true;
}

/* Day of the year: "031". */
static bool scan_year_day(struct scan *s, int y, int64_t *ret_days)
{
	int d;
	if (!digits(s, 3, &d) || d < 1 || d > 365 + is_leap(y))
		return false;
	*ret_days = days_from_date(y, 1, 1) + d - 1;
	return true;
}

/* Day of the Monday that starts week 1: the week of 4 January. 1970-01-01 was a Thursday, day 3 when Monday is 0. */
static int64_t weeks_begin(int y)
{
	int64_t fourth = days_from_date(y, 1, 4);
	return fourth - ((fourth + 3) % 7 + 7) % 7;
}

/* Week and day of the week, from Monday: "W05-6" or "W056". */
static bool scan_week_day(struct scan *s, int y, bool extended, int64_t *ret_days)
{
	int week, d;
	if (!take(s, 'W') || !digits(s, 2, &week) || (extended && !take(s, '-')) || !digits(s, 1, &d))
		return false;
	int64_t days = weeks_begin(y) + (week - 1) * 7LL + d - 1;
	if (week < 1 || d < 1 || d > 7 || days >= weeks_begin(y + 1))
		return false;
	*ret_days = days;
	return true;
}

static bool scan_date(struct scan *s, int64_t *ret_days)
{
	int y;
	if (!digits(s, 4, &y))
		return false;
	bool extended = take(s, '-');
	if (s->p < s->end && *s->p == 'W')
		return scan_week_day(s, y, extended, ret_days);
	ptrdiff_t run = 0;
	while (run < s->end - s->p && s->p[run] >= '0' && s->p[run] <= '9')
		run++;
	return run == 3 ? scan_year_day(s, y, ret_days) : scan_month_day(s, y, extended, ret_days);
}

bool clock_parse(struct str text, int64_t *ret_ms)
{
	int64_t days;
	int seconds = 0, ms = 0, zone = 0;
	if (text.n == 0 || text.n > 64)
		return false;
	struct scan s = {text.p, text.p + text.n};
	if (!scan_date(&s, &days))
		return false;
	if (s.p < s.end) {
		if (!take(&s, 'T') && !take(&s, 't') && !take(&s, ' '))
			return false;
		if (!scan_time(&s, &seconds, &ms) || !scan_zone(&s, &zone))
			return false;
	}
	int64_t when = (days * 86400 + seconds - (int64_t)zone * 60) * 1000 + ms;
	/* A zone or 24:00 can lead outside the years that four digits can write. */
	if (when < days_from_date(0, 1, 1) * 86400000 || when >= days_from_date(10000, 1, 1) * 86400000)
		return false;
	*ret_ms = when;
	return true;
}

/* What the queries of a federated instance have read from stores: a file that all its servers' processes and the
 * service have mapped, so that a byte counts from the moment that it was read, whatever is killed then. The same
 * form counts all instances of a project on a host, in a file of the project's own.
 *
 * Bytes are counted by day, in UTC; weeks and months are sums of days. Who is the first of a day clears what is
 * old, with the file locked (flock), and only then tells the day: nobody counts into a day that is not told. Plain
 * C: the module and the service both include it. */
#ifndef STEWARD_MODULE_USAGE_H
#define STEWARD_MODULE_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>

#define USAGE_FILE "usage"
#define USAGE_QUERIES "queries" /* the directory of the log: a file for each day, YYYYMMDD, a line of JSON each */
#define USAGE_QUERIES_BYTES (16 << 20) /* of a day */
#define USAGE_MARK UINT64_C(0x3145474153555453)
#define USAGE_DAYS 64
#define USAGE_DAY_MS INT64_C(86400000)

/* As enum federation_span. */
enum usage_span { USAGE_QUERY, USAGE_DAY, USAGE_WEEK, USAGE_MONTH, USAGE_SPANS };

struct usage {
	uint64_t mark;
	uint64_t day, month; /* the last ones that were begun */
	uint64_t bytes[USAGE_DAYS];
	uint64_t most, queries, refused; /* of the month: bytes of one query, and how many queries */
	/* Written by the service alone. */
	uint64_t limit[USAGE_SPANS]; /* 0: none */
	uint64_t kill[USAGE_SPANS];  /* at the bound those that run end, too */
};

static inline uint64_t usage_get(const uint64_t *from)
{
	return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

static inline void usage_set(uint64_t *to, uint64_t value)
{
	__atomic_store_n(to, value, __ATOMIC_RELEASE);
}

static inline void usage_add(uint64_t *to, uint64_t more)
{
	__atomic_fetch_add(to, more, __ATOMIC_RELAXED);
}

static inline uint64_t usage_day(int64_t ms)
{
	return (uint64_t)(ms / USAGE_DAY_MS);
}

/* The first day of the month of a day. 1 March is the first of a year here, so that the day that not every year has
 * is the last. */
static inline uint64_t usage_month(uint64_t day)
{
	uint64_t shifted = day + 719468, era = shifted / 146097, of_era = shifted % 146097;
	uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	uint64_t of_year = of_era - (365 * year + year / 4 - year / 100);
	uint64_t month = (5 * of_year + 2) / 153;
	(void)era;
	return day - (of_year - (153 * month + 2) / 5);
}

/* The first day of a span that has the day in it; 1 January 1970 was a Thursday. */
static inline uint64_t usage_begin(enum usage_span span, uint64_t day)
{
	if (span == USAGE_WEEK)
		return day - (day + 3) % 7;
	return span == USAGE_MONTH ? usage_month(day) : day;
}

/* Nothing is counted twice or lost where two come at once. A clock that goes back counts for the day that was told. */
static inline void usage_roll(struct usage *u, int fd, uint64_t day)
{
	uint64_t month = usage_month(day);
	if (usage_get(&u->day) >= day || flock(fd, LOCK_EX) < 0)
		return;
	uint64_t told = usage_get(&u->day);
	if (told < day) {
		if (usage_get(&u->month) != month) {
			usage_set(&u->most, 0);
			usage_set(&u->queries, 0);
			usage_set(&u->refused, 0);
			usage_set(&u->month, month);
		}
		uint64_t from = told + 1 + USAGE_DAYS > day ? told + 1 : day + 1 - USAGE_DAYS;
		for (uint64_t d = from; d <= day; d++)
			usage_set(&u->bytes[d % USAGE_DAYS], 0);
		usage_set(&u->day, day);
	}
	flock(fd, LOCK_UN);
}

/* Bytes of the span that the day is in. */
static inline uint64_t usage_sum(const struct usage *u, enum usage_span span, uint64_t day)
{
	uint64_t told = usage_get(&u->day), sum = 0;
	for (uint64_t d = usage_begin(span, day); d <= day && d <= told; d++)
		sum += d + USAGE_DAYS > told ? usage_get(&u->bytes[d % USAGE_DAYS]) : 0;
	return sum;
}

static inline void usage_count(struct usage *u, uint64_t bytes)
{
	usage_add(&u->bytes[usage_get(&u->day) % USAGE_DAYS], bytes);
}

static inline void usage_most(struct usage *u, uint64_t bytes)
{
	uint64_t most = usage_get(&u->most);
	while (bytes > most &&
	       !__atomic_compare_exchange_n(&u->most, &most, bytes, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		;
}

#endif

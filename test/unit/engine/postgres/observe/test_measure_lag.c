/* Lag by one clock: from the places of a primary, asked each second, and the place that a standby has replayed. */
#include "check.h"
#include "engine/postgres/observe/measure_lag.h"

#include <math.h>
#include <stdbool.h>

#define SECOND 1000000LL
#define BASE 10000000.0

static bool near(double a, double b, double by)
{
	return fabs(a - b) <= by;
}

/* A primary that writes `rate` bytes a second from one second to the other. */
static void writes(struct pg_positions *p, int64_t from, int64_t to, double begin, double rate)
{
	for (int64_t s = from; s <= to; s++)
		pg_positions_note(p, begin + rate * (double)(s - from), s * SECOND);
}

static void lags(void)
{
	struct pg_positions p = {.count = 0};
	CHECK(isnan(pg_positions_lag(&p, BASE, SECOND).ms));
	/* It writes until second 100, is idle until 200, writes for 8 seconds. */
	writes(&p, 0, 100, BASE, 100000);
	double idle = BASE + 100 * 100000.0;
	writes(&p, 100, 200, idle, 0);
	CHECK(pg_positions_lag(&p, idle, 200 * SECOND).ms <= 0);
	CHECK(pg_positions_lag(&p, idle + 50, 200 * SECOND).bytes <= 0);
	writes(&p, 201, 208, idle + 50000, 50000);
	struct pg_lag all = pg_positions_lag(&p, idle, 208 * SECOND),
	              half = pg_positions_lag(&p, idle + 200000, 208 * SECOND);
	CHECK(near(all.ms, 8000, 1) && near(all.bytes, 400000, 8192));
	CHECK(near(half.ms, 4000, 200) && near(half.bytes, 200000, 8192));
	/* From before anything is known: at least so long. */
	CHECK(near(pg_positions_lag(&p, 1000, 208 * SECOND).ms, 208000, 1));
	/* A primary that has not told lately says nothing. */
	CHECK(isnan(pg_positions_lag(&p, idle, 240 * SECOND).ms) &&
	      isnan(pg_positions_lag(&p, (double)NAN, 208 * SECOND).ms));
}

/* The end of a page, and the same with the header of the next. */
static void pages(void)
{
	struct pg_positions p = {.count = 0};
	pg_positions_note(&p, 0x1000028, SECOND);
	CHECK(pg_positions_lag(&p, 0x1000000, 2 * SECOND).bytes <= 0);
	pg_positions_note(&p, 0x1000028 + 100, 2 * SECOND);
	CHECK(pg_positions_lag(&p, 0x1000000, 3 * SECOND).bytes > 0);
}

/* The new primary begins before the end of the old one's log: what it did not have is forgotten, what both have is not. */
static void failovers(void)
{
	struct pg_positions p = {.count = 0};
	writes(&p, 0, 20, BASE, 100000);
	pg_positions_note(&p, BASE + 15 * 100000.0 + 50000, 25 * SECOND);
	CHECK(pg_positions_lag(&p, BASE + 16 * 100000.0, 25 * SECOND).bytes <= 0);
	CHECK(near(pg_positions_lag(&p, BASE + 5 * 100000.0, 25 * SECOND).ms, 20000, 200));
}

/* Hours fit, and what is told is within some percent of the truth, at any age. */
static void hours(void)
{
	static struct pg_positions p;
	const int64_t end = 4 * 3600;
	writes(&p, 0, end, BASE, 10000);
	CHECK(p.count <= PG_POSITIONS);
	for (int64_t age = 2; age < end; age += 1 + age / 3) {
		double told = pg_positions_lag(&p, BASE + 10000.0 * (double)(end - age), end * SECOND).ms / 1000;
		CHECK(near(told, (double)age, 1 + 0.05 * (double)age));
	}
}

/* The same where it writes by fits, which lines between places do not follow. */
static void fits(void)
{
	static struct pg_positions p;
	double at = BASE;
	const int64_t end = 10000;
	double places[10001];
	for (int64_t s = 0; s <= end; s++) {
		at += s % 300 < 3 ? 500000 : 0;
		places[s] = at;
		pg_positions_note(&p, at, s * SECOND);
	}
	for (int64_t age = 2; age < end - 600; age += 1 + age / 3) {
		int64_t then = end - age;
		double told = pg_positions_lag(&p, places[then], end * SECOND).ms / 1000;
		while (then < end && places[then + 1] <= places[end - age])
			then++; /* it stayed there until then */
		if (then < end)
			CHECK(near(told, (double)(end - then), 2 + 0.05 * (double)age));
	}
}

int main(void)
{
	lags();
	pages();
	failovers();
	hours();
	fits();
	return CHECK_DONE();
}

/* Spans of whole seconds, cut at the borders of days and months in UTC: pure arithmetic. */
#ifndef STEWARD_METER_INTERVAL_H
#define STEWARD_METER_INTERVAL_H

#include "meter/meter.h"

#define DAY_SECONDS INT64_C(86400)

struct interval {
	int64_t from, to; /* seconds since 1970; to is excluded */
};

static inline int64_t interval_seconds(struct interval i)
{
	return i.to > i.from ? i.to - i.from : 0;
}

/* What both have; empty (to <= from) where there is nothing. */
struct interval interval_common(struct interval a, struct interval b);
/* The part of it that lies in the first day, or month, that it touches; *rest is what follows. */
struct interval interval_day(struct interval i, struct interval *ret_rest);
struct interval interval_month(struct interval i, struct interval *ret_rest);

#endif

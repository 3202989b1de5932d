/* When snapshots are taken, and how long they are kept: pure code. Times are milliseconds since 1970, in UTC. */
#ifndef STEWARD_API_SNAPSHOTS_TIMES_H
#define STEWARD_API_SNAPSHOTS_TIMES_H

#include "base/str.h"

#define BACKUP_DAY_MS 86400000LL

/* From the most frequent to the least, as snapshots name them. */
enum frequency { HOURLY, DAILY, WEEKLY, MONTHLY, YEARLY, ON_DEMAND, FREQUENCIES };

/* "hourly", as in policies, and "HOURLY", as in settings. -1: neither. */
int frequency_find(struct str name);
const char *frequency_name(enum frequency f);
/* Its longest form of an interval, for people: "1, 2, 4, 6, 8 or 12". */
const char *frequency_intervals(enum frequency f);
bool frequency_allows(enum frequency f, int64_t interval);

/* "days", "WEEKS" ...; 0: no such unit, or more than a hundred years. */
int64_t retention_ms(struct str unit, int64_t value);

struct timed_item {
	enum frequency frequency;
	int64_t interval; /* hours; the weekday from Monday, 1; the day of the month, 40 the last; the month */
};

struct reference {
	int hour, minute;
};

/* The first time of the item after that moment. */
int64_t item_next(const struct timed_item *item, const struct reference *at, int64_t after_ms);
/* Whether a time of the item lies in (from, to]. */
bool item_is_due(const struct timed_item *item, const struct reference *at, int64_t from_ms, int64_t to_ms);
/* From where times are looked for: `last`, unless the clock was set back by more than a day. */
int64_t schedule_from(int64_t last_ms, int64_t now_ms);

/* Of the times that come once in each period, at a place in it that is the cluster's own: the first after that
 * moment. */
int64_t drill_next(struct str cluster_id, int64_t after_ms, int64_t period_ms);
/* When there has been no snapshot for two periods; `first` and `second` are the schedule's times after the last one. */
int64_t overdue_from(int64_t last_ms, int64_t first_ms, int64_t second_ms);

#endif

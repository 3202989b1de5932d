/* The only place that reads the time. There are two clocks: the service's clock (real, or virtual in tests) for
 * everything that a caller can see, and the machine's monotonic clock for socket deadlines and latencies. */
#ifndef STEWARD_BASE_CLOCK_H
#define STEWARD_BASE_CLOCK_H

#include "base/str.h"

/* Milliseconds since 1970, of the service's clock. */
int64_t clock_now_ms(void);
/* The same of the machine's clock, never virtual: for what other services hold against theirs. */
int64_t clock_machine_ms(void);
/* From now on the service's clock stands still; only clock_advance_ms() moves it. */
void clock_make_virtual(void);
bool clock_is_virtual(void);
void clock_advance_ms(int64_t ms);
/* Sets a virtual clock to the machine's time. */
void clock_reset(void);

/* Microseconds, monotonic, never virtual. */
int64_t clock_mono_us(void);
/* The same, and goes on while the machine sleeps: for what others see age meanwhile. */
int64_t clock_boot_us(void);

/* A look at both clocks. */
struct clock_seen {
	int64_t ms, boot_ms;
};
/* By how many milliseconds the service's clock was put back since the last look, of what begins with zeros; 0: it was
 * not. What was decided by a clock that ran ahead is held against the one that is right. */
int64_t clock_put_back(struct clock_seen *s);

/* ISO 8601 in UTC. CLOCK_TEXT bytes with the NUL: "2026-11-15T00:39:40Z". */
#define CLOCK_TEXT 32
void clock_format(int64_t ms, char ret_text[CLOCK_TEXT]);
/* Any ISO 8601 date or date and time: "2026-11-15", "2026-11-15T10:00", with seconds, fraction (., or ,), "Z", "+hh",
 * "+hhmm" or "+hh:mm", basic ("20261115T100000Z") or extended; a space or 't' for 'T'; the date by month, by week
 * ("2026-W46-7") or by day of the year ("2026-319"). No zone: UTC. */
must_check bool clock_parse(struct str text, int64_t *ret_ms);

#endif

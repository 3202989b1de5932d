/* Which time a call wants measurements of, and in which steps. */
#ifndef STEWARD_API_METRICS_WINDOW_H
#define STEWARD_API_METRICS_WINDOW_H

#include "base/buf.h"
#include "call/call.h"
#include "series/series.h"

struct window {
	enum series_level level;
	int64_t start_ms, end_ms;
};

/* From granularity, and period or start and end. Negative with the problem written. */
must_check int window_read(struct call *c, struct window *ret_window);
/* From period, or start and end, which may all be missing: the last hour. The granularity is chosen. */
must_check int window_read_open(struct call *c, struct window *ret_window);
/* The fields "end", "granularity" and "start". */
void window_write(struct buf *b, const struct window *w);

/* Ends the call's answer, which is in `b` up to its last field: its link to itself has the call's query, without which
 * it would be another, or refused. */
void window_answer(struct call *c, struct buf *b);

#endif

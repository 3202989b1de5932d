/* Which events a filter lets through without looking at them: what both back ends ask before they read a list. */
#ifndef STEWARD_STORE_EVENT_FILTER_H
#define STEWARD_STORE_EVENT_FILTER_H

#include "store/store.h"

/* The first and the last position in the list that the filter is about, or (times) the times of its oldest and newest
 * event. -ENOENT: it is empty. */
typedef int event_ends(struct tx *tx, const struct event_filter *f, bool times, int64_t *ret_first, int64_t *ret_last);

/* Whether the filter excludes nothing; then also the positions of the list, of which the last is before the first where
 * it is empty. */
must_check int event_filter_positions(struct tx *tx, const struct event_filter *f, event_ends *ends, bool *ret_all,
                                      int64_t *ret_first, int64_t *ret_last);

#endif

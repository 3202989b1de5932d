/* ISO 8601 durations. */
#ifndef STEWARD_BASE_DURATION_H
#define STEWARD_BASE_DURATION_H

#include "base/str.h"

#define DURATION_MAX_MS (3660 * INT64_C(86400000))

/* Longer than nothing, and at most DURATION_MAX_MS: about ten years. A month has 30 days, a year 365. */
must_check bool duration_parse(struct str text, int64_t *ret_ms);

#endif

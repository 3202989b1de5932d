/* How times of statements are counted: in buckets of a histogram, twelve for each power of ten. The module counts
 * in them, series keep them, and percentiles are read from them, so all of these know the same bounds.
 *
 * A percentile is given as the time that is off by the same share of either end of its bucket: by a tenth of the true
 * one at most, or by 5 us where that is more. */
#ifndef STEWARD_MODULE_LATENCY_H
#define STEWARD_MODULE_LATENCY_H

#include <stdint.h>

#define LATENCY_BUCKETS 85

/* A bucket has the times below its bound, and not below that of the one before. The last one, which ends at 100
 * seconds, has all longer ones as well. */
uint32_t latency_bound_us(unsigned bucket);
unsigned latency_bucket(uint64_t us);
/* The time that stands for all that are in the bucket. */
double latency_middle_us(unsigned bucket);

#endif

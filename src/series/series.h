/* Samples over time, in files of a fixed size. A file has the series of one subject (a process, a database, a disk): a
 * ring of records for each interval, from ten seconds to a day. A record has the values of all columns of one interval;
 * its own time tells whether it is of this turn of the ring, and its checksum whether all of it was written.
 *
 *   header   4,096 bytes: magic, kind, columns, length of each ring, checksum; written once
 *   mark     in the second 4,096 bytes: the time of the last sample, twice, so that one of the two is always whole
 *   rings    one after the other, the finest first: time, checksum, number of samples, one float for each column
 *
 * The gauges of a sample are written as a record of the finest ring. What counters have grown by since the sample
 * before is put into the record of that one, because that is when it happened: a minute's rate is of that minute,
 * whole, and of nothing else. Intervals in between that have no sample get the same rate. When the time of samples
 * leaves an interval of a coarser ring, the record of the interval that was left is made from the finer ring. So
 * nothing but the last counters is in memory, and these are noted in the file (beside the mark), so that the next
 * process goes on where this one ended: one that is killed loses at most what it was about to write. Files are written
 * without a flush: after a power cut the last half minute may be a gap.
 *
 * Values are floats, which have seven digits. NAN is a gap. */
#ifndef STEWARD_SERIES_SERIES_H
#define STEWARD_SERIES_SERIES_H

#include "base/str.h"

enum series_level { SERIES_10S, SERIES_1M, SERIES_5M, SERIES_1H, SERIES_1D, SERIES_LEVELS };

enum series_source {
	SERIES_GAUGE, /* the input as it is */
	SERIES_RATE,  /* how much the input has grown, for each second */
	SERIES_RATIO  /* how much the input has grown for each that the divisor has; a gap where that has not */
};

struct series_column {
	enum series_source source;
	unsigned input, divisor;
	double scale;
	bool maximum; /* of a longer interval: the greatest value, not the mean */
	bool lasting; /* the counter goes on when the epoch changes */
};

/* What the files of one kind of subject hold. Columns are only ever added, at the end, and `room` never changes: files
 * of older versions are read and written by newer ones. */
struct series_layout {
	unsigned kind;
	size_t room; /* columns that a record has place for */
	enum series_level first;
	const struct series_column *columns;
	size_t count, inputs;
	/* How files of the same subjects were laid out before: they are written anew when they are met. NULL: in no
	 * other way. */
	const struct series_layout *older;
	void (*convert)(const float *old, float *ret_values); /* the columns of a record */
};

/* How many records each ring has; those finer than the layout's first are not there. */
struct series_sizes {
	uint32_t count[SERIES_LEVELS];
};
extern const struct series_sizes series_sizes_standard;
/* "2,14,62,732": the days that the rings of one minute, five minutes, an hour and a day keep. */
must_check bool series_sizes_parse(struct str text, struct series_sizes *ret_sizes);

int64_t series_step_ms(enum series_level level);
/* Bytes of a file. */
uint64_t series_file_bytes(const struct series_layout *layout, const struct series_sizes *sizes);

struct series;
/* Opens the file, or makes it. One that cannot be read as what it should be is made anew; one whose rings have another
 * length than wanted is copied into new ones. Not for two threads at once. */
must_check int series_open(const char *path, const struct series_layout *layout, const struct series_sizes *sizes,
                           struct series **ret_series);
void series_close(struct series *s); /* accepts NULL */

/* One sample: inputs that are not known are NAN. Rates are by the monotonic clock, so that a jump of the service's
 * clock makes none of them wrong. A counter that has fallen, or whose epoch (which names what counts) is another, has
 * begun anew: its rate is a gap. When the clock goes back, what was written for later times stays until it is
 * written anew: of a clock that was wrong for a while nothing is lost but what was written twice. */
must_check int series_put(struct series *s, int64_t time_ms, int64_t mono_us, uint64_t epoch, const double *inputs);

/* The values of some columns, for each interval of the level that begins in [from_ms, to_ms): ret_values has `count`
 * for each, one interval after the other. Intervals that are under way are as they stand. From any thread. -ENOENT: no
 * file. */
must_check int series_read(const char *path, const struct series_layout *layout, enum series_level level,
                           int64_t from_ms, int64_t to_ms, const unsigned *columns, size_t count, float *ret_values);
/* How many intervals begin there. */
size_t series_slots(enum series_level level, int64_t from_ms, int64_t to_ms);

#endif

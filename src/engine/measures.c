/* The columns of the series, from the inputs of measures.h. */
#include "engine/measures.h"

#include <math.h>
#include <string.h>

#define GAUGE(n) [n] = {SERIES_GAUGE, n, 0, 1, false, false}
#define RATE(n, factor) [n] = {SERIES_RATE, n, 0, factor, false, false}
#define SESSIONS(n) [PROCESS_SESSIONS_OF(n)] = {SERIES_GAUGE, n, 0, 1, false, false}
#define HOST_RATE(n, factor) [n] = {SERIES_RATE, n, 0, factor, false, true}

/* Time of processors becomes per cent: seconds for each second, times a hundred. */
static const struct series_column process_columns[PROCESS_COLUMNS] = {
        GAUGE(PROCESS_CONNECTIONS),
        GAUGE(PROCESS_FREE),
        GAUGE(PROCESS_WAIT_READ),
        GAUGE(PROCESS_WAIT_WRITE),
        GAUGE(PROCESS_LAG_MS),
        GAUGE(PROCESS_WINDOW_MS),
        GAUGE(PROCESS_STORAGE),
        GAUGE(PROCESS_DATA),
        GAUGE(PROCESS_RESIDENT),
        GAUGE(PROCESS_VIRTUAL),
        GAUGE(PROCESS_MAPPED),
        GAUGE(PROCESS_RESTARTS),
        GAUGE(PROCESS_CORES),
        GAUGE(PROCESS_MEM_AVAILABLE),
        GAUGE(PROCESS_MEM_FREE),
        GAUGE(PROCESS_MEM_USED),
        GAUGE(PROCESS_SWAP_FREE),
        GAUGE(PROCESS_SWAP_USED),
        RATE(PROCESS_XACTS, 1),
        RATE(PROCESS_CACHE_IN, 1),
        RATE(PROCESS_CACHE_HITS, 1),
        RATE(PROCESS_ROWS_READ, 1),
        RATE(PROCESS_ROWS_INDEX, 1),
        RATE(PROCESS_ROWS_INSERTED, 1),
        RATE(PROCESS_ROWS_UPDATED, 1),
        RATE(PROCESS_ROWS_DELETED, 1),
        RATE(PROCESS_SPILLS, 1),
        RATE(PROCESS_KILLED, 1),
        RATE(PROCESS_CACHE_OUT, 1),
        RATE(PROCESS_LOG_BYTES, 1),
        RATE(PROCESS_SCANS, 1),
        RATE(PROCESS_INDEX_HITS, 1),
        RATE(PROCESS_INDEX_MISSES, 1),
        RATE(PROCESS_FAULTS, 1),
        RATE(PROCESS_CACHE_MISSES, 1),
        RATE(PROCESS_CPU_USER, 100),
        RATE(PROCESS_CPU_KERNEL, 100),
        RATE(PROCESS_CHILD_USER, 100),
        RATE(PROCESS_CHILD_KERNEL, 100),
        HOST_RATE(PROCESS_SYS_USER, 100),
        HOST_RATE(PROCESS_SYS_NICE, 100),
        HOST_RATE(PROCESS_SYS_KERNEL, 100),
        HOST_RATE(PROCESS_SYS_IOWAIT, 100),
        HOST_RATE(PROCESS_SYS_IRQ, 100),
        HOST_RATE(PROCESS_SYS_SOFTIRQ, 100),
        HOST_RATE(PROCESS_SYS_STEAL, 100),
        HOST_RATE(PROCESS_SYS_GUEST, 100),
        HOST_RATE(PROCESS_NET_IN, 1),
        HOST_RATE(PROCESS_NET_OUT, 1),
        [PROCESS_MAX_CPU_USER] = {SERIES_RATE, PROCESS_CPU_USER, 0, 100, true, false},
        [PROCESS_MAX_CPU_KERNEL] = {SERIES_RATE, PROCESS_CPU_KERNEL, 0, 100, true, false},
        [PROCESS_MAX_CHILD_USER] = {SERIES_RATE, PROCESS_CHILD_USER, 0, 100, true, false},
        [PROCESS_MAX_CHILD_KERNEL] = {SERIES_RATE, PROCESS_CHILD_KERNEL, 0, 100, true, false},
        [PROCESS_MAX_SWAP_FREE] = {SERIES_GAUGE, PROCESS_SWAP_FREE, 0, 1, true, true},
        [PROCESS_MAX_SWAP_USED] = {SERIES_GAUGE, PROCESS_SWAP_USED, 0, 1, true, true},
        [PROCESS_MAX_SYS_USER] = {SERIES_RATE, PROCESS_SYS_USER, 0, 100, true, true},
        [PROCESS_MAX_SYS_NICE] = {SERIES_RATE, PROCESS_SYS_NICE, 0, 100, true, true},
        [PROCESS_MAX_SYS_KERNEL] = {SERIES_RATE, PROCESS_SYS_KERNEL, 0, 100, true, true},
        [PROCESS_MAX_SYS_IOWAIT] = {SERIES_RATE, PROCESS_SYS_IOWAIT, 0, 100, true, true},
        [PROCESS_MAX_SYS_IRQ] = {SERIES_RATE, PROCESS_SYS_IRQ, 0, 100, true, true},
        [PROCESS_MAX_SYS_SOFTIRQ] = {SERIES_RATE, PROCESS_SYS_SOFTIRQ, 0, 100, true, true},
        [PROCESS_MAX_SYS_STEAL] = {SERIES_RATE, PROCESS_SYS_STEAL, 0, 100, true, true},
        [PROCESS_MAX_SYS_GUEST] = {SERIES_RATE, PROCESS_SYS_GUEST, 0, 100, true, true},
        [PROCESS_MAX_MEM_AVAILABLE] = {SERIES_GAUGE, PROCESS_MEM_AVAILABLE, 0, 1, true, true},
        [PROCESS_MAX_MEM_FREE] = {SERIES_GAUGE, PROCESS_MEM_FREE, 0, 1, true, true},
        [PROCESS_MAX_MEM_USED] = {SERIES_GAUGE, PROCESS_MEM_USED, 0, 1, true, true},
        [PROCESS_MAX_NET_IN] = {SERIES_RATE, PROCESS_NET_IN, 0, 1, true, true},
        [PROCESS_MAX_NET_OUT] = {SERIES_RATE, PROCESS_NET_OUT, 0, 1, true, true},
        [PROCESS_STATEMENT_MS] = {SERIES_RATIO, PROCESS_ACTIVE_MS, PROCESS_XACTS, 1, false, false},
        [PROCESS_FLUSH_MS] = {SERIES_RATIO, PROCESS_CHECKPOINT_MS, PROCESS_CHECKPOINTS, 1, false, false},
        [PROCESS_INDEX_MISS] = {SERIES_RATIO, PROCESS_INDEX_MISSES, PROCESS_INDEX_BLOCKS, 1, false, false},
        [PROCESS_ALLOWED] = {SERIES_GAUGE, PROCESS_ALLOWANCE, 0, 1, false, false},
        SESSIONS(PROCESS_ACTIVE),
        SESSIONS(PROCESS_ON_CPU),
        SESSIONS(PROCESS_WAIT_LOCK),
        SESSIONS(PROCESS_WAIT_LWLOCK),
        SESSIONS(PROCESS_WAIT_IO),
        SESSIONS(PROCESS_WAIT_OTHER),
        SESSIONS(PROCESS_IDLE_TX),
        SESSIONS(PROCESS_OLDEST_TX_MS),
        SESSIONS(PROCESS_XID_AGE),
};

static const struct series_column database_columns[DATABASE_COLUMNS] = {
        GAUGE(DATABASE_TABLES), GAUGE(DATABASE_INDEXES), GAUGE(DATABASE_VIEWS),   GAUGE(DATABASE_ROWS),
        GAUGE(DATABASE_DATA),   GAUGE(DATABASE_INDEX),   GAUGE(DATABASE_STORAGE), GAUGE(DATABASE_ROW_BYTES),
};

/* A mean of queue_ms for each millisecond is the length of the queue. */
static const struct series_column disk_columns[DISK_COLUMNS] = {
        GAUGE(DISK_SPACE_FREE),
        GAUGE(DISK_SPACE_USED),
        GAUGE(DISK_PERCENT_FREE),
        GAUGE(DISK_PERCENT_USED),
        HOST_RATE(DISK_READS, 1),
        HOST_RATE(DISK_WRITES, 1),
        HOST_RATE(DISK_OPS, 1),
        HOST_RATE(DISK_READ_BYTES, 1),
        HOST_RATE(DISK_WRITE_BYTES, 1),
        HOST_RATE(DISK_QUEUE_MS, 0.001),
        [DISK_READ_LATENCY] = {SERIES_RATIO, DISK_READ_MS, DISK_READS, 1, false, true},
        [DISK_WRITE_LATENCY] = {SERIES_RATIO, DISK_WRITE_MS, DISK_WRITES, 1, false, true},
        [DISK_MAX_SPACE_FREE] = {SERIES_GAUGE, DISK_SPACE_FREE, 0, 1, true, true},
        [DISK_MAX_SPACE_USED] = {SERIES_GAUGE, DISK_SPACE_USED, 0, 1, true, true},
        [DISK_MAX_PERCENT_FREE] = {SERIES_GAUGE, DISK_PERCENT_FREE, 0, 1, true, true},
        [DISK_MAX_PERCENT_USED] = {SERIES_GAUGE, DISK_PERCENT_USED, 0, 1, true, true},
        [DISK_MAX_READS] = {SERIES_RATE, DISK_READS, 0, 1, true, true},
        [DISK_MAX_WRITES] = {SERIES_RATE, DISK_WRITES, 0, 1, true, true},
        [DISK_MAX_OPS] = {SERIES_RATE, DISK_OPS, 0, 1, true, true},
        [DISK_MAX_READ_LATENCY] = {SERIES_RATIO, DISK_READ_MS, DISK_READS, 1, true, true},
        [DISK_MAX_WRITE_LATENCY] = {SERIES_RATIO, DISK_WRITE_MS, DISK_WRITES, 1, true, true},
};

#define COUNT(kind, bucket) RATE(TABLE_COUNT(kind, bucket), 1)
#define COUNTS_5(kind, from)                                                                          \
	COUNT(kind, from), COUNT(kind, (from) + 1), COUNT(kind, (from) + 2), COUNT(kind, (from) + 3), \
	        COUNT(kind, (from) + 4)
#define COUNTS_20(kind, from) \
	COUNTS_5(kind, from), COUNTS_5(kind, (from) + 5), COUNTS_5(kind, (from) + 10), COUNTS_5(kind, (from) + 15)
#define COUNTS(kind) \
	COUNTS_20(kind, 0), COUNTS_20(kind, 20), COUNTS_20(kind, 40), COUNTS_20(kind, 60), COUNTS_5(kind, 80)

static const struct series_column table_columns[TABLE_COLUMNS] = {
        GAUGE(TABLE_LEADS),
        RATE(TABLE_TIME(TABLE_READS), 1),
        RATE(TABLE_TIME(TABLE_WRITES), 1),
        RATE(TABLE_TIME(TABLE_COMMANDS), 1),
        COUNTS(TABLE_READS),
        COUNTS(TABLE_WRITES),
        COUNTS(TABLE_COMMANDS),
};

/* --- tables as versions up to 1.0 have kept them: 26 buckets for each kind, of powers of two from 4 us on */

#define OLD_BUCKETS 26
#define OLD_COLUMNS (TABLE_COUNTS + TABLE_KINDS * OLD_BUCKETS)

static const struct series_layout table_old = {.kind = 4, .room = 84, .first = SERIES_1M, .count = OLD_COLUMNS};

/* What was counted from one time to another, taken to be spread evenly, goes to the buckets that have a part of
 * that. */
static void counts_spread(float count, double from_us, double to_us, float *counts)
{
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		bool last = i == LATENCY_BUCKETS - 1;
		double low = i ? latency_bound_us(i - 1) : 0, high = last ? to_us : latency_bound_us(i);
		double part = fmin(high, to_us) - fmax(low, from_us);
		if (part > 0)
			counts[i] += (float)((double)count * part / (to_us - from_us));
	}
}

static void table_convert(const float *old, float *ret_values)
{
	memcpy(ret_values, old, TABLE_COUNTS * sizeof *old);
	for (unsigned kind = 0; kind < TABLE_KINDS; kind++) {
		const float *from = &old[TABLE_COUNTS + kind * OLD_BUCKETS];
		float *to = &ret_values[TABLE_COUNT(kind, 0)];
		for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
			to[i] = isnan(from[0]) ? NAN : 0;
		for (unsigned i = 0; i < OLD_BUCKETS; i++)
			counts_spread(from[i], i ? (double)(UINT64_C(2) << i) : 0, (double)(UINT64_C(4) << i), to);
	}
}

/* The number of a layout is its kind in the files' headers. */
const struct series_layout measure_layouts[MEASURE_SUBJECTS] = {
        [MEASURE_PROCESS] = {.kind = 1,
                             .room = 96,
                             .first = SERIES_10S,
                             .columns = process_columns,
                             .count = PROCESS_COLUMNS,
                             .inputs = PROCESS_INPUTS},
        [MEASURE_DATABASE] = {.kind = 2,
                              .room = 12,
                              .first = SERIES_1M,
                              .columns = database_columns,
                              .count = DATABASE_COLUMNS,
                              .inputs = DATABASE_INPUTS},
        [MEASURE_DISK] = {.kind = 3,
                          .room = 28,
                          .first = SERIES_10S,
                          .columns = disk_columns,
                          .count = DISK_COLUMNS,
                          .inputs = DISK_INPUTS},
        [MEASURE_TABLE] = {.kind = 5,
                           .room = 260,
                           .first = SERIES_1M,
                           .columns = table_columns,
                           .count = TABLE_COLUMNS,
                           .inputs = TABLE_INPUTS,
                           .older = &table_old,
                           .convert = table_convert},
};
_Static_assert(PROCESS_COLUMNS <= 96 && DATABASE_COLUMNS <= 12 && DISK_COLUMNS <= 28 && TABLE_COLUMNS <= 260,
               "the rooms of the layouts");
_Static_assert(PROCESS_INPUTS <= MEASURE_INPUTS_MAX && DISK_INPUTS <= MEASURE_INPUTS_MAX &&
                       TABLE_INPUTS <= MEASURE_INPUTS_MAX,
               "the inputs of a sample");

unsigned measure_base(enum measure_subject subject, unsigned column)
{
	const struct series_layout *l = &measure_layouts[subject];
	const struct series_column *c = &l->columns[column];
	for (unsigned i = 0; c->maximum && i < l->count; i++)
		if (!l->columns[i].maximum && l->columns[i].source == c->source && l->columns[i].input == c->input &&
		    l->columns[i].divisor == c->divisor)
			return i;
	return column;
}

bool disk_is_device(unsigned column)
{
	unsigned base = measure_base(MEASURE_DISK, column);
	return base == DISK_QUEUE_MS || base == DISK_READ_LATENCY || base == DISK_WRITE_LATENCY;
}

double table_percentile(const double counts[LATENCY_BUCKETS], double share)
{
	double all = 0, before = 0, value = (double)NAN;
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
		all += counts[i];
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		if (!(counts[i] > 0))
			continue;
		value = latency_middle_us(i) / 1000;
		before += counts[i];
		if (before >= all * share)
			break;
	}
	return value;
}

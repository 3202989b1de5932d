/* What a simulated node would have measured: a function of the node's name, the column and the time, the same whenever
 * it is asked, so that nothing is kept. docs/metrics.md tells it to users:
 *
 *   value = low + (high - low) * (0.35 + 0.35 * day + 0.3 * chance)
 *
 * `day` is a wave of 24 hours, 0 at 03:00 UTC and 1 at 15:00 UTC; `chance` is a number from 0 to 1 by node, column and
 * minute. The greatest value in an interval is up to a fifth above the mean. Primaries alone write; standbys alone lag.
 * A stopped node has gaps. */
#include "engine/simulated/state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define MOMENTS_MAX 512
#define DAY_MS 86400000LL
#define MINUTE_MS 60000LL
#define QUIETEST_MS (3 * 3600000LL)
#define GB 1e9
#define MB 1e6

struct range {
	double low, high;
};

static const struct range process_ranges[PROCESS_COLUMNS] = {
        [PROCESS_CONNECTIONS] = {5, 60},
        [PROCESS_FREE] = {40, 95},
        [PROCESS_WAIT_READ] = {0, 1},
        [PROCESS_WAIT_WRITE] = {0, 2},
        [PROCESS_LAG_MS] = {0, 400},
        [PROCESS_WINDOW_MS] = {20 * 3600e3, 30 * 3600e3},
        [PROCESS_STORAGE] = {4 * GB, 4.4 * GB},
        [PROCESS_DATA] = {3 * GB, 3.3 * GB},
        [PROCESS_RESIDENT] = {300 * MB, 900 * MB},
        [PROCESS_VIRTUAL] = {1 * GB, 1.4 * GB},
        [PROCESS_MAPPED] = {120 * MB, 260 * MB},
        [PROCESS_MEM_AVAILABLE] = {2 * GB, 5 * GB},
        [PROCESS_MEM_FREE] = {0.5 * GB, 1.5 * GB},
        [PROCESS_MEM_USED] = {3 * GB, 6 * GB},
        [PROCESS_SWAP_FREE] = {1.9 * GB, 2 * GB},
        [PROCESS_SWAP_USED] = {0, 0.1 * GB},
        [PROCESS_XACTS] = {20, 900},
        [PROCESS_CACHE_IN] = {0.1 * MB, 6 * MB},
        [PROCESS_CACHE_HITS] = {500, 40000},
        [PROCESS_ROWS_READ] = {1000, 80000},
        [PROCESS_ROWS_INDEX] = {300, 30000},
        [PROCESS_ROWS_INSERTED] = {5, 250},
        [PROCESS_ROWS_UPDATED] = {5, 400},
        [PROCESS_ROWS_DELETED] = {0, 60},
        [PROCESS_SPILLS] = {0, 0.5},
        [PROCESS_KILLED] = {0, 0.01},
        [PROCESS_CACHE_OUT] = {0.1 * MB, 4 * MB},
        [PROCESS_LOG_BYTES] = {0.05 * MB, 3 * MB},
        [PROCESS_SCANS] = {30, 2000},
        [PROCESS_INDEX_HITS] = {300, 20000},
        [PROCESS_INDEX_MISSES] = {1, 200},
        [PROCESS_FAULTS] = {0, 3},
        [PROCESS_CACHE_MISSES] = {10, 700},
        [PROCESS_CPU_USER] = {2, 60},
        [PROCESS_CPU_KERNEL] = {1, 15},
        [PROCESS_CHILD_USER] = {2, 58},
        [PROCESS_CHILD_KERNEL] = {1, 14},
        [PROCESS_SYS_USER] = {4, 90},
        [PROCESS_SYS_NICE] = {0, 1},
        [PROCESS_SYS_KERNEL] = {2, 25},
        [PROCESS_SYS_IOWAIT] = {0, 10},
        [PROCESS_SYS_IRQ] = {0, 1},
        [PROCESS_SYS_SOFTIRQ] = {0, 3},
        [PROCESS_SYS_STEAL] = {0, 1},
        [PROCESS_SYS_GUEST] = {0, 0},
        [PROCESS_NET_IN] = {0.02 * MB, 4 * MB},
        [PROCESS_NET_OUT] = {0.05 * MB, 12 * MB},
        [PROCESS_STATEMENT_MS] = {0.5, 8},
        [PROCESS_FLUSH_MS] = {200, 9000},
        [PROCESS_INDEX_MISS] = {0.001, 0.02},
        [PROCESS_SESSIONS_OF(PROCESS_XID_AGE)] = {20e6, 190e6},
};

static const struct range database_ranges[DATABASE_COLUMNS] = {
        [DATABASE_TABLES] = {24, 24},
        [DATABASE_INDEXES] = {40, 40},
        [DATABASE_VIEWS] = {3, 3},
        [DATABASE_ROWS] = {2e6, 2.2e6},
        [DATABASE_DATA] = {3 * GB, 3.3 * GB},
        [DATABASE_INDEX] = {0.8 * GB, 0.9 * GB},
        [DATABASE_STORAGE] = {4 * GB, 4.4 * GB},
        [DATABASE_ROW_BYTES] = {1500, 1500},
};

static const struct range disk_ranges[DISK_COLUMNS] = {
        [DISK_SPACE_USED] = {4.5 * GB, 5 * GB},
        [DISK_READS] = {2, 120},
        [DISK_WRITES] = {5, 300},
        [DISK_READ_BYTES] = {0.05 * MB, 6 * MB},
        [DISK_WRITE_BYTES] = {0.1 * MB, 9 * MB},
        [DISK_QUEUE_MS] = {0, 1.5},
        [DISK_READ_LATENCY] = {0.2, 2},
        [DISK_WRITE_LATENCY] = {0.3, 4},
};

static const struct range *const ranges[MEASURE_SUBJECTS] = {process_ranges, database_ranges, disk_ranges};

/* --- what nodes were */

static const struct sim_moment *moment_last(const struct sim_cluster *s, const char *node)
{
	for (size_t i = s->moment_count; i > 0; i--)
		if (strcmp(s->moments[i - 1].node, node) == 0)
			return &s->moments[i - 1];
	return NULL;
}

void sim_moments_note(struct sim_cluster *s, int64_t from_ms)
{
	for (size_t i = 0; i < s->node_count; i++) {
		const struct node_status *n = &s->nodes[i];
		bool running = n->state == NODE_RUNNING;
		const struct sim_moment *last = moment_last(s, n->name);
		if (last && last->running == running && last->primary == n->primary)
			continue;
		if (s->moment_count == MOMENTS_MAX) {
			s->moment_count /= 2;
			memmove(s->moments, s->moments + MOMENTS_MAX - s->moment_count,
			        s->moment_count * sizeof *s->moments);
		}
		if (s->moment_count == s->moment_room) {
			s->moment_room = s->moment_room ? 2 * s->moment_room : 8;
			s->moments = must_realloc(s->moments, s->moment_room * sizeof *s->moments);
		}
		struct sim_moment *m = &s->moments[s->moment_count++];
		*m = (struct sim_moment){.from_ms = from_ms, .running = running, .primary = n->primary};
		memcpy(m->node, n->name, sizeof m->node);
	}
}

bool sim_moment_at(struct engine *e, const char *cluster_id, const char *node, int64_t time_ms,
                   struct sim_moment *ret_moment)
{
	bool found = false;
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *s = sim_cluster_find(e, cluster_id);
	*ret_moment = (struct sim_moment){.running = false};
	for (size_t i = 0; s && i < s->node_count; i++)
		found |= strcmp(s->nodes[i].name, node) == 0;
	for (size_t i = 0; found && i < s->moment_count && s->moments[i].from_ms <= time_ms; i++)
		if (strcmp(s->moments[i].node, node) == 0)
			*ret_moment = s->moments[i];
	pthread_mutex_unlock(&e->lock);
	return found;
}

/* --- values */

double sim_chance(const char *node, const char *name, unsigned column, int64_t minute)
{
	uint64_t h = 0xcbf29ce484222325u ^ ((uint64_t)minute * 0x9e3779b97f4a7c15u) ^ ((uint64_t)column << 56);
	for (const char *p = node; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	for (const char *p = name; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdu;
	h ^= h >> 33;
	return (double)(h >> 11) / 9007199254740992.0;
}

double sim_share(const char *node, const char *name, unsigned column, int64_t time_ms)
{
	double turn = (double)((time_ms - QUIETEST_MS) % DAY_MS) / (double)DAY_MS;
	double day = (1 - cos(2 * M_PI * turn)) / 2;
	return 0.35 + 0.35 * day + 0.3 * sim_chance(node, name, column, time_ms / MINUTE_MS);
}

static double value_at(const struct range *r, const char *node, const char *name, unsigned column, int64_t time_ms)
{
	return r->low + (r->high - r->low) * sim_share(node, name, column, time_ms);
}

static bool writes(unsigned column)
{
	return column == PROCESS_ROWS_INSERTED || column == PROCESS_ROWS_UPDATED || column == PROCESS_ROWS_DELETED;
}

/* What a column of a process is whatever the time. NAN: it goes by the function. */
static double process_fixed(const struct sim_moment *m, unsigned column)
{
	if (column == PROCESS_CORES || column == PROCESS_ALLOWED)
		return 2;
	if (column == PROCESS_RESTARTS || (writes(column) && !m->primary))
		return 0;
	return (double)NAN;
}

struct asked {
	const struct sim_moment *moment;
	enum measure_subject subject;
	const char *node, *name;
	int64_t time_ms;
};

static double column_at(const struct asked *q, unsigned column)
{
	unsigned base = measure_base(q->subject, column);
	double v = q->subject == MEASURE_PROCESS ? process_fixed(q->moment, base) : (double)NAN;
	if (q->subject == MEASURE_PROCESS && base == PROCESS_LAG_MS && q->moment->primary)
		return 0;
	if (isnan(v))
		v = value_at(&ranges[q->subject][base], q->node, q->name, base, q->time_ms);
	return base == column ? v : v * (1 + 0.2 * sim_chance(q->node, q->name, column, q->time_ms / MINUTE_MS));
}

/* What adds up does so. */
static double disk_at(const struct asked *q, unsigned column)
{
	switch (column) {
	case DISK_OPS: return column_at(q, DISK_READS) + column_at(q, DISK_WRITES);
	case DISK_MAX_OPS: return column_at(q, DISK_MAX_READS) + column_at(q, DISK_MAX_WRITES);
	case DISK_SPACE_USED:
	case DISK_MAX_SPACE_USED: return column_at(q, DISK_SPACE_USED);
	case DISK_SPACE_FREE:
	case DISK_MAX_SPACE_FREE: return 10 * GB - column_at(q, DISK_SPACE_USED);
	case DISK_PERCENT_USED:
	case DISK_MAX_PERCENT_USED: return column_at(q, DISK_SPACE_USED) / (10 * GB) * 100;
	case DISK_PERCENT_FREE:
	case DISK_MAX_PERCENT_FREE: return 100 - column_at(q, DISK_SPACE_USED) / (10 * GB) * 100;
	default: return column_at(q, column);
	}
}

static int sim_at(struct engine *e, const char *cluster_id, const char *node, enum measure_subject subject,
                  const char *name, int64_t time_ms, const unsigned *columns, size_t count, double *ret_values)
{
	struct sim_moment m;
	struct asked q = {&m, subject, node, name, time_ms};
	if (!sim_moment_at(e, cluster_id, node, time_ms, &m))
		return -ENOENT;
	for (size_t i = 0; i < count; i++)
		ret_values[i] = !m.running                 ? (double)NAN
		                : subject == MEASURE_TABLE ? sim_table_at(&m, node, name, time_ms, columns[i])
		                : subject == MEASURE_DISK  ? disk_at(&q, columns[i])
		                                           : column_at(&q, columns[i]);
	return 0;
}

const struct engine_history_ops sim_history = {.at = sim_at, .tables = sim_tables};

/* From the metrics that thresholds name to the columns of series. */
#include "api/metrics/wish.h"

#include <math.h>
#include <string.h>

#define FLEX_PREFIX "FLEX_"

/* --- which metric a threshold is about */

/* Those that measurements call otherwise. With `of` and `rest` it is the share, in percent, that the metric has of the
 * two together. A metric on the disk of data, index or journal is on the one that a node has. */
struct source {
	const char *name;
	enum measure_subject subject;
	const char *metric, *of, *rest;
};

/* clang-format off */
#define DISK_OF(prefix, name, metric)                                   \
        {prefix "DISK_PARTITION_" name "_DATA", MEASURE_DISK, metric, NULL, NULL},  \
        {prefix "DISK_PARTITION_" name "_INDEX", MEASURE_DISK, metric, NULL, NULL}, \
        {prefix "DISK_PARTITION_" name "_JOURNAL", MEASURE_DISK, metric, NULL, NULL}

static const struct source sources[] = {
        {"AVG_COMMAND_EXECUTION_TIME", MEASURE_PROCESS, "OP_EXECUTION_TIME_COMMANDS", NULL, NULL},
        {"AVG_READ_EXECUTION_TIME", MEASURE_PROCESS, "OP_EXECUTION_TIME_READS", NULL, NULL},
        {"AVG_WRITE_EXECUTION_TIME", MEASURE_PROCESS, "OP_EXECUTION_TIME_WRITES", NULL, NULL},
        {"CACHE_USAGE_DIRTY", MEASURE_PROCESS, "CACHE_DIRTY_BYTES", NULL, NULL},
        {"CACHE_USAGE_USED", MEASURE_PROCESS, "CACHE_USED_BYTES", NULL, NULL},
        {"CONNECTIONS_MAX", MEASURE_PROCESS, "CONNECTIONS", NULL, NULL},
        {"CONNECTIONS_PERCENT", MEASURE_PROCESS, "CONNECTIONS", "CONNECTIONS", "TICKETS_AVAILABLE_READS"},
        {"DATA_SIZE_TOTAL", MEASURE_PROCESS, "DB_DATA_SIZE_TOTAL", NULL, NULL},
        {"DB_DATA_SIZE_TOTAL_WO_SYSTEM", MEASURE_PROCESS, "DB_DATA_SIZE_TOTAL", NULL, NULL},
        DISK_OF("", "QUEUE_DEPTH", "DISK_QUEUE_DEPTH"),
        DISK_OF("", "READ_IOPS", "DISK_PARTITION_IOPS_READ"),
        DISK_OF("", "READ_LATENCY", "DISK_PARTITION_LATENCY_READ"),
        DISK_OF("", "SPACE_USED", "DISK_PARTITION_SPACE_PERCENT_USED"),
        DISK_OF("", "WRITE_IOPS", "DISK_PARTITION_IOPS_WRITE"),
        DISK_OF("", "WRITE_LATENCY", "DISK_PARTITION_LATENCY_WRITE"),
        {"DOCUMENT_DELETED", MEASURE_PROCESS, "DOCUMENT_METRICS_DELETED", NULL, NULL},
        {"DOCUMENT_INSERTED", MEASURE_PROCESS, "DOCUMENT_METRICS_INSERTED", NULL, NULL},
        {"DOCUMENT_RETURNED", MEASURE_PROCESS, "DOCUMENT_METRICS_RETURNED", NULL, NULL},
        {"DOCUMENT_UPDATED", MEASURE_PROCESS, "DOCUMENT_METRICS_UPDATED", NULL, NULL},
        {"GLOBAL_LOCK_PERCENTAGE", MEASURE_PROCESS, "TRANSACTION_ID_PERCENT_USED", NULL, NULL},
        {"LOGICAL_SIZE", MEASURE_PROCESS, "DB_DATA_SIZE_TOTAL", NULL, NULL},
        DISK_OF("MAX_", "QUEUE_DEPTH", "DISK_QUEUE_DEPTH"),
        DISK_OF("MAX_", "READ_IOPS", "MAX_DISK_PARTITION_IOPS_READ"),
        DISK_OF("MAX_", "READ_LATENCY", "MAX_DISK_PARTITION_LATENCY_READ"),
        DISK_OF("MAX_", "SPACE_USED", "MAX_DISK_PARTITION_SPACE_PERCENT_USED"),
        DISK_OF("MAX_", "WRITE_IOPS", "MAX_DISK_PARTITION_IOPS_WRITE"),
        DISK_OF("MAX_", "WRITE_LATENCY", "MAX_DISK_PARTITION_LATENCY_WRITE"),
        {"MAX_NORMALIZED_SYSTEM_CPU_STEAL", MEASURE_PROCESS, "MAX_SYSTEM_NORMALIZED_CPU_STEAL", NULL, NULL},
        {"MAX_NORMALIZED_SYSTEM_CPU_USER", MEASURE_PROCESS, "MAX_SYSTEM_NORMALIZED_CPU_USER", NULL, NULL},
        {"MAX_SYSTEM_MEMORY_PERCENT_USED", MEASURE_PROCESS, "MAX_SYSTEM_MEMORY_USED", "SYSTEM_MEMORY_USED", "SYSTEM_MEMORY_AVAILABLE"},
        {"MUNIN_CPU_IOWAIT", MEASURE_PROCESS, "SYSTEM_CPU_IOWAIT", NULL, NULL},
        {"MUNIN_CPU_IRQ", MEASURE_PROCESS, "SYSTEM_CPU_IRQ", NULL, NULL},
        {"MUNIN_CPU_NICE", MEASURE_PROCESS, "SYSTEM_CPU_NICE", NULL, NULL},
        {"MUNIN_CPU_SOFTIRQ", MEASURE_PROCESS, "SYSTEM_CPU_SOFTIRQ", NULL, NULL},
        {"MUNIN_CPU_STEAL", MEASURE_PROCESS, "SYSTEM_CPU_STEAL", NULL, NULL},
        {"MUNIN_CPU_SYSTEM", MEASURE_PROCESS, "SYSTEM_CPU_KERNEL", NULL, NULL},
        {"MUNIN_CPU_USER", MEASURE_PROCESS, "SYSTEM_CPU_USER", NULL, NULL},
        {"NORMALIZED_SYSTEM_CPU_STEAL", MEASURE_PROCESS, "SYSTEM_NORMALIZED_CPU_STEAL", NULL, NULL},
        {"NORMALIZED_SYSTEM_CPU_USER", MEASURE_PROCESS, "SYSTEM_NORMALIZED_CPU_USER", NULL, NULL},
        {"OPLOG_MASTER_TIME_ESTIMATED_TTL", MEASURE_PROCESS, "OPLOG_MASTER_TIME", NULL, NULL},
        {"SYSTEM_MEMORY_PERCENT_USED", MEASURE_PROCESS, "SYSTEM_MEMORY_USED", "SYSTEM_MEMORY_USED", "SYSTEM_MEMORY_AVAILABLE"},
        {"TICKETS_AVAILABLE_WRITES", MEASURE_PROCESS, "TICKETS_AVAILABLE_WRITE", NULL, NULL},
};
/* clang-format on */

static struct source source_of(struct str name)
{
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
		if (str_is(name, sources[i].name))
			return sources[i];
	return (struct source){.name = name.p, .subject = MEASURE_PROCESS, .metric = name.p};
}

/* Readings are in bytes. */
static double scale_of(const struct metric *m)
{
	return strcmp(m->unit, "MEGABYTES_PER_SECOND") == 0 ? 1e6
	       : strcmp(m->unit, "GIGABYTES_PER_HOUR") == 0 ? 1e9
	                                                    : 1;
}

/* --- what is asked for */

static void column_add(struct wish *w, enum measure_subject subject, unsigned column)
{
	size_t i = 0, *count = &w->column_count[subject];
	while (i < *count && w->columns[subject][i] != column)
		i++;
	if (i == *count)
		w->columns[subject][(*count)++] = column;
}

static void metric_add(struct wish *w, enum measure_subject subject, const struct metric *m)
{
	if (!m)
		return;
	column_add(w, subject, (unsigned)m->column);
	if (m->how != METRIC_ALONE)
		column_add(w, subject, m->other);
}

void wish_add(struct wish *w, struct arena *a, const char *type, struct str name)
{
	const char *whole = arena_z(a, name);
	if (strcmp(type, FLEX_TYPE) == 0 && str_starts(name, STR(FLEX_PREFIX)))
		name = str_of(whole + strlen(FLEX_PREFIX));
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->list[i].name, whole) == 0 && strcmp(w->list[i].type, type) == 0)
			return;
	const struct source from = source_of(str_of(arena_z(a, name)));
	struct asked one = {.type = type, .name = whole, .subject = from.subject};
	one.metric = metric_find(from.subject, str_of(from.metric));
	if (!one.metric)
		one.metric = metric_of_sessions(str_of(from.metric));
	if (!one.metric || one.metric->column == NO_COLUMN || w->count == ASKED_MAX)
		return;
	if (from.of) {
		one.of = metric_find(from.subject, str_of(from.of));
		one.rest = metric_find(from.subject, str_of(from.rest));
	}
	metric_add(w, one.subject, one.metric);
	metric_add(w, one.subject, one.of);
	metric_add(w, one.subject, one.rest);
	w->list[w->count++] = one;
}

static double column_value(const struct wish *w, enum measure_subject subject, unsigned column)
{
	for (size_t i = 0; i < w->column_count[subject]; i++)
		if (w->columns[subject][i] == column)
			return (double)w->values[subject][i];
	return (double)NAN;
}

static double wish_metric(const struct wish *w, enum measure_subject subject, const struct metric *m)
{
	double other = m->how == METRIC_ALONE ? 0 : column_value(w, subject, m->other);
	return metric_value(m, column_value(w, subject, (unsigned)m->column), other) * scale_of(m);
}

double wish_value(const struct wish *w, const struct asked *one)
{
	if (!w->known[one->subject])
		return (double)NAN;
	double v = wish_metric(w, one->subject, one->metric);
	if (!one->of)
		return v;
	double all = wish_metric(w, one->subject, one->of) + wish_metric(w, one->subject, one->rest);
	return all > 0 ? v / all * 100 : (double)NAN;
}

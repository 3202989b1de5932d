/* What thresholds ask of the series: which columns, and the value of a metric from theirs. */
#ifndef STEWARD_API_METRICS_WISH_H
#define STEWARD_API_METRICS_WISH_H

#include "api/metrics/catalogue.h"
#include "base/arena.h"

#define HOST_TYPE "OUTSIDE_METRIC_THRESHOLD"
#define FLEX_TYPE "OUTSIDE_FLEX_METRIC_THRESHOLD"
#define ASKED_MAX 200
#define WISH_COLUMNS_MAX MEASURE_INPUTS_MAX
_Static_assert(PROCESS_COLUMNS <= WISH_COLUMNS_MAX && DISK_COLUMNS <= WISH_COLUMNS_MAX, "columns of a subject");

struct asked {
	const char *type, *name; /* as the configuration has them */
	enum measure_subject subject;
	const struct metric *metric, *of, *rest;
};

struct wish {
	struct asked list[ASKED_MAX];
	size_t count;
	unsigned columns[MEASURE_SUBJECTS][WISH_COLUMNS_MAX];
	size_t column_count[MEASURE_SUBJECTS];
	float values[MEASURE_SUBJECTS][WISH_COLUMNS_MAX]; /* of the node in hand */
	bool known[MEASURE_SUBJECTS];
};

/* A threshold of that type about the metric, by the name that configurations have for it. One that nothing tells here
 * is left out. */
void wish_add(struct wish *w, struct arena *a, const char *type, struct str name);
/* From `values`. NAN: nothing is known of it. */
double wish_value(const struct wish *w, const struct asked *one);

#endif

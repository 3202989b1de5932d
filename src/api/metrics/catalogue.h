/* The metrics of the API: their names and units, and the columns of the series that they come from. */
#ifndef STEWARD_API_METRICS_CATALOGUE_H
#define STEWARD_API_METRICS_CATALOGUE_H

#include "engine/engine.h"

#define NO_COLUMN (-1)
#define TRANSACTION_IDS 2147483648.0 /* of that age no server takes writes any more */

enum metric_how { METRIC_ALONE, METRIC_PLUS, METRIC_LESS, METRIC_PER };

struct metric {
	const char *name, *unit;
	int column; /* NO_COLUMN: nothing tells it here */
	enum metric_how how;
	unsigned other; /* the second column */
	double scale;
};

/* All of a subject, in the order of the reference. */
const struct metric *metrics_of(enum measure_subject subject, size_t *ret_count);
/* Of processes, beyond the reference: what sessions do. */
const struct metric *metrics_of_sessions(size_t *ret_count);
/* NULL: there is none. */
const struct metric *metric_find(enum measure_subject subject, struct str name);
const struct metric *metric_of_sessions(struct str name);
/* From the values of its columns; never below 0. */
double metric_value(const struct metric *m, double value, double other);

#endif

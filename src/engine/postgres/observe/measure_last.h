/* What clients had a server do until it ended. Samples are ten seconds apart, and what a server has counted ends with
 * it: a primary that was killed would take up to ten seconds of its clients' work with it. So its counters are noted
 * each second, with its place in the log, and given away once another start of the server is known. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_LAST_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_LAST_H

#include "engine/postgres/observe/measure.h"

#include <libpq-fe.h>

struct pg_last {
	uint64_t epoch;               /* of the sample that was given last; 0: none */
	int64_t given_us;             /* when it was taken */
	double counts[PG_OPERATIONS]; /* in the order of pg_operations: of that sample, or since */
};

/* The columns of an answer from `column` on. */
void pg_last_note(struct pg_last *l, const PGresult *rows, int column);
/* A sample is about to be given. Where it counts another start, those before it are given first: the last one of the
 * old start, as of the end of its interval, and the beginning of this one there, with nothing counted. */
void pg_last_give(struct pg_last *l, const struct engine_sample *s, const struct engine_sampling *to);

#endif

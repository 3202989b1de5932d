/* The last seconds of a server's counters; see measure_last.h. */
#include "engine/postgres/observe/measure_last.h"

#include "engine/postgres/observe/measure_sql.h"
#include "engine/postgres/sql/sql.h"

#include <math.h>

#define TICK_US INT64_C(10000000)
#define KNOWN_US (15 * TICK_US) /* as long as a series goes on with a counter */

void pg_last_note(struct pg_last *l, const PGresult *rows, int column)
{
	if (PQntuples(rows) != 1 || PQnfields(rows) != column + PG_OPERATIONS)
		return;
	for (int i = 0; i < PG_OPERATIONS; i++)
		l->counts[i] = strtod(pg_value(rows, 0, column + i), NULL);
}

static void counts_give(const double *counts, struct engine_sample s, const struct engine_sampling *to)
{
	double in[PROCESS_INPUTS];
	for (size_t i = 0; i < PROCESS_INPUTS; i++)
		in[i] = (double)NAN;
	for (size_t i = 0; i < PG_OPERATIONS; i++)
		in[pg_operations[i]] = counts[i];
	s.inputs = in;
	to->take(to->ctx, &s);
}

void pg_last_give(struct pg_last *l, const struct engine_sample *s, const struct engine_sampling *to)
{
	static const double nothing[PG_OPERATIONS];
	int64_t passed = s->mono_us - l->given_us, rounds = (passed + TICK_US / 2) / TICK_US;
	bool ended = l->epoch && l->epoch != s->epoch && rounds > 0 && passed <= KNOWN_US;
	if (ended) {
		struct engine_sample end = *s;
		end.epoch = l->epoch;
		end.mono_us = l->given_us + TICK_US < s->mono_us ? l->given_us + TICK_US : s->mono_us;
		end.ago_ms = (rounds - 1) * TICK_US / 1000;
		counts_give(l->counts, end, to);
		end.epoch = s->epoch;
		counts_give(nothing, end, to);
	}
	l->epoch = s->epoch;
	l->given_us = s->mono_us;
	for (size_t i = 0; i < PG_OPERATIONS; i++)
		l->counts[i] = s->inputs[pg_operations[i]];
}

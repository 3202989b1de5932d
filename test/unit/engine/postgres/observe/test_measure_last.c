/* What a server has counted until it ended is given with the first sample of its next start. */
#include "check.h"
#include "engine/postgres/observe/measure.h"
#include "engine/postgres/observe/measure_last.h"

#include <math.h>

#define SECOND 1000000LL

static struct {
	uint64_t epoch;
	int64_t mono_us, ago_ms;
	double xacts, connections;
} got[8];
static size_t got_count;

static void take(void *ctx, const struct engine_sample *s)
{
	if (got_count < 8) {
		got[got_count].epoch = s->epoch;
		got[got_count].mono_us = s->mono_us;
		got[got_count].ago_ms = s->ago_ms;
		got[got_count].xacts = s->inputs[PROCESS_XACTS];
		got[got_count++].connections = s->inputs[PROCESS_CONNECTIONS];
	}
}

static const struct engine_sampling to = {.take = take};

static void give(struct pg_last *l, int64_t seconds, uint64_t epoch)
{
	double in[PROCESS_INPUTS] = {[PROCESS_XACTS] = (double)seconds};
	const struct engine_sample s = {.mono_us = seconds * SECOND, .epoch = epoch, .inputs = in};
	got_count = 0;
	pg_last_give(l, &s, &to);
}

static void note(struct pg_last *l, const char *xacts, int columns)
{
	PGresult *rows = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	PGresAttDesc of[8] = {{0}};
	char name[] = "c"; /* it lives as long as the columns that are called so */
	for (int i = 0; i < columns; i++)
		of[i].name = name;
	CHECK(PQsetResultAttrs(rows, columns, of));
	for (int i = 0; i < columns; i++) {
		char text[32];
		snprintf(text, sizeof text, "%s", xacts);
		CHECK(PQsetvalue(rows, 0, i, text, (int)strlen(text)));
	}
	pg_last_note(l, rows, 1);
	PQclear(rows);
}

int main(void)
{
	struct pg_last l = {.epoch = 0};
	note(&l, "5", 1 + PG_OPERATIONS);
	give(&l, 100, 1);
	CHECK(got_count == 0); /* nothing was before */
	note(&l, "120", 1 + PG_OPERATIONS);
	give(&l, 110, 1);
	CHECK(got_count == 0); /* it is the same start */
	note(&l, "150", 1 + PG_OPERATIONS);
	note(&l, "170", 3); /* of somebody else, who answers in its place */
	give(&l, 140, 2);
	CHECK(got_count == 2 && got[0].epoch == 1 && got[0].xacts >= 150 && got[0].xacts <= 150);
	CHECK(isnan(got[0].connections) && got[0].mono_us == 120 * SECOND && got[0].ago_ms == 20000);
	CHECK(got[1].epoch == 2 && got[1].xacts >= 0 && got[1].xacts <= 0 && got[1].ago_ms == 20000);
	/* Ended and back within a round. */
	note(&l, "7", 1 + PG_OPERATIONS);
	give(&l, 150, 3);
	CHECK(got_count == 2 && got[0].ago_ms == 0 && got[0].mono_us == 150 * SECOND);
	/* Nobody has looked since the last sample: that is what is known. And for too long. */
	give(&l, 160, 4);
	CHECK(got_count == 2 && got[0].epoch == 3 && got[0].xacts >= 150 && got[0].xacts <= 150);
	note(&l, "9", 1 + PG_OPERATIONS);
	give(&l, 400, 5);
	CHECK(got_count == 0);
	return CHECK_DONE();
}

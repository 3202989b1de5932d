/* One server's way through a round of samples: measure_round.c. For the thread that takes samples alone. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_ROUND_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_ROUND_H

#include "engine/postgres/observe/measure_servers.h"

#define PG_ROUND_WHOLE_MS 8000 /* that a round may take in which databases are looked into, too */

/* Asks the first question, on the kept connection, or begins one. */
void pg_round_begin(struct pg_measured *s, const struct engine_sampling *to);
/* Asks for the position alone. */
void pg_round_track(struct pg_measured *s);
/* Goes on with all that were asked, until all are done, or the time is over. */
void pg_round_wait(struct pg_measures *m, bool whole, int64_t most_ms);
/* Late ones are not waited for any more, nor is their answer taken for that of the next question. */
void pg_round_late(struct pg_measured *s);

#endif

/* What becomes of moments when the host's clock is put back: archive_clock.c. For the archive's worker alone. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_CLOCK_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_CLOCK_H

#include "engine/postgres/model/model.h"

struct pg_archive;
struct pg_archive_set;
struct pg_mark;

/* Looks at the clock, before a mark is made: sets twice_ms, and anew where it was put back far. */
void pg_archive_clock_look(struct pg_archive_set *s);
/* Whether the clock has shown the mark's time before, so that the mark is not one to recover to. */
bool pg_archive_clock_repeats(const struct pg_archive_set *s, const struct pg_mark *m);
/* The first mark of a clock that was put back far. Where the window ends is stored before any mark goes: what fails on
 * the way is done again with the next mark, or, after a restart, when the newest of those marks is found. */
int pg_archive_moments_begin(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s,
                             const struct pg_mark *m);

#endif

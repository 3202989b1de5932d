/* How far standbys are behind: the places in the log where a set's primary was, and when: measure_lag.c, for
 * measure.c. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_LAG_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_LAG_H

#include <stddef.h>
#include <stdint.h>

#define PG_POSITIONS 256

/* Where the primary was from the first time that it was seen there to the last. */
struct pg_position {
	double at; /* bytes from the log's beginning */
	int64_t first_us, last_us;
};

/* Begins as zero. Positions grow, and so do times. */
struct pg_positions {
	struct pg_position list[PG_POSITIONS];
	size_t count;
	int64_t asked_us; /* when the primary told last */
};

void pg_positions_note(struct pg_positions *p, double at, int64_t mono_us);

struct pg_lag {
	double ms, bytes; /* NAN: not known, because the primary has not told lately */
};
/* Of a standby that had replayed up to `at` then. */
struct pg_lag pg_positions_lag(const struct pg_positions *p, double at, int64_t mono_us);

/* The sets of this host that have standbys, each with the places of its primary, which outlive a failover. Begins as
 * zero. */
struct pg_sets {
	struct pg_followed **list;
	size_t count;
};
/* NULL: it is not there. */
struct pg_positions *pg_sets_find(const struct pg_sets *sets, const char *cluster_id, unsigned number);
void pg_sets_add(struct pg_sets *sets, const char *cluster_id, unsigned number); /* where it is not there yet */
/* Forgets the sets for which pg_sets_keep() was not called since the last time. */
void pg_sets_keep(struct pg_sets *sets, const char *cluster_id, unsigned number);
void pg_sets_drop(struct pg_sets *sets);
void pg_sets_free(struct pg_sets *sets);

#endif

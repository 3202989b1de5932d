/* The databases of a server that is measured: measure_databases.c, for measure.c. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_DATABASES_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_DATABASES_H

#include "engine/engine.h"

#include <libpq-fe.h>

/* What failed is left alone for so long: a database with too many tables would take its time every minute. */
#define PG_FAILED_WAIT_US 300000000LL

struct pg_database {
	char name[64];
	unsigned oid;
	double storage, writes, active, replayed; /* as last listed */
	double at_writes, at_active, at_replayed; /* when it was last looked into */
	int64_t looked_us;
	bool known, listed, wanted; /* looked into; in the last list; to be looked into */
	/* What was seen inside. */
	double inputs[DATABASE_INPUTS], scans, hits, misses;
};

/* Begins as zero. */
struct pg_databases {
	struct pg_database *list; /* those that can be looked into, up to a bound */
	size_t count;
	/* Of the last list: whether it is of this round, all databases by name, how many of them can be looked into,
	 * what all take of the disk, and whether the server offers the times of tables. */
	bool listed;
	char (*names)[64];
	size_t name_count, open_count;
	double storage;
	bool counts;
};
void pg_databases_free(struct pg_databases *d);

/* The answer to pg_ask_databases. Pointers to elements are then no longer valid. */
void pg_databases_take(struct pg_databases *d, const PGresult *rows);
/* The next to be looked into; NULL: none. */
struct pg_database *pg_databases_choose(const struct pg_databases *d);
/* The answer to pg_ask_inside; and that there was none: what was known of it is not known any more. */
void pg_database_take(struct pg_database *d, const PGresult *rows);
void pg_database_fail(struct pg_database *d);

/* Sums over the databases, into the inputs of their server; a gap where one of them is not known. */
void pg_databases_add_up(const struct pg_databases *d, double *inputs);
/* Gives their samples and names away: `s` has all but subject, name and inputs. */
void pg_databases_give(const struct pg_databases *d, const struct engine_sample *s, const struct engine_sampling *to);

/* NAN: it is null. */
double pg_number_at(const PGresult *rows, int row, int column);

#endif

/* What is known of a server's databases between two samples, and which of them are to be looked into.
 *
 * What only a connection to a database itself can tell (tables, their sizes, scans) is asked there when something has
 * happened in it, and at least every ten minutes; else it is as it was. Those that were not looked into for longest
 * come first, and one that fails is left alone for a while. */
#include "engine/postgres/observe/measure_databases.h"

#include "base/arena.h"
#include "base/clock.h"
#include "engine/postgres/sql/sql.h"

#include <math.h>
#include <stdlib.h>

#define DATABASES_MAX 64
#define NAMES_MAX 5000
#define LOOK_EVERY_US 600000000LL
#define ACTIVE_LEAST_MS 250 /* of sessions' time: our own questions take some of it too */
/* Bytes of log: more than a fiftieth of what is in the database, between these. */
#define REPLAYED_LEAST 65536
#define REPLAYED_MOST 1048576

double pg_number_at(const PGresult *rows, int row, int column)
{
	return PQgetisnull(rows, row, column) ? (double)NAN : strtod(pg_value(rows, row, column), NULL);
}

void pg_databases_free(struct pg_databases *d)
{
	free(d->list);
	free(d->names);
	*d = (struct pg_databases){.list = NULL};
}

/* --- the list */

static struct pg_database *database_ensure(struct pg_databases *all, const char *name)
{
	for (size_t i = 0; i < all->count; i++)
		if (strcmp(all->list[i].name, name) == 0)
			return &all->list[i];
	all->list = must_realloc(all->list, (all->count + 1) * sizeof *all->list);
	struct pg_database *d = &all->list[all->count++];
	*d = (struct pg_database){.known = false};
	snprintf(d->name, sizeof d->name, "%s", name);
	return d;
}

static bool database_moved(const struct pg_database *d)
{
	int64_t ago = clock_mono_us() - d->looked_us;
	double replayed_least = fmin(fmax(0.02 * d->inputs[DATABASE_DATA], REPLAYED_LEAST), REPLAYED_MOST);
	if (!d->known)
		return !d->looked_us || ago >= PG_FAILED_WAIT_US;
	return d->writes != d->at_writes || d->active - d->at_active >= ACTIVE_LEAST_MS || d->active < d->at_active ||
	       d->replayed - d->at_replayed >= replayed_least || ago >= LOOK_EVERY_US;
}

static void names_take(struct pg_databases *all, const PGresult *rows)
{
	int count = PQntuples(rows);
	all->names = must_realloc(all->names, ((size_t)count + 1) * sizeof *all->names);
	all->name_count = 0;
	all->storage = 0;
	all->open_count = 0;
	all->counts = count && *pg_value(rows, 0, 7) == 't';
	for (int i = 0; i < count; i++) {
		snprintf(all->names[all->name_count++], sizeof *all->names, "%s", pg_value(rows, i, 0));
		all->storage += pg_number_at(rows, i, 1);
		all->open_count += pg_number_at(rows, i, 5) > 0;
	}
}

void pg_databases_take(struct pg_databases *all, const PGresult *rows)
{
	size_t kept = 0;
	names_take(all, rows);
	for (size_t i = 0; i < all->count; i++)
		all->list[i].listed = false;
	for (int i = 0; i < PQntuples(rows) && i < DATABASES_MAX && (size_t)i < all->open_count; i++) {
		struct pg_database *d = database_ensure(all, pg_value(rows, i, 0));
		d->listed = true;
		d->storage = pg_number_at(rows, i, 1);
		d->writes = pg_number_at(rows, i, 2);
		d->active = pg_number_at(rows, i, 3);
		d->replayed = pg_number_at(rows, i, 4);
		d->oid = (unsigned)strtoul(pg_value(rows, i, 6), NULL, 10);
		d->wanted = database_moved(d);
	}
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].listed)
			all->list[kept++] = all->list[i];
	all->count = kept;
	all->listed = true;
}

/* --- looks */

struct pg_database *pg_databases_choose(const struct pg_databases *all)
{
	struct pg_database *chosen = NULL;
	for (size_t i = 0; i < all->count; i++) {
		struct pg_database *d = &all->list[i];
		if (d->wanted && (!chosen || d->looked_us < chosen->looked_us))
			chosen = d;
	}
	return chosen;
}

void pg_database_fail(struct pg_database *d)
{
	d->known = d->wanted = false;
	d->looked_us = clock_mono_us();
}

void pg_database_take(struct pg_database *d, const PGresult *rows)
{
	if (PQntuples(rows) != 1 || PQnfields(rows) != 9) {
		pg_database_fail(d);
		return;
	}
	for (int i = 0; i < 6; i++)
		d->inputs[DATABASE_TABLES + i] = pg_number_at(rows, 0, i);
	d->scans = pg_number_at(rows, 0, 6);
	d->hits = pg_number_at(rows, 0, 7);
	d->misses = pg_number_at(rows, 0, 8);
	d->inputs[DATABASE_ROW_BYTES] =
	        d->inputs[DATABASE_ROWS] > 0 ? d->inputs[DATABASE_DATA] / d->inputs[DATABASE_ROWS] : 0;
	d->known = true;
	d->wanted = false;
	d->looked_us = clock_mono_us();
	d->at_writes = d->writes;
	d->at_active = d->active;
	d->at_replayed = d->replayed;
}

/* --- what they add up to */

/* Whether what was last seen inside still counts: one that should be looked into again may have to wait for it. */
static bool database_is_known(const struct pg_database *d)
{
	return d->known && clock_mono_us() - d->looked_us < 2 * LOOK_EVERY_US;
}

void pg_databases_add_up(const struct pg_databases *all, double *inputs)
{
	double data = all->open_count > DATABASES_MAX ? (double)NAN : 0, scans = data, hits = data, misses = data;
	for (size_t i = 0; i < all->count; i++) {
		const struct pg_database *d = &all->list[i];
		double unknown = database_is_known(d) ? 0 : (double)NAN;
		data += unknown + d->inputs[DATABASE_DATA];
		scans += unknown + d->scans;
		hits += unknown + d->hits;
		misses += unknown + d->misses;
	}
	inputs[PROCESS_STORAGE] = all->storage;
	inputs[PROCESS_DATA] = data;
	inputs[PROCESS_SCANS] = scans;
	inputs[PROCESS_INDEX_HITS] = hits;
	inputs[PROCESS_INDEX_MISSES] = misses;
	inputs[PROCESS_INDEX_BLOCKS] = hits + misses;
}

void pg_databases_give(const struct pg_databases *all, const struct engine_sample *s, const struct engine_sampling *to)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct pg_database *d = &all->list[i];
		double inputs[DATABASE_INPUTS];
		for (size_t k = 0; k < DATABASE_INPUTS; k++)
			inputs[k] = database_is_known(d) ? d->inputs[k] : (double)NAN;
		inputs[DATABASE_STORAGE] = d->storage;
		struct engine_sample sample = *s;
		sample.subject = MEASURE_DATABASE;
		sample.name = d->name;
		sample.inputs = inputs;
		to->take(to->ctx, &sample);
	}
	const char **names = must_calloc(all->name_count + 1, sizeof *names);
	for (size_t i = 0; i < all->name_count; i++)
		names[i] = all->names[i];
	/* With more than were asked for nobody knows which are gone. */
	if (all->name_count && all->name_count < NAMES_MAX)
		to->databases(to->ctx, s->cluster_id, s->node, names, all->name_count);
	free(names);
}

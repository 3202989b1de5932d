/* How long statements on the tables of a simulated node would have taken: functions of the table's name and the time,
 * as history.c has them for all else. docs/collection-stats.md tells them to users:
 *
 *   statements a second = weight * (low + (high - low) * (0.35 + 0.35 * day + 0.3 * chance))
 *
 * `weight` is a number from 0.02 to 1 by the table's name. The times of seven buckets around one, which the kind and
 * the table's name choose, have always the same shares. Standbys have no writes and no commands. */
#include "engine/simulated/state.h"

#include <errno.h>

#define SHAPE 7
#define STEP 4   /* from one bucket of the shape to the next: times are twice as long */
#define BEFORE 2 /* buckets of the shape below its middle */

static const char *const names[] = {
        "postgres.accounts",   "postgres.addresses", "postgres.articles",    "postgres.authors",
        "postgres.carts",      "postgres.comments",  "postgres.contacts",    "postgres.customers",
        "postgres.deliveries", "postgres.devices",   "postgres.documents",   "postgres.employees",
        "postgres.invoices",   "postgres.items",     "postgres.messages",    "postgres.orders",
        "postgres.payments",   "postgres.prices",    "postgres.products",    "postgres.reviews",
        "postgres.sessions",   "postgres.suppliers", "postgres.audit.trail", "postgres.audit.visits",
};
#define NAMES (sizeof names / sizeof *names)

/* Numbers of what chance decides of a table; with columns' numbers in other files. */
#define CHANCE_WEIGHT 82
#define CHANCE_BUCKET 83

static const double shape[SHAPE] = {0.02, 0.13, 0.35, 0.30, 0.13, 0.06, 0.01};

static const struct {
	double low, high; /* statements a second */
	unsigned middle;  /* bucket */
} kinds[TABLE_KINDS] = {[TABLE_READS] = {20, 400, 12}, [TABLE_WRITES] = {5, 120, 20}, [TABLE_COMMANDS] = {0.05, 1, 34}};

const char *const *sim_tables(size_t *ret_count)
{
	*ret_count = NAMES;
	return names;
}

static bool is_there(struct str name)
{
	for (size_t i = 0; i < NAMES; i++)
		if (str_is(name, names[i]))
			return true;
	return false;
}

void sim_tables_find(const struct str *wanted, size_t count, bool *ret_there)
{
	for (size_t i = 0; i < count; i++)
		ret_there[i] = is_there(wanted[i]);
}

static double rate_at(const struct sim_moment *m, const char *node, const char *name, int64_t time_ms,
                      enum table_kind kind)
{
	double spread = sim_chance("", name, CHANCE_WEIGHT, 0);
	if (kind != TABLE_READS && !m->primary)
		return 0;
	return (0.02 + 0.98 * spread * spread) *
	       (kinds[kind].low + (kinds[kind].high - kinds[kind].low) * sim_share(node, name, kind, time_ms));
}

static unsigned first_bucket(const char *name, enum table_kind kind)
{
	unsigned above = (unsigned)(4 * sim_chance("", name, CHANCE_BUCKET, 0));
	return kinds[kind].middle + STEP * above - STEP * BEFORE;
}

double sim_table_at(const struct sim_moment *m, const char *node, const char *name, int64_t time_ms, unsigned column)
{
	if (column == TABLE_LEADS)
		return m->primary;
	if (column >= TABLE_COUNTS) {
		enum table_kind kind = (enum table_kind)((column - TABLE_COUNTS) / LATENCY_BUCKETS);
		unsigned bucket = (column - TABLE_COUNTS) % LATENCY_BUCKETS, first = first_bucket(name, kind);
		return bucket >= first && bucket < first + SHAPE * STEP && (bucket - first) % STEP == 0
		               ? shape[(bucket - first) / STEP] * rate_at(m, node, name, time_ms, kind)
		               : 0;
	}
	enum table_kind kind = (enum table_kind)(column - TABLE_TIMES);
	double mean_us = 0;
	for (unsigned i = 0, first = first_bucket(name, kind); i < SHAPE; i++)
		mean_us += shape[i] * latency_middle_us(first + i * STEP);
	return rate_at(m, node, name, time_ms, kind) * mean_us / 1000;
}

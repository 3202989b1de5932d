/* What the files of advice share. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_ADVICE_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_ADVICE_H

#include "engine/postgres/model/model.h"

#include <libpq-fe.h>

extern const struct engine_advice_ops pg_advice;

/* One question to a cluster: it ends at its time, whatever is left to ask. */
#define PG_ADVICE_MS 8000
#define PG_ADVICE_NODES 64

/* A node as it was when the question began, so that no lock is held while servers are asked. */
struct pg_place {
	struct pg_node node;
	char run[PG_PATH], data[PG_PATH];
	unsigned set;
	bool leads, runs;
};

struct pg_inquiry {
	struct engine *engine;
	unsigned version;
	struct pg_place *places;
	size_t place_count;
	int64_t end_ms; /* by pg_mono_ms() */
	struct arena *arena;
};

/* -ENOENT: no such cluster. */
int pg_inquiry_begin(struct engine *e, const char *cluster_id, struct arena *a, struct pg_inquiry *ret_inquiry);
/* What is left of its time, at most this much; 0: nothing. */
int pg_inquiry_left(const struct pg_inquiry *q, int most_ms);
/* A connection whose statements and locks are bounded. */
int pg_inquiry_open(const struct pg_inquiry *q, const struct pg_place *p, const char *database, PGconn **ret_conn);
/* The primary of a set; NULL: none runs. */
const struct pg_place *pg_inquiry_primary(const struct pg_inquiry *q, unsigned set);
/* The databases that users have there. */
int pg_inquiry_databases(const struct pg_inquiry *q, const struct pg_place *p, const char ***ret_names,
                         size_t *ret_count);
/* What to install when the servers' version has no such library; NULL: it has. */
const char *pg_inquiry_lacks(const struct pg_inquiry *q, const char *library, const char *package);
/* Asks a node for conditions that pg_qualstats has sampled there; `sql` reads steward.pg_qualstats(). -EAGAIN: not
 * now. -ENOENT: it counts none, and *ret_missing says why. */
int pg_inquiry_quals(const struct pg_inquiry *q, const struct pg_place *p, const char *sql, PGresult **ret_rows,
                     const char **ret_missing);

/* The same of pg_stat_statements. */
int pg_inquiry_statements(const struct pg_inquiry *q, const struct pg_place *p, const char *sql, PGresult **ret_rows,
                          const char **ret_missing);

#endif

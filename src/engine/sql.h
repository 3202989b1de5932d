/* Statements of people: what a person types runs as that person's own user of the database, whose rights are all that
 * it has. */
#ifndef STEWARD_ENGINE_SQL_H
#define STEWARD_ENGINE_SQL_H

#include "engine/core.h"

struct buf;

struct engine_sql {
	struct str user, password, database, text;
	bool write;                /* else it can change nothing, whatever the user may */
	unsigned seconds;          /* that it may take */
	int64_t row_max, byte_max; /* of what is given back */
};

struct engine_sql_ops {
	/* Asks the primary, or the router. The answer is JSON, as src/programs/steward_sql.c says; bounded, whatever
	 * the database sends. Blocks, so not for a loop. -ENOENT: no such cluster; -EAGAIN: no node of it runs;
	 * -ETIMEDOUT: no answer, or more than fits. */
	int (*run)(struct engine *e, const char *cluster_id, const struct engine_sql *ask, struct arena *a,
	           struct buf *ret_answer);
};

#endif

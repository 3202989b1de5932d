/* Builds of indexes, each on a thread of its own. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_INDEX_RUN_H
#define STEWARD_ENGINE_POSTGRES_SQL_INDEX_RUN_H

#include "engine/postgres/model/model.h"

/* How far a build is in a phase of pg_stat_progress_create_index of which so many percent are done, and in words. Over
 * the phases in their order it never falls. */
unsigned pg_index_percent(const char *phase, unsigned done, const char **ret_what);
int pg_index_build(struct engine *e, const struct engine_index *want, struct engine_progress *progress, struct arena *a,
                   const char **ret_why);
void pg_index_tasks_stop(struct engine *e);
void pg_index_tasks_free(struct engine *e);

#endif

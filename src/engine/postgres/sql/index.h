/* Indexes that are built beside running work. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_INDEX_H
#define STEWARD_ENGINE_POSTGRES_SQL_INDEX_H

#include "engine/postgres/model/model.h"

extern const struct engine_index_ops pg_index;
/* All of a build, on this thread. */
int pg_index_build_here(struct engine *e, const struct engine_index *want, struct engine_progress *progress,
                        struct arena *a, const char **ret_why);

#endif

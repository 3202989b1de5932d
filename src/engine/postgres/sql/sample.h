/* The sample data. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_SAMPLE_H
#define STEWARD_ENGINE_POSTGRES_SQL_SAMPLE_H

#include "engine/postgres/model/model.h"

int pg_load_sample(struct engine *e, const char *cluster_id, struct engine_progress *progress, struct arena *a,
                   const char **ret_why);

#endif

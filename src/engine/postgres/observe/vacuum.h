/* How vacuum keeps up; of engine/activity.h. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_VACUUM_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_VACUUM_H

#include "engine/engine.h"
#include "engine/postgres/model/model.h"

int pg_vacuum_look(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
                   struct engine_vacuum *ret_vacuum);

#endif

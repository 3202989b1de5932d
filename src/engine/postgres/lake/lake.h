/* Online archives on real clusters. */
#ifndef STEWARD_ENGINE_POSTGRES_LAKE_LAKE_H
#define STEWARD_ENGINE_POSTGRES_LAKE_LAKE_H

#include "engine/engine.h"

extern const struct engine_lake_ops pg_lake;

#endif

/* Query shapes: what they took. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_SHAPES_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_SHAPES_H

#include "engine/engine.h"

extern const struct engine_shapes_ops pg_shapes;

#endif

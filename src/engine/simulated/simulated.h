/* The engine without databases, for engine.c alone. */
#ifndef STEWARD_ENGINE_SIMULATED_SIMULATED_H
#define STEWARD_ENGINE_SIMULATED_SIMULATED_H

#include "engine/engine.h"

extern const struct engine_ops engine_simulated;

#endif

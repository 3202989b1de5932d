/* Federated database instances: engine/federation.h. */
#ifndef STEWARD_ENGINE_POSTGRES_FEDERATION_FEDERATION_H
#define STEWARD_ENGINE_POSTGRES_FEDERATION_FEDERATION_H

#include "engine/engine.h"

extern const struct engine_federation_ops pg_federation;

#endif

/* The PostgreSQL engine, for engine.c. */
#ifndef STEWARD_ENGINE_POSTGRES_POSTGRES_H
#define STEWARD_ENGINE_POSTGRES_POSTGRES_H

#include "engine/engine.h"

extern const struct engine_ops engine_postgres; /* postgres.c; for engine.c */

#endif

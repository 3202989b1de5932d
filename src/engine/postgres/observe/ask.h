/* Statements of people, as their own users. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_ASK_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_ASK_H

#include "engine/engine.h"

extern const struct engine_sql_ops pg_sql_of_people;

#endif

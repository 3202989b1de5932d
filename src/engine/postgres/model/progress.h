/* How far slow work has come, and whether it shall end. */
#ifndef STEWARD_ENGINE_POSTGRES_MODEL_PROGRESS_H
#define STEWARD_ENGINE_POSTGRES_MODEL_PROGRESS_H

#include "engine/engine.h"

void pg_tell(struct engine_progress *p, unsigned percent, const char *what); /* p may be NULL */
bool pg_is_stopped(const struct engine_progress *p);                         /* the service stops; p may be NULL */

#endif

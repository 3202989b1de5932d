/* Threads of the engine. */
#ifndef STEWARD_ENGINE_POSTGRES_MODEL_WORK_H
#define STEWARD_ENGINE_POSTGRES_MODEL_WORK_H

#include "engine/postgres/model/model.h"

/* Runs fn(arg) on a thread that stop() waits for. */
int pg_engine_work(struct engine *e, void *(*fn)(void *), void *arg);
void pg_engine_work_done(struct engine *e);
/* The supervision looks at once. */
void pg_engine_wake(struct engine *e);

#endif

/* A range of a log, out of the directory that it lies in. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_LOG_FOLLOW_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_LOG_FOLLOW_H

#include "engine/engine.h"

int pg_log_range(const char *directory, const struct engine_log *log, struct engine_log_range *range,
                 engine_log_take *take, void *ctx);

#endif

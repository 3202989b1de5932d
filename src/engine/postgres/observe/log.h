/* A node's log as a stream. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_LOG_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_LOG_H

#include "engine/postgres/model/model.h"

int pg_log_stream(struct pg_cluster *c, const struct engine_log *log, int *ret_fd);

#endif

/* How long servers' logs are kept. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_RETENTION_H
#define STEWARD_ENGINE_POSTGRES_HOST_RETENTION_H

#include "base/str.h"

#define PG_LOG_BYTES_MAX (512ll << 20)
void pg_log_tidy(const char *path, int64_t bytes_max);
void *pg_logs_tidy(void *engine); /* with pg_engine_work() */

#endif

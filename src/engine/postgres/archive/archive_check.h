/* Whether all log is there: archive_check.c. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_CHECK_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_CHECK_H

#include "engine/postgres/model/model.h"

/* Of engine_backup_ops: tells what is missing of any cluster's log. */
int pg_backup_check_log(struct repository *r, void (*fault)(void *ctx, const char *words), void *ctx,
                        struct repo_check *seen);

#endif

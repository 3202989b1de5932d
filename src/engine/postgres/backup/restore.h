/* A snapshot comes back in the place of what a cluster has. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_RESTORE_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_RESTORE_H

#include "engine/postgres/model/model.h"

int pg_backup_restore(struct engine *e, const struct engine_source *from, const struct engine_point *to,
                      const struct engine_cluster *want, const struct engine_access *access, const _Atomic bool *cancel,
                      struct engine_progress *progress, struct arena *a, const char **ret_why);

#endif

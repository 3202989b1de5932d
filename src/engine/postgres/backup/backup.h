/* The table of what the engine can do about backups, and the repositories that it needs for it. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_BACKUP_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_BACKUP_H

#include "engine/postgres/model/model.h"

extern const struct engine_backup_ops pg_backup;
/* Counted, as repository_get(). -ENOTSUP: there are no repositories. */
int pg_repository_get(struct engine *e, const char *region, const char *group_id, struct repository **ret_repository,
                      const char **ret_why);

#endif

/* A snapshot's databases as files that other programs read. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_EXPORT_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_EXPORT_H

#include "engine/postgres/model/model.h"

int pg_backup_export(struct engine *e, const struct engine_source *of, const struct engine_export *to,
                     struct engine_progress *progress, struct arena *a, const char **ret_why);

#endif

/* Whether a snapshot can be brought back, tried. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_DRILL_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_DRILL_H

#include "engine/postgres/model/model.h"

int pg_backup_prove(struct engine *e, const struct engine_source *of, bool start, struct engine_progress *progress,
                    struct arena *a, struct engine_proof *ret_proof, const char **ret_why);

#endif

/* One database or one table of a snapshot comes back. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_PIECE_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_PIECE_H

#include "engine/postgres/model/model.h"

#include <libpq-fe.h>

int pg_backup_restore_piece(struct engine *e, const struct engine_source *from, const struct engine_point *to,
                            const struct engine_piece *piece, const struct engine_cluster *want,
                            const struct engine_access *access, const _Atomic bool *cancel,
                            struct engine_progress *progress, struct arena *a, const char **ret_why);

#endif

/* A snapshot comes back in the place of what a cluster has. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_RESTORE_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_RESTORE_H

#include "engine/postgres/model/model.h"

int pg_backup_restore(struct engine *e, const struct engine_source *from, const struct engine_point *to,
                      const struct engine_cluster *want, const struct engine_access *access, const _Atomic bool *cancel,
                      struct engine_progress *progress, struct arena *a, const char **ret_why);
/* Ends what a crash cut short: back to the old data, or on to the new. With cluster.work held. */
int pg_restore_resume(struct pg_cluster *c);
void pg_restore_recall(struct pg_cluster *c); /* the same when the service starts, before anything is supervised */
int pg_restore_sweep(struct pg_cluster *c, struct pg_node *n); /* nothing of one that was cut short is left */
void pg_restore_tidy(struct pg_cluster *c);                    /* old data that nobody needs any more */

#endif

/* A restore, as far as it is the cluster's own. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_RESTORING_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_RESTORING_H

#include "engine/postgres/model/model.h"

/* Durably. */
int pg_restore_mark(struct pg_cluster *c, enum pg_restoring now);
/* Ends what a crash cut short: back to the old data, or on to the new. With cluster.work held. */
int pg_restore_resume(struct pg_cluster *c);
void pg_restore_recall(struct pg_cluster *c); /* the same when the service starts, before anything is supervised */
int pg_restore_sweep(struct pg_cluster *c, struct pg_node *n); /* nothing of one that was cut short is left */
void pg_restore_tidy(struct pg_cluster *c);                    /* old data that nobody needs any more */

#endif

/* Bounds on the disk of clusters. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_QUOTA_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_QUOTA_H

#include "engine/postgres/model/model.h"

#include <libpq-fe.h>

void pg_quota_recall(struct pg_cluster *c); /* what it was before this process */
void pg_quota_tick(struct engine *e);       /* looks, in the background, when it is time */
/* How many connections each user may have; through a connection to a primary. */
int pg_quota_apply(struct pg_cluster *c, const struct pg_node *primary, PGconn *conn);
void pg_disk_usage(struct engine *e, struct engine_disk *ret_disk); /* of engine_disk_ops */

#endif

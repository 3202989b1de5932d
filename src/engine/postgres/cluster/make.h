/* Nodes that are missing are made. All with cluster.work held. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_MAKE_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_MAKE_H

#include "engine/postgres/model/model.h"

#define PG_START_MS 60000
/* All nodes that are wanted and not there, started unless the cluster is paused. Lets go of cluster.work meanwhile. */
int pg_nodes_make(struct pg_cluster *c, const struct engine_access *access, struct engine_progress *progress,
                  const char **ret_why);
/* Copies that are not yet safe from a power cut: whether there are some, and in the background they become so. */
bool pg_cluster_unflushed(const struct pg_cluster *c);
void pg_cluster_flush(struct pg_cluster *c);

#endif

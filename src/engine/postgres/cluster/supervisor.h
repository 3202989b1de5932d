/* The thread that watches all servers. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_SUPERVISOR_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_SUPERVISOR_H

#include "engine/postgres/model/model.h"

void *pg_supervise(void *engine);
/* All clusters, counted, so that none goes away while it is looked at; the caller puts each and frees the list. */
size_t pg_clusters_hold(struct engine *e, struct pg_cluster ***ret_clusters);

#endif

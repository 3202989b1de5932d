/* What runs and lies here when the service starts. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_ADOPT_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_ADOPT_H

#include "engine/postgres/model/model.h"

/* Of a cluster that has nothing in memory: what lies there, which may have been put back since the start. */
must_check int pg_cluster_recall(struct pg_cluster *c, const struct engine_access *access, const char **ret_why);
/* All clusters that lie here, when the engine starts. */
void pg_clusters_adopt(struct engine *e);

#endif

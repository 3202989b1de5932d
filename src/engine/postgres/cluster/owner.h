/* A cluster's files change hands. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_OWNER_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_OWNER_H

#include "engine/postgres/model/model.h"

/* Before a node is started, with work held: where the cluster has another's user, or a shared one though there is one
 * for its project, and none of its nodes runs, its files change hands. */
int pg_user_settle(struct pg_cluster *c);

#endif

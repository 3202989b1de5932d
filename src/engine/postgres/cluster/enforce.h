/* Access on all nodes at once. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_ENFORCE_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_ENFORCE_H

#include "engine/postgres/model/model.h"

/* Brings cluster.access to all primaries, or to all others, at once. `bounded`: a node that does not take it in time is
 * ended. */
must_check int pg_nodes_enforce(struct pg_cluster *c, bool leading, bool bounded, const char **ret_why);

#endif

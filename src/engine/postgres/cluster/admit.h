/* Whether a node takes clients. All with cluster.work held. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_ADMIT_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_ADMIT_H

#include "engine/postgres/model/model.h"

/* Whether it has replayed all that its primary has; waits at most that long. */
bool pg_admit_has_caught_up(struct pg_cluster *c, struct pg_node *n, int timeout_ms);
/* Nobody comes in any more, and who is in, goes. 0 for one that does not run. */
int pg_admit_shut(struct pg_cluster *c, struct pg_node *n);
/* Opens what may be open. Nodes that have to catch up are waited for, together at most that long; -1: primaries
 * alone. */
void pg_admit_all(struct pg_cluster *c, int timeout_ms);
/* Durably. */
int pg_admit_promise(struct pg_cluster *c, bool open);

#endif

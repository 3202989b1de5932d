/* Who leads a set, and who follows. All with cluster.work held. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_FAILOVER_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_FAILOVER_H

#include "engine/postgres/model/model.h"

int pg_set_promote(struct pg_cluster *c, struct pg_set *s);
int pg_set_failover(struct pg_cluster *c, struct pg_set *s, bool whatever_answers);
int pg_set_switchover(struct pg_cluster *c, struct pg_set *s, const char **ret_why);
/* To the region of the highest priority, where the primary belongs: nothing to do, or once a node there has caught
 * up. */
must_check int pg_set_return(struct pg_cluster *c, struct pg_set *s);
int pg_node_rejoin(struct pg_cluster *c, struct pg_set *s, struct pg_node *n);
int pg_node_copy_from(struct pg_cluster *c, struct pg_node *primary, struct pg_node *n); /* without the lock */
void pg_set_repoint(struct pg_cluster *c, struct pg_set *s);
/* Until the set's standbys stream. */
int pg_cluster_wait_streaming(struct pg_cluster *c, struct pg_set *s, int timeout_ms);
/* `wait`: until standbys that it starts take connections. Without cluster.work while it copies one. */
void pg_cluster_care(struct pg_cluster *c, bool wait);

#endif

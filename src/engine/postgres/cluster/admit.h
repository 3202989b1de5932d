/* Whether a node takes clients. All with cluster.work held. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_ADMIT_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_ADMIT_H

#include "engine/postgres/model/model.h"

struct buf;

/* Before a server starts: shut, unless it has all that was last in force. */
int pg_admit_begin(struct pg_cluster *c, struct pg_node *n);
bool pg_admit_is_shut(const struct pg_cluster *c, const struct pg_node *n); /* as its files say */
/* Writes the rules for clients; and what the server reads, as it is shut or not. */
int pg_admit_write(struct pg_cluster *c, struct pg_node *n, const struct buf *rules, bool *ret_changed);
/* Whether it has replayed all that its primary has; waits at most that long. */
bool pg_admit_has_caught_up(struct pg_cluster *c, struct pg_node *n, int timeout_ms);
/* Nobody comes in any more, and who is in, goes. 0 for one that does not run. */
int pg_admit_shut(struct pg_cluster *c, struct pg_node *n);
/* Opens what may be open. Nodes that have to catch up are waited for, together at most that long; -1: primaries
 * alone. */
void pg_admit_all(struct pg_cluster *c, int timeout_ms);
/* Durably. */
int pg_admit_promise(struct pg_cluster *c, bool open);
/* What the care has to do: access once more after a failover, nodes that have caught up. Quick: whether there is
 * something. */
bool pg_admit_is_due(const struct pg_cluster *c);
void pg_admit_care(struct pg_cluster *c);
void pg_admit_hurry(struct pg_cluster *c); /* the next care does it, however short ago the last was */

#endif

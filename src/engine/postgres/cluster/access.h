/* Who may connect, and from where: users, rules for addresses, and what of both a cluster's servers have. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_ACCESS_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_ACCESS_H

#include "engine/postgres/model/model.h"

int pg_access_apply(struct pg_cluster *c, const struct engine_access *access, const char **ret_why);
/* Keeps a copy: of the users that a server can have. ENGINE_PARTLY: there are others. */
int pg_access_keep(struct pg_cluster *c, const struct engine_access *access, const char **ret_why);
/* What the care has to do: access once more after a failover, nodes that have caught up. Quick: whether there is
 * something. */
bool pg_admit_is_due(const struct pg_cluster *c);
void pg_admit_care(struct pg_cluster *c);
void pg_admit_hurry(struct pg_cluster *c); /* the next care does it, however short ago the last was */

#endif

/* Routers, through which alone users reach shards. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_ROUTER_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_ROUTER_H

#include "engine/postgres/model/model.h"

struct buf;

/* No set becomes a shard that holds data, and no shard goes that does. Before a change, to spare the work: refuses when
 * a router says so. And as the `last` word, right before shards are removed: refuses unless all routers say that there
 * is none. */
int pg_router_check(struct pg_cluster *c, const struct engine_cluster *want, bool last, const char **ret_why);
/* What makes a router know all shards, as SQL. */
void pg_router_servers(const struct pg_cluster *c, struct buf *b);
/* After a change: routers know all shards. */
int pg_router_apply(struct pg_cluster *c, const char **ret_why);

#endif

/* What nodes are behind with, for maintenance. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_RENEW_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_RENEW_H

#include "engine/postgres/model/model.h"

/* It runs a program that was replaced. */
bool pg_node_is_behind(const struct pg_node *n);
bool pg_behind(struct engine *e, const char *cluster_id);

#endif

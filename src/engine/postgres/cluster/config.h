/* A node's configuration. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_CONFIG_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_CONFIG_H

#include "engine/postgres/model/model.h"

int pg_config_check(const struct engine_cluster *want, const char **ret_why);
int pg_config_write(struct pg_cluster *c, struct pg_node *n, bool *ret_changed);
unsigned pg_config_connections(const struct pg_cluster *c, const struct pg_node *n); /* that its set takes */

#endif

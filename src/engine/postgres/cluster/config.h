/* A node's configuration. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_CONFIG_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_CONFIG_H

#include "engine/postgres/model/model.h"

/* What an instance size stands for on this host. */
struct pg_size {
	unsigned number, buffers_mb, work_mb, connections, max_wal_mb;
};
struct pg_size pg_config_size(const char *instance_size);
int pg_config_check(const struct engine_cluster *want, const char **ret_why);
int pg_config_write(struct pg_cluster *c, struct pg_node *n, bool *ret_changed);
void pg_node_run_dir(const struct pg_cluster *c, const struct pg_node *n, char ret_path[PG_PATH]);
unsigned pg_config_connections(const struct pg_cluster *c, const struct pg_node *n); /* that its set takes */

#endif

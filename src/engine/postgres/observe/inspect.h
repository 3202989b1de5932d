/* What is seen of nodes at this moment. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_INSPECT_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_INSPECT_H

#include "engine/postgres/model/model.h"

void pg_stats(struct engine *e, struct engine_stats *ret_stats);
int pg_databases(struct engine *e, const char *cluster_id, const char *node, struct arena *a, struct str **ret_names,
                 size_t *ret_count);
/* The cluster with a reference, and the node as it is now, to be asked without a lock. -ENOENT. */
int pg_node_get(struct engine *e, const char *cluster_id, const char *name, struct pg_cluster **ret_cluster,
                struct pg_node *ret_node);
int pg_partitions(struct engine *e, const char *cluster_id, const char *node, struct arena *a, struct str **ret_names,
                  size_t *ret_count);
int pg_tables_check(struct engine *e, const char *cluster_id, const char *node, const struct str *names, size_t count,
                    bool *ret_there);
void pg_partition_name(dev_t device, char *ret_name, size_t size);
int pg_sent(struct engine *e, const char *cluster_id, struct arena *a, struct engine_sent **ret_list,
            size_t *ret_count);
void pg_node_observe(struct pg_cluster *c, const struct pg_node *n, struct node_status *ret); /* with cluster.lock */

#endif

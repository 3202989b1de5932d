/* The certificates of a project's nodes. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_TLS_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_TLS_H

#include "engine/postgres/model/model.h"

/* A certificate for the node, unless it has a good one. Without a CA at hand, the one that it has is good. */
int pg_tls_ensure(struct pg_cluster *c, struct pg_node *n, bool *ret_changed);
bool pg_tls_ends_soon(const struct pg_cluster *c, const struct pg_node *n);
void pg_tls_take(struct pg_cluster *c, const struct engine_cluster *want);
void pg_node_host(const struct pg_cluster *c, const char *name, char ret_host[192]);

#endif

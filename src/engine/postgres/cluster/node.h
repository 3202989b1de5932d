/* One node: where it lies and listens, and the start of its server. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_NODE_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_NODE_H

#include "engine/postgres/model/model.h"

/* Whether the address can be listened on. */
int pg_address_check(const char *address);
int pg_node_place(struct pg_cluster *c, struct pg_node *n);   /* slot, address, port */
int pg_node_prepare(struct pg_cluster *c, struct pg_node *n); /* directories, certificate, configuration */
int pg_node_start(struct pg_cluster *c, struct pg_node *n);

#endif

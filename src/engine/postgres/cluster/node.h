/* One node: where it lies and listens, and its server from start to a proven end. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_NODE_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_NODE_H

#include "engine/postgres/model/model.h"

/* Whether the address can be listened on. */
int pg_address_check(const char *address);
int pg_node_place(struct pg_cluster *c, struct pg_node *n);   /* slot, address, port */
int pg_node_prepare(struct pg_cluster *c, struct pg_node *n); /* directories, certificate, configuration */
int pg_node_start(struct pg_cluster *c, struct pg_node *n);
int pg_node_wait_ready(struct pg_cluster *c, struct pg_node *n, int timeout_ms, const char **ret_why);
enum pg_node_halt { PG_HALT_FAST, PG_HALT_NOW, PG_HALT_KILL };
/* Stopped, and proven to be. */
int pg_node_halt(struct pg_cluster *c, struct pg_node *n, enum pg_node_halt how);
/* After death: nothing of it runs, locks and shared memory are gone. Of the node's server, or another in its place. */
int pg_node_bury(struct pg_cluster *c, struct pg_node *n);
int pg_server_bury(struct pg_cluster *c, struct pg_node *n, const char *data, unsigned port);
int pg_node_reload(struct pg_cluster *c, struct pg_node *n); /* returns when it is in force */
int pg_node_remove(struct pg_cluster *c, struct pg_node *n);
void pg_node_ended(struct pg_cluster *c, struct pg_node *n); /* by itself: counted, to be saved by the caller */

#endif

/* A node's server process. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_SERVER_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_SERVER_H

#include "engine/postgres/model/model.h"

#include <libpq-fe.h>

/* The node's process is that one from now on; 0 and -1: it has none. What was known of another is forgotten. */
void pg_node_process_set(struct pg_cluster *c, struct pg_node *n, pid_t pid, int pidfd);
int pg_node_wait_ready(struct pg_cluster *c, struct pg_node *n, int timeout_ms, const char **ret_why);
enum pg_node_halt { PG_HALT_FAST, PG_HALT_NOW, PG_HALT_KILL };
/* Stopped, and proven to be. */
int pg_node_halt(struct pg_cluster *c, struct pg_node *n, enum pg_node_halt how);
/* After death: nothing of it runs, locks and shared memory are gone. Of the node's server, or another in its place. */
int pg_node_bury(struct pg_cluster *c, struct pg_node *n);
int pg_server_bury(struct pg_cluster *c, struct pg_node *n, const char *data, unsigned port);
int pg_node_reload(struct pg_cluster *c, struct pg_node *n);       /* returns when it is in force */
void pg_node_ended(struct pg_cluster *c, struct pg_node *n);       /* by itself: counted, to be saved by the caller */
bool pg_node_hangs(struct pg_cluster *c, const struct pg_node *n); /* as the supervision has found it */
/* A connection to a node that answers. -ETIMEDOUT at once: it is stopped, was found hanging, or did not answer a moment
 * ago. */
must_check int pg_node_reach(struct pg_cluster *c, struct pg_node *n, PGconn **ret_conn);
/* All nodes are stopped, primaries first, so that standbys get their last record. With cluster.work held. */
int pg_cluster_halt(struct pg_cluster *c);

#endif

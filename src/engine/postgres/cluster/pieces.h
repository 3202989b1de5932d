/* Databases and tables that are being brought back by themselves: what of them is left when it is cut short. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_PIECES_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_PIECES_H

#include "engine/postgres/model/model.h"

#include <libpq-fe.h>

/* Nobody else sweeps meanwhile. */
void pg_pieces_begin(struct pg_cluster *c);
void pg_pieces_end(struct pg_cluster *c);
/* Of a set's primary, through a connection to its database postgres: whatever is the writer's goes, and it does not log
 * in any more. */
int pg_pieces_sweep(const struct pg_node *n, const char *run_dir, PGconn *conn);
/* Of a cluster in which none is being brought back: after a service was killed. With cluster.work held. */
void pg_pieces_tidy(struct pg_cluster *c);

#endif

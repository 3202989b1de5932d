/* CLUSTER/state.json: what must be known of a cluster after a crash. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_STATE_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_STATE_H

#include "engine/postgres/model/model.h"

int pg_state_save(struct pg_cluster *c);
/* Reads CLUSTER/state.json into an empty cluster. */
int pg_state_load(struct pg_cluster *c);
void pg_state_move(struct pg_cluster *to, struct pg_cluster *from); /* into an empty one; nothing is left in `from` */

#endif

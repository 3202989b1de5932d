/* What sets were made with. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_IDENTITY_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_IDENTITY_H

#include "engine/postgres/model/model.h"

/* False when its data is known to be of another database. */
bool pg_node_is_own(struct pg_cluster *c, const struct pg_node *n);
/* Whether its set has had data: then it is not made anew. */
bool pg_node_was_made(struct pg_cluster *c, const struct pg_node *n);
/* Notes what sets were made with, from their data; true when something was. */
bool pg_identities_learn(struct pg_cluster *c);
void pg_identity_remove(struct pg_cluster *c, uint64_t identity); /* of a set that goes as wanted */

#endif

/* Empty data directories, made ahead. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_POOL_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_POOL_H

#include "engine/postgres/model/model.h"

/* Moves a prepared data directory to `path`. */
int pg_pool_take(const struct pg_cluster *c, unsigned version, const char *path);
void pg_pool_start(struct engine *e);
void pg_pool_refill(struct engine *e); /* in the background */

#endif

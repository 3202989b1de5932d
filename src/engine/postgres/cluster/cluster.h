/* A cluster is made as it is wanted, or taken away. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_CLUSTER_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_CLUSTER_H

#include "engine/postgres/model/model.h"

int pg_cluster_converge(struct pg_cluster *c, const struct engine_cluster *want, const struct engine_access *access,
                        struct engine_progress *progress, const char **ret_why);
int pg_cluster_destroy(struct pg_cluster *c, struct engine_progress *progress);
/* One that was destroyed is nobody's any more. */
void pg_cluster_unlink(struct pg_cluster *c);

#endif

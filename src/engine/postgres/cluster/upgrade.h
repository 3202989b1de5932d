/* A cluster goes to a newer version of PostgreSQL. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_UPGRADE_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_UPGRADE_H

#include "engine/postgres/model/model.h"

/* pg_upgrade starts servers that outlive it: no process of one that was cut short is left. */
int pg_upgrade_sweep(struct pg_cluster *c, struct pg_node *n);
/* Ends what a crash cut short, and then, where a newer version is wanted, goes there: primaries in their new form,
 * stopped, standbys gone. */
int pg_cluster_upgrade(struct pg_cluster *c, unsigned version, struct engine_progress *progress, const char **ret_why);
int pg_cluster_analyze(struct pg_cluster *c); /* an upgrade forgets what the planner knew */

#endif

/* Another primary for every shard. */
#ifndef STEWARD_API_CLUSTERS_ACTIONS_H
#define STEWARD_API_CLUSTERS_ACTIONS_H

#include "api/clusters/cluster.h"

int restart_step(struct job_run *r);
int restart_failed(struct tx *tx, struct job_run *r);
#define RESTART_JOB "restart_primaries"

#endif

/* A cluster whose job failed is tried again after a while; the caller saves it. Forgotten once it is as wanted, or
 * gone. */
#ifndef STEWARD_API_CLUSTERS_REPAIR_H
#define STEWARD_API_CLUSTERS_REPAIR_H

#include "api/clusters/cluster.h"

must_check int repair_later(struct tx *tx, struct arena *a, struct cluster *cluster, const char *why, bool missing);
must_check int repair_forget(struct tx *tx, struct arena *a, struct cluster *cluster);
int repair_save(struct tx *tx, struct job_run *r);
#define REPAIR_JOB "cluster_repair"

#endif

/* Clusters one after the other, without a read that lasts as long as what is done to each. */
#ifndef STEWARD_API_CLUSTERS_COLLECT_H
#define STEWARD_API_CLUSTERS_COLLECT_H

#include "api/clusters/cluster.h"

/* The ids of all clusters. */
must_check int clusters_collect(struct store *store, struct arena *a, struct str **ret_ids, size_t *ret_count);

/* In a job's step: each cluster whose nodes this host has, but those that are paused, until one fails or the service
 * stops (-ECANCELED). Nothing is read meanwhile: a visitor reads for itself. */
typedef int cluster_take(struct job_run *r, struct str cluster_id);
must_check int clusters_take_here(struct job_run *r, cluster_take *take);

#endif

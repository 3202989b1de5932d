/* Clusters whose disk is full, from the engine to the project's events, the cluster's status and the metrics. */
#ifndef STEWARD_API_CLUSTERS_DISK_H
#define STEWARD_API_CLUSTERS_DISK_H

#include "api/clusters/cluster.h"

/* engine_options.full_changed, with the service. */
void disk_changed(void *service, const char *cluster_id, enum engine_full full);
/* Says in X-Steward-Progress that the disk is full, and what to do about it. Nothing where it is not. */
void cluster_disk_header(struct call *c, const struct cluster *cluster);
/* A part of cluster_metrics_write(). */
void disk_metrics(struct buf *b, struct service *s);

#endif

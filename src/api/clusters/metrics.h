/* What /metrics tells of clusters, nodes and jobs, beside trail/metrics.h. */
#ifndef STEWARD_API_CLUSTERS_METRICS_H
#define STEWARD_API_CLUSTERS_METRICS_H

#include "api/clusters/cluster.h"

/* Counts what is in the store, now and then. On the main thread, with its reader. */
void cluster_metrics_refresh(struct tx *reader);
/* service.metrics_more: from any thread; touches no store. */
void cluster_metrics_write(struct buf *b, struct service *s);

#endif

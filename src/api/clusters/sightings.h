/* What was seen of clusters' nodes, and what was meant to be seen. */
#ifndef STEWARD_API_CLUSTERS_SIGHTINGS_H
#define STEWARD_API_CLUSTERS_SIGHTINGS_H

#include "api/clusters/cluster.h"

/* In a write: tells the parts what was seen. */
must_check int cluster_observed(struct tx *tx, struct arena *a, const struct service *s, const struct cluster *cluster,
                                const struct cluster_sighting *sighting);
/* The nodes as they are to be; and as the engine was last told to have them: none, while it has yet to be told of a
 * change. */
size_t cluster_planned_nodes(struct arena *a, const struct cluster *cluster, const struct engine_node **ret_nodes);
size_t cluster_applied_nodes(struct arena *a, const struct cluster *cluster, const struct engine_node **ret_nodes);

#endif

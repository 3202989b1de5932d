/* Flex clusters, where they become what others are. */
#ifndef STEWARD_API_CLUSTERS_FLEX_H
#define STEWARD_API_CLUSTERS_FLEX_H

#include "api/clusters/cluster.h"

/* cluster_update_to(), and it is a flex cluster from then on: the body's providerSettings say where; or it stays where
 * it is. */
must_check int flex_become(struct call *c, struct cluster *cluster, json_t *patch);

#endif

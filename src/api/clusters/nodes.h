/* The nodes that come of what a cluster shall be, and its regions. */
#ifndef STEWARD_API_CLUSTERS_NODES_H
#define STEWARD_API_CLUSTERS_NODES_H

#include "engine/engine.h"

#include <jansson.h>

/* Whether a cluster's document is of one with shards and routers. */
bool cluster_is_sharded(const json_t *cluster);
/* The regions of a cluster's document, shard by shard; NULL at the end. */
struct region_walk {
	size_t spec, next; /* the shard of the region that was returned last */
};
json_t *region_next(const json_t *cluster, struct region_walk *walk);
/* The set that a node belongs to: "ab12cd-shard-00" of "ab12cd-shard-00-01". Borrowed. */
struct str node_set(const struct node_status *n);

/* The nodes: [{"name", "kind", "shard", "provider", "region", "size", "disk", "priority"}, ...]. Nodes of `old` that
 * are still wanted keep their names, first come first kept. search: the plan's, or NULL. A new array. */
json_t *cluster_nodes(const json_t *cluster, const json_t *search, const json_t *old_nodes, const char *label);
/* Number of nodes that the specs ask for, and `search` where it is not NULL, at most `most` + 1. */
size_t cluster_node_count(const json_t *cluster, const json_t *search, size_t most);
size_t cluster_shard_count(const json_t *cluster);
/* From the array above to the engine's; `outage` names regions that shall be down: ["AWS/US_EAST_1", ...], or NULL. */
size_t cluster_engine_nodes(const json_t *nodes, const json_t *outage, struct engine_node *ret_nodes, size_t max);

/* A region of a shard, by their places; NULL. And how many nodes it has by one of hardware_fields. */
const json_t *region_at(const json_t *cluster, size_t shard, size_t region);
json_int_t region_nodes(const json_t *region, const char *field);

#endif

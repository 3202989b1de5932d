/* What a cluster shall be: the rules that its schema cannot say, the values that follow from others, and the nodes that
 * come of it. Works on the current form (ClusterDescription20240805); older forms are translated first
 * (forms.c). */
#ifndef STEWARD_API_CLUSTERS_SPEC_H
#define STEWARD_API_CLUSTERS_SPEC_H

#include "base/option.h"
#include "catalog/schema.h"
#include "engine/engine.h"

struct cluster_rules {
	struct arena *arena;
	const unsigned *versions; /* of the engine, newest first */
	size_t version_count;
	const struct option_texts *names; /* of versions: NAME=MAJOR; or NULL */
	const json_t *old;                /* the cluster as it is, or NULL for a new one */
};

/* The providers' lists of regions and sizes stand in the schemas. */
struct cluster_provider {
	const char *name, *settings, *hardware; /* the latter two: schemas */
	const char *first;                      /* the region that is offered by default */
};
#define CLUSTER_PROVIDERS 3
extern const struct cluster_provider cluster_providers[CLUSTER_PROVIDERS];

/* Where a region has what it says of its nodes, by enum node_kind. */
#define HARDWARE 3
extern const char *const hardware_fields[HARDWARE];

/* Zones and ids of shards: those of `old`, for the shards that are there already; else new ones. First of the three. */
void cluster_identify(const json_t *cluster, const json_t *old);
/* Completes the cluster (priorities, sizes, version, defaults) and adds what is wrong with it. */
void cluster_check(const struct cluster_rules *rules, json_t *cluster, struct faults *faults);
/* Shards of `old` keep their order, and new ones follow. */
void cluster_sort(json_t *cluster, const json_t *old);

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

/* What the first nodes of a shard are: of its electable nodes, where it has any. NULL: it says nothing of nodes. */
const json_t *shard_hardware(const json_t *spec);

/* A shared-tier cluster: TENANT, or FLEX. The same of one region of it. */
bool cluster_is_tenant(const json_t *cluster);
bool region_is_shared(const json_t *config);

#endif

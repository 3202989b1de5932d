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
/* GB that a node of a size has where nobody asks for another number. */
double cluster_disk_standard(struct str size);
/* Shards of `old` keep their order, and new ones follow. */
void cluster_sort(json_t *cluster, const json_t *old);

/* Major version as a number; 0 when the text is none. names: NAME=MAJOR each, or NULL. */
unsigned cluster_version(const struct option_texts *names, const json_t *cluster);
/* What the first nodes of a shard are: of its electable nodes, where it has any. NULL: it says nothing of nodes. */
const json_t *shard_hardware(const json_t *spec);

/* A shared-tier cluster: TENANT, or FLEX. The same of one region of it. */
bool cluster_is_tenant(const json_t *cluster);
bool region_is_shared(const json_t *config);

#endif

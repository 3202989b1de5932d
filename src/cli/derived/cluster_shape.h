/* What `steward clusters create` makes when nobody says more than a size and a number of nodes: the same flags shape
 * the request whether or not flags of the API stand beside them. */
#ifndef STEWARD_CLI_DERIVED_CLUSTER_SHAPE_H
#define STEWARD_CLI_DERIVED_CLUSTER_SHAPE_H

#include "base/json.h"
#include "cli/profile.h"

#include <stdbool.h>

/* What `steward clusters` can be given. */
struct clusters_arguments {
	struct profile_arguments at;
	const char *output, *query, *dry_run, *provider, *region, *size, *version, *body;
	unsigned nodes, shards, disk, timeout;
	bool wait, watch, yes;
};

#define CLUSTER_SHAPE_FLAGS 7
extern const char *const cluster_shape_flags[CLUSTER_SHAPE_FLAGS];
/* The shared tiers: one node, providerName TENANT, and the real provider in backingProviderName. */
bool cluster_size_is_shared(const char *size);
must_check int cluster_shape_check(const struct clusters_arguments *g, const struct options *given);
/* The request. Without a name (NULL) where the body gets it otherwise. */
json_t *cluster_shape_make(const struct clusters_arguments *g, const char *name);

/* The same from the flags of a derived command, one by one. */
struct cluster_shape;

struct cluster_shape *cluster_shape_new(struct arena *a);
/* Whether it is one of the flags that say what a cluster shall be. */
bool cluster_shape_has(struct str flag);
must_check int cluster_shape_set(struct cluster_shape *s, struct str flag, const char *text);
bool cluster_shape_is_given(const struct cluster_shape *s);
/* The request as JSON, without a name. NULL: the flags contradict each other, which was said. */
const char *cluster_shape_body(const struct cluster_shape *s);

#endif

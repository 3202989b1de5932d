/* What `steward clusters create` makes when nobody says more than a size and a number of nodes: the same flags shape
 * the request whether or not flags of the API stand beside them. */
#ifndef STEWARD_CLI_CLUSTERS_H
#define STEWARD_CLI_CLUSTERS_H

#include "base/arena.h"

#include <stdbool.h>

struct cluster_shape;

struct cluster_shape *cluster_shape_new(struct arena *a);
/* Whether it is one of the flags that say what a cluster shall be. */
bool cluster_shape_has(struct str flag);
must_check int cluster_shape_set(struct cluster_shape *s, struct str flag, const char *text);
bool cluster_shape_is_given(const struct cluster_shape *s);
/* The request as JSON, without a name. NULL: the flags contradict each other, which was said. */
const char *cluster_shape_body(const struct cluster_shape *s);

#endif

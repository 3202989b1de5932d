/* Query shapes: what others may use of the family. */
#ifndef STEWARD_API_QUERY_SHAPES_QUERY_SHAPES_H
#define STEWARD_API_QUERY_SHAPES_QUERY_SHAPES_H

#include "api/clusters/clusters.h"

/* The rejected shapes of a cluster are part of its access. */
extern const struct cluster_part query_shapes_part;

/* Which keep what shapes took by periods. */
extern const struct job_kinds query_shapes_jobs;

/* GET .../queryShapeInsights/{queryShapeHash}:plans: how queries of a shape were executed. Beside the catalog; it
 * passes the same gates. */
bool shape_plans_is_path(struct str path);
void shape_plans_serve(struct service *s, struct request *r);

/* Another host's question for one shape: the path, with "CLUSTER,HASH" as its query, and who answers it. */
#define SHAPE_ASKED "/hosts/shape"
void shape_asked(struct service *s, struct request *r);

#endif

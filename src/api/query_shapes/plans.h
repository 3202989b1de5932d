/* How queries of a shape were executed, over time. */
#ifndef STEWARD_API_QUERY_SHAPES_PLANS_H
#define STEWARD_API_QUERY_SHAPES_PLANS_H

#include "api/clusters/clusters.h"
#include "api/query_shapes/shapes.h"
#include "jobs/jobs.h"

/* Notes the plans of slow executions since it was last called, of the nodes that have told their shapes. Reads their
 * logs: to be called where there was a slow one. */
must_check int plans_collect(struct job_run *r, struct arena *a, struct str cluster_id, const struct shapes *live);
/* One plan more, of a node's execution at that time. `kept`: {FINGERPRINT: [plan ...]}, newest last. */
void plan_add(struct arena *a, json_t *kept, const char *fingerprint, const struct engine_slow *slow);
/* In the write that takes the cluster away. */
must_check int plans_removed(struct tx *tx, const struct cluster *cluster);

#endif

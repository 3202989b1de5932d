/* Simulated outages of regions. */
#ifndef STEWARD_API_CLUSTERS_OUTAGE_H
#define STEWARD_API_CLUSTERS_OUTAGE_H

#include "api/clusters/cluster.h"

/* Regions that shall be down (["AWS/US_EAST_1"], or NULL), and the step of the simulation that a
 * converge has completed. */
must_check int outage_regions(struct tx *tx, struct arena *a, struct str cluster_id, json_t **ret_regions);
must_check int outage_converged(struct tx *tx, struct arena *a, const struct cluster *cluster);
/* Adds a link to the cluster's simulation, where there is one, to the entity that was written last. */
void outage_link(struct call *c, const struct doc *cluster);
/* The cluster goes: no job of the simulation's end stays. */
must_check int outage_forget(struct tx *tx, struct arena *a, struct str cluster_id);
/* An outage simulation's time is over. */
int outage_end_save(struct tx *tx, struct job_run *r);
#define OUTAGE_END_JOB "outage_end"

#endif

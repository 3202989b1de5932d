/* The hours of its life that the request gives a cluster; what is wrong with them; what its oldest form shows of
 * them. */
#ifndef STEWARD_API_CLUSTERS_LIFETIME_H
#define STEWARD_API_CLUSTERS_LIFETIME_H

#include "api/clusters/cluster.h"

must_check int lifetime_set(struct call *c, struct cluster *cluster, bool is_new);
void lifetime_check(struct call *c, struct faults *faults);
void lifetime_show(struct arena *a, const struct doc *d, json_t *view);
int lifetime_save(struct tx *tx, struct job_run *r);
#define LIFETIME_JOB "cluster_end"

#endif

/* Loads of sample data. */
#ifndef STEWARD_API_CLUSTERS_SAMPLES_H
#define STEWARD_API_CLUSTERS_SAMPLES_H

#include "api/clusters/cluster.h"

/* Adds a link to the last load of the cluster to the entity that was written last. */
void sample_link(struct call *c, const struct doc *cluster);
int sample_step(struct job_run *r);
int sample_failed(struct tx *tx, struct job_run *r);
#define SAMPLE_JOB "sample_load"

#endif

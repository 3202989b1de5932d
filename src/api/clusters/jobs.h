/* The jobs that make clusters what their documents say. */
#ifndef STEWARD_API_CLUSTERS_JOBS_H
#define STEWARD_API_CLUSTERS_JOBS_H

#include "api/clusters/cluster.h"

/* At the start, once: a job for each cluster, so that the engine finds again what there is. */
must_check int clusters_adopt(struct store *store);
/* For the test control's reset: collected before the wipe, destroyed after it. */
void clusters_destroy(struct service *s, const struct str *ids, size_t count);
/* The job's cluster, with the store left alone again. 1: it is going or paused, and not to be worked on. */
must_check int cluster_of_job(struct job_run *r, struct cluster *ret_cluster);
/* What an engine tells of its progress, into the job's row. */
struct engine_progress cluster_progress(struct job_run *r);

extern const struct job_kinds cluster_jobs;

#endif

/* Indexes that are built beside running work: asked for by a call, built by a job. */
#ifndef STEWARD_API_INDEX_INDEX_H
#define STEWARD_API_INDEX_INDEX_H

#include "api/clusters/clusters.h"

extern const struct job_kinds index_jobs;
extern const struct cluster_part index_part;

/* Another host's question, whether an index can be built: the path, and who answers it. */
#define INDEX_CHECKED "/hosts/index"
void index_checked(struct service *s, struct request *r);

#endif

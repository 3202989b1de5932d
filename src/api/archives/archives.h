/* Online archives of clusters: the calls, and the jobs that move rows, end files and take away what is left. */
#ifndef STEWARD_API_ARCHIVES_ARCHIVES_H
#define STEWARD_API_ARCHIVES_ARCHIVES_H

#include "api/clusters/clusters.h"

extern const struct job_kinds archives_jobs;
extern const struct cluster_part archives_part;

/* Another host's question, whether rows can be archived so: the path, and who answers it. */
#define ARCHIVES_CHECKED "/hosts/archives"
void archives_checked(struct service *s, struct request *r);

#endif

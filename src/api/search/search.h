/* Search indexes of clusters: the calls, and the jobs that build, watch and drop them. */
#ifndef STEWARD_API_SEARCH_SEARCH_H
#define STEWARD_API_SEARCH_SEARCH_H

#include "api/clusters/clusters.h"

extern const struct job_kinds search_jobs;
extern const struct cluster_part search_part;

/* Another host's question, whether a search index can be built: the path, and who answers it. */
#define SEARCH_CHECKED "/hosts/search"
void search_checked(struct service *s, struct request *r);

#endif

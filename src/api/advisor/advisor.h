/* The performance advisor, as far as others need it. */
#ifndef STEWARD_API_ADVISOR_ADVISOR_H
#define STEWARD_API_ADVISOR_ADVISOR_H

#include "api/clusters/clusters.h"

/* Brings the threshold of slow statements to the engine, and takes away what was kept of a cluster that is gone. */
extern const struct cluster_part advisor_part;
/* Collects what suggestions rest on. */
extern const struct job_kinds advisor_jobs;

#endif

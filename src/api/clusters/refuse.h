/* Refusals that many operations on clusters share. */
#ifndef STEWARD_API_CLUSTERS_REFUSE_H
#define STEWARD_API_CLUSTERS_REFUSE_H

#include "api/clusters/cluster.h"

/* 409. */
must_check int cluster_refuse_deleting(struct call *c, const struct cluster *cluster);
must_check int cluster_refuse_paused(struct call *c, const struct cluster *cluster);
/* The engine in use has no such capability. */
int cluster_not_offered(struct call *c);

#endif

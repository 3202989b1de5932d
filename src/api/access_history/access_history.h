/* Who came to the databases, from their logs. */
#ifndef STEWARD_API_ACCESS_HISTORY_ACCESS_HISTORY_H
#define STEWARD_API_ACCESS_HISTORY_ACCESS_HISTORY_H

#include "api/clusters/clusters.h"

/* A cluster's link to its history. */
extern const struct cluster_part access_history_part;

#endif

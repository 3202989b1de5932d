/* Clusters as answers, in the form of the call's version. */
#ifndef STEWARD_API_CLUSTERS_VIEW_H
#define STEWARD_API_CLUSTERS_VIEW_H

#include "api/clusters/clusters.h"

/* Writes the entity with its links to c->out. */
must_check int cluster_write(struct call *c, const struct doc *d);
/* For the drop hook of a kind of cluster. */
must_check int cluster_drop(struct call *c, const struct doc *d);
/* The grant of the vendor's employees, and the pin of the feature version, unless their time is over. Borrowed or
 * NULL. */
const json_t *cluster_grant(const json_t *body);
bool cluster_is_pinned(const json_t *body);
/* Tells how far the cluster's job is, in a header: X-Steward-Progress. */
void cluster_progress_header(struct call *c, const struct cluster *cluster);

#endif

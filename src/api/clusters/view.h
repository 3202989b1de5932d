/* Clusters as answers, in the form of the call's version. */
#ifndef STEWARD_API_CLUSTERS_VIEW_H
#define STEWARD_API_CLUSTERS_VIEW_H

#include "api/clusters/cluster.h"

/* Writes the entity with its links to c->out. */
must_check int cluster_write(struct call *c, const struct doc *d);
/* For the drop hook of a kind of cluster. */
must_check int cluster_drop(struct call *c, const struct doc *d);
/* Completes a stored cluster: fields that nobody gave have the values that they come to. Two that are shown alike are
 * the same. */
void cluster_show(json_t *body);
/* The grant of the vendor's employees, and the pin of the feature version, unless their time is over. Borrowed or
 * NULL. */
const json_t *cluster_grant(const json_t *body);
bool cluster_is_pinned(const json_t *body);
/* Says it in X-Steward-Progress, after "what: "; what an engine says may hold anything, and may be long. */
void cluster_progress_say(struct call *c, const char *what, struct str text);
/* Tells how far the cluster's job is there. */
void cluster_progress_header(struct call *c, const struct cluster *cluster);

#endif

/* What the operations on clusters share. Each returns 0, or negative after the problem is written. */
#ifndef STEWARD_API_CLUSTERS_UPDATE_H
#define STEWARD_API_CLUSTERS_UPDATE_H

#include "api/clusters/cluster.h"

/* Completes and checks a whole cluster in the current form; what is wrong goes to `faults`. */
must_check int cluster_validate(struct call *c, json_t *body, const json_t *old, struct faults *faults);
/* A new cluster of that kind from a whole body that cluster_validate() found no fault with: limits, defaults, policies,
 * event. */
must_check int cluster_create(struct call *c, const char *kind, json_t *body, bool independent,
                              struct cluster *ret_cluster);
/* 412 and 409 of what changes a cluster. */
must_check int cluster_check_change(struct call *c, const struct cluster *cluster);
/* Asks for its deletion, unless it is protected. */
must_check int cluster_delete(struct call *c, struct cluster *cluster);
/* Changes a cluster: `patch` has fields of the current form. Writes the event, and asks for a job where one is
 * needed. */
must_check int cluster_update_to(struct call *c, struct cluster *cluster, const json_t *patch);
/* Of the verbs: makes or changes what the request says. In another form: by what makes one of the request, and what
 * gives its fields of the current form (a new value). */
must_check int cluster_put(struct call *c, struct doc *d, const struct doc *old, json_t *document);
must_check int cluster_put_by(struct call *c, struct doc *d, const struct doc *old,
                              int (*make)(struct call *c, struct cluster *ret_cluster),
                              json_t *(*patch)(struct call *c, const json_t *cluster));

#endif

/* Clusters out of the store and into it. */
#ifndef STEWARD_API_CLUSTERS_STORE_H
#define STEWARD_API_CLUSTERS_STORE_H

#include "api/clusters/cluster.h"

/* The path's {clusterName}, or another one of the call's project. -ENOENT. */
must_check int cluster_load(struct call *c, struct cluster *ret_cluster);
must_check int cluster_load_named(struct call *c, struct str name, struct cluster *ret_cluster);
/* The one of the call's project whose label the host's name begins with. */
must_check int cluster_of_host(struct call *c, struct str host, struct cluster *ret_cluster);
must_check int cluster_get(struct tx *tx, struct arena *a, struct str id, struct cluster *ret_cluster);

/* A document that was read already. */
struct cluster cluster_of(struct arena *a, const struct doc *d);

/* A new one of a kind, from a body that was checked and identified: label, plan, host, insert, job. -EEXIST: the
 * project has a cluster of that name, of whatever kind. -EDQUOT: no host takes it, and *ret_why says why. */
must_check int cluster_insert(struct tx *tx, struct arena *a, const char *kind, struct str group_id, json_t *body,
                              bool independent, struct cluster *ret_cluster, struct str *ret_why);
/* -EEXIST: the name is taken, by a cluster of whatever kind. */
must_check int cluster_name_check(struct tx *tx, struct arena *a, struct str group_id, struct str name);
/* To the end of the other kind's list, under the same id; not yet saved otherwise. */
must_check int cluster_move(struct tx *tx, struct arena *a, struct cluster *cluster, const char *kind);
/* Writes body and plan back. */
must_check int cluster_save(struct tx *tx, struct arena *a, struct cluster *cluster);
/* The same for a change that the engine must make: nodes anew, state, generation, job. State NULL: it is being updated,
 * or still created. */
must_check int cluster_change(struct tx *tx, struct arena *a, struct cluster *cluster, const char *state);
/* What hangs on it, its label and itself: gone. */
must_check int cluster_remove(struct tx *tx, struct arena *a, struct cluster *cluster);
bool cluster_is(const struct cluster *cluster, const char *state);
/* Whether it is UPDATING for another reason than a change of it: the plan's "restoring", or "indexing", a list of the
 * builds under way. */
bool cluster_is_worked_on(const struct cluster *cluster);
/* Asks for the cluster's job once more: what its surroundings say of it may have changed. Also for a walk. */
must_check int cluster_reconcile(struct tx *tx, struct str cluster_id);
doc_visit cluster_look_again;

/* Every cluster of a project, of all kinds, dedicated ones first. */
must_check int clusters_walk_group(struct tx *tx, struct arena *a, struct str group_id, doc_visit *visit, void *ctx);

/* Every cluster of the service, kind by kind and in each project by project. The document is the visitor's for the call
 * only. */
must_check int clusters_walk(struct tx *tx, doc_visit *visit, void *ctx);

#endif

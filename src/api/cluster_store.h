/* Clusters as they are kept: the document, in the current form (ClusterDescription20240805) without links, and beside
 * it, where documents have what never leaves, the plan:
 *
 *   {"label": "ab12cd", "hash": "x1y2z3", "generation": 3, "applied": 2, "type": "SHARDED", "independent": true, "nodes": [...]}
 *
 * Each change that the engine must make counts the generation up and asks for a job; the job notes the generation that
 * it has applied, and as which type of cluster. Independent: its shards scale on their own. */
#ifndef STEWARD_API_CLUSTER_STORE_H
#define STEWARD_API_CLUSTER_STORE_H

#include "engine/engine.h"
#include "gate/call.h"

#define CLUSTER_KIND "cluster"
#define FLEX_KIND "flex_cluster"          /* kept the same way, in a list of its own */
#define CLUSTER_LABEL_REF "cluster_label" /* from the label in host names to the cluster's id */
#define CLUSTER_JOB "cluster"             /* makes a cluster what its document says, or takes it away */

/* One cluster in hand; body and plan are freed with the arena. */
struct cluster {
	struct doc doc;
	json_t *body, *plan;
};

/* The path's {clusterName}, or another one of the call's project. -ENOENT. */
must_check int cluster_load(struct call *c, struct cluster *ret_cluster);
must_check int cluster_load_named(struct call *c, struct str name, struct cluster *ret_cluster);
must_check int cluster_get(struct tx *tx, struct arena *a, struct str id, struct cluster *ret_cluster);

/* A new one of a kind, from a body that was checked and identified: label, plan, insert, job. -EEXIST: the project has a
 * cluster of that name, of whatever kind. */
must_check int cluster_insert(struct tx *tx, struct arena *a, const char *kind, struct str group_id, json_t *body,
                              bool independent, struct cluster *ret_cluster);
/* -EEXIST: the name is taken, by a cluster of whatever kind. */
must_check int cluster_name_check(struct tx *tx, struct arena *a, struct str group_id, struct str name);
/* To the end of the other kind's list, under the same id; not yet saved otherwise. */
must_check int cluster_move(struct tx *tx, struct arena *a, struct cluster *cluster, const char *kind);
/* Writes body and plan back. */
must_check int cluster_save(struct tx *tx, struct arena *a, struct cluster *cluster);
/* The same for a change that the engine must make: nodes anew, state, generation, job. */
must_check int cluster_change(struct tx *tx, struct arena *a, struct cluster *cluster, const char *state);
/* What hangs on it, its label and itself: gone. */
must_check int cluster_remove(struct tx *tx, struct arena *a, struct cluster *cluster);

/* The project's clusterCount, from what is there. */
must_check int cluster_count_update(struct tx *tx, struct arena *a, struct str group_id);

bool cluster_is(const struct cluster *cluster, const char *state);
/* Asks for the cluster's job once more: what its surroundings say of it may have changed. */
must_check int cluster_look_again(struct tx *tx, struct str cluster_id);

/* Every cluster of a project, of all kinds, dedicated ones first. */
must_check int clusters_walk_group(struct tx *tx, struct arena *a, struct str group_id,
                                   int (*visit)(struct tx *tx, void *ctx, const struct doc *cluster), void *ctx);

/* Every cluster of the service, kind by kind and in each project by project. The document is the visitor's for the call
 * only. */
must_check int clusters_walk(struct tx *tx, int (*visit)(struct tx *tx, void *ctx, const struct doc *cluster),
                             void *ctx);

#endif

/* Data of a cluster that should be there and is not: what the store knows of it, and giving it up. */
#ifndef STEWARD_API_CLUSTERS_MISSING_H
#define STEWARD_API_CLUSTERS_MISSING_H

#include "api/clusters/cluster.h"

/* The plan has, beside what is told above:
 *
 *   "made": {"0": "7433…"}   what each set's data is, once it was made; absent in plans of older versions
 *   "missing": true          it is not there; the event was written
 *   "giveUp": true           the operator wants what is missing to be made anew, empty */

/* Into what is wanted of the engine. */
void made_load(struct arena *a, const struct cluster *cluster, bool applied, struct engine_cluster *want);
/* From what was reached; whether the plan has changed. */
bool made_note(struct cluster *cluster, const struct cluster_status *status);

/* The cluster's data is missing: an event, the first time. Or it is no more: the marks go, with events. Neither
 * saves. */
must_check int missing_begin(struct tx *tx, struct arena *a, struct cluster *cluster, const char *why);
must_check int missing_end(struct tx *tx, struct arena *a, struct cluster *cluster);

/* An event of the service about the cluster, with a detail of that name unless `text` is empty. */
must_check int cluster_event(struct tx *tx, struct arena *a, const char *type, const char *severity,
                             const struct cluster *cluster, const char *name, struct str text);

/* For the operator's command: by id, or by a name that is one cluster's alone. */
struct given_up {
	struct str id, name, group_id, why;
};
/* -ENOENT: there is none. -EEXIST: several have the name. -EINVAL: its data is not missing. With `really`, in a write,
 * it is given up; without, only looked at. */
must_check int cluster_give_up(struct tx *tx, struct arena *a, struct str cluster, bool really,
                               struct given_up *ret_given);

#endif

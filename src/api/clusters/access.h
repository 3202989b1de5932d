/* How users, roles and access lists reach the databases. A change asks, in its own transaction, for a job on each
 * cluster that it concerns; the call's answer waits for the jobs (jobs/waits.h). Should it have waited too long, a
 * change that takes rights away is answered with 503, because they may still be had. The jobs are rows: what the answer
 * did not wait for is done nevertheless. */
#ifndef STEWARD_API_CLUSTERS_ACCESS_H
#define STEWARD_API_CLUSTERS_ACCESS_H

#include "api/clusters/access_mark.h"
#include "api/clusters/cluster.h"

#define ACCESS_ATTEMPTS 100000u /* a database that is out of reach today may be back tomorrow */

/* In a call's write: who may do what in the project's databases has changed. `users`: the documents of database users,
 * as they were and are, whose clusters alone are concerned; none: all clusters. */
must_check int access_changed(struct call *c, const json_t *const *users, size_t count);
/* The same about one cluster. */
must_check int access_changed_cluster(struct call *c, const struct cluster *cluster);
/* The same outside a call: nobody waits. */
must_check int access_ask(struct tx *tx, struct arena *a, struct str group_id);
enum access_state { ACCESS_ACTIVE, ACCESS_PENDING, ACCESS_FAILED };
/* Whether the project's running clusters have what was last asked for. */
must_check int access_state(struct tx *tx, struct arena *a, struct str group_id, enum access_state *ret_state);

/* Of the kind ACCESS_JOB, with the cluster as the subject. */
int access_step(struct job_run *r);

/* Whether a user's scopes take in a cluster of that name; or, where this is before it, a federated database
 * instance. */
#define SCOPE_FEDERATION "DATA_LAKE/"
bool database_user_in_scope(const json_t *user, struct str cluster_name);

#endif

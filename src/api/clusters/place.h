/* Which host a cluster is on. */
#ifndef STEWARD_API_CLUSTERS_PLACE_H
#define STEWARD_API_CLUSTERS_PLACE_H

#include "api/clusters/cluster.h"

/* The host of a cluster; empty where clusters belong to no host. */
struct str cluster_host(const struct cluster *cluster);
/* In the write that makes a cluster, changes its nodes, or takes it away: which host it is on, and what it stands for
 * there. -EDQUOT: no host takes it, and *ret_why says why. */
must_check int cluster_place(struct tx *tx, struct arena *a, struct cluster *cluster, struct str *ret_why);
/* The same for a cluster that a call has given another body: 409, with the problem written, when it cannot grow so. */
must_check int cluster_place_check(struct call *c, const struct cluster *cluster);
must_check int cluster_place_change(struct tx *tx, struct arena *a, struct cluster *cluster);
must_check int cluster_place_end(struct tx *tx, struct arena *a, const struct cluster *cluster);
/* At the start: what this host's clusters stand for, counted anew. */
must_check int clusters_place_count(struct store *store);
/* For jobs_options: whether the job is on a cluster that another host has. */
bool cluster_job_host(struct job_run *r, struct str *ret_host);
/* In a store that was copied, before it is used: binds the clusters, and the jobs on them, to the host that they come
 * from (its id; empty: the one that each of them names). `shared`: several processes will use it; else all must be on
 * one host, because the others' databases could not be reached. Where engines have no hosts it does nothing. On
 * failure: a message on stderr, negative. */
must_check int clusters_settle(struct store *store, struct str host, bool shared);

#endif

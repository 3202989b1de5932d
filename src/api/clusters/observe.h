/* Clusters as their hosts see them: from this host's engine, or asked from the host that has them. */
#ifndef STEWARD_API_CLUSTERS_OBSERVE_H
#define STEWARD_API_CLUSTERS_OBSERVE_H

#include "api/clusters/cluster.h"

/* -status, with the problem written, when its host does not answer. */
must_check int cluster_observe(struct call *c, const struct cluster *cluster, struct cluster_status *ret_status);
struct cluster_sight {
	struct doc doc;  /* without its texts */
	struct str host; /* another one, which was asked; else empty */
	struct cluster_status status;
};
/* All clusters of the call's project, dedicated ones first; what hosts tell is in the arena. ret_away: the names of
 * hosts that did not answer, whose clusters have no nodes then; NULL: that is a 503. */
must_check int clusters_observe(struct call *c, struct arena *a, struct cluster_sight **ret_list, size_t *ret_count,
                                struct str *ret_away);
/* Those of the list, by the ids and hosts that it has. Only on a worker, where clusters are on several hosts. */
must_check int clusters_look(struct call *c, struct arena *a, struct cluster_sight *list, size_t count);
/* Another host's question: the path, and who answers it. */
#define CLUSTERS_OBSERVED "/hosts/clusters"
void clusters_observed(struct service *s, struct request *r);
/* When the cluster is on another host: passes the call on to it, and *ret_forwarded is true. */
must_check int cluster_forward(struct call *c, const struct cluster *cluster, bool *ret_forwarded);

#endif

/* What the engine shall have of a cluster, asked of its parts. */
#ifndef STEWARD_API_CLUSTERS_WANTED_H
#define STEWARD_API_CLUSTERS_WANTED_H

#include "api/clusters/cluster.h"

/* Who may connect to a cluster: the access list and the users in force whose scope takes in its name. */
must_check int cluster_access_load(struct tx *tx, struct arena *a, struct str group_id, struct str cluster_name,
                                   struct engine_access *ret_access);
/* In a read: the cluster as the engine shall have it, and who may connect to it. */
must_check int cluster_want_load(const struct service *s, struct tx *tx, struct arena *a, const struct cluster *cluster,
                                 struct cluster_want *ret_want, struct engine_access *ret_access);
/* Has the parts do what they do when access was applied. The first failure of one. */
int cluster_applied(const struct service *s, struct tx *reader, struct arena *a, struct str cluster_id);

#endif

/* Databases of this host that the store does not know. */
#ifndef STEWARD_API_CLUSTERS_ORPHANS_H
#define STEWARD_API_CLUSTERS_ORPHANS_H

#include "api/clusters/cluster.h"

#define ORPHAN_KIND "orphan"
/* Looks, and notes what it finds in the store and in the log. */
must_check int orphans_look(struct service *s);
void orphans_metrics(struct buf *b);
/* The operator's word: the service ends it. -ENOENT: it was not found as one; -EEXIST: the store knows it. */
must_check int orphan_end(struct tx *tx, struct arena *a, struct str id);

#define ORPHANS_JOB "cluster_orphans"
#define ORPHANS_MS 60000
int orphans_step(struct job_run *r);

#endif

/* What jobs on a cluster tell each other of its access. */
#ifndef STEWARD_API_CLUSTERS_ACCESS_MARK_H
#define STEWARD_API_CLUSTERS_ACCESS_MARK_H

#include "store/store.h"

#define ACCESS_JOB JOB_PASSES

/* In a write that asks for the cluster's own job: one of ours that waits for another attempt does not keep it
 * waiting. */
must_check int access_retry_now(struct tx *tx, struct arena *a, struct str cluster_id);

/* The mark that no node of a cluster takes clients, so that changes need not wait for it. Whoever lets clients in takes
 * it away first, and reads what is to be applied then. */
must_check int access_is_shut(struct tx *tx, struct arena *a, struct str cluster_id, bool *ret_shut);
must_check int access_shut_set(struct tx *tx, struct str cluster_id, bool shut);

#endif

/* The mark lies beside the cluster, so that the job that takes it away and a call that looks at it meet in one row. */
#include "api/clusters/access_mark.h"

#include "base/clock.h"

#include <errno.h>

#define SHUT_REF "cluster_shut"

int access_is_shut(struct tx *tx, struct arena *a, struct str cluster_id, bool *ret_shut)
{
	struct str id;
	int result = tx_ref_get(tx, a, SHUT_REF, cluster_id, &id);
	*ret_shut = result == 0;
	return result == -ENOENT ? 0 : result;
}

int access_shut_set(struct tx *tx, struct str cluster_id, bool shut)
{
	int result = shut ? tx_ref_put(tx, SHUT_REF, cluster_id, cluster_id) : tx_ref_delete(tx, SHUT_REF, cluster_id);
	return result == -EEXIST || result == -ENOENT ? 0 : result;
}

int access_retry_now(struct tx *tx, struct arena *a, struct str cluster_id)
{
	struct job job;
	int result = tx_job_find(tx, a, ACCESS_JOB, cluster_id, &job);
	if (result < 0 || job.failed || job.running)
		return result == -ENOENT ? 0 : result;
	job.due_ms = clock_now_ms();
	return tx_job_ensure(tx, &job);
}

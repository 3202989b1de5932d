/* What becomes of a cluster whose job has used up its attempts: it is tried again after a while, and after a longer one
 * each time, until the cause is gone (a disk that was full, a program that was missing) or something else is wanted.
 * The wait is a job of another subject, so that it holds up nothing that is asked of the cluster meanwhile. */
#include "api/clusters/repair.h"

#include "api/clusters/cluster.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "base/clock.h"

#include <errno.h>

#define FIRST_MS 30000
#define LAST_MS 900000
#define MISSING_MS 10000 /* data that is missing is looked for, which costs little */

static struct str repair_subject(struct arena *a, struct str cluster_id)
{
	return arena_printf(a, "%.*s/repair", STR_ARG(cluster_id));
}

int repair_later(struct tx *tx, struct arena *a, struct cluster *cluster, const char *why, bool missing)
{
	json_int_t tries = json_number(cluster->plan, "repairs");
	int64_t wait = missing ? MISSING_MS : tries > 5 ? LAST_MS : FIRST_MS << tries;
	json_put(cluster->plan, "repairs", json_integer(missing ? 1 : tries + 1));
	json_put_z(cluster->plan, "why", why ? why : "it failed");
	struct job job = {.kind = STR(REPAIR_JOB),
	                  .subject = repair_subject(a, cluster->doc.id),
	                  .due_ms = clock_now_ms() + (wait < LAST_MS ? wait : LAST_MS),
	                  .args = arena_printf(a, "{\"id\":\"%.*s\"}", STR_ARG(cluster->doc.id))};
	return tx_job_ensure(tx, &job);
}

int repair_forget(struct tx *tx, struct arena *a, struct cluster *cluster)
{
	if (json_object_del(cluster->plan, "repairs") < 0)
		return 0;
	json_object_del(cluster->plan, "why");
	int result = tx_jobs_cancel(tx, REPAIR_JOB, repair_subject(a, cluster->doc.id));
	return result < 0 ? result : tx_jobs_forget(tx, cluster->doc.id, 0);
}

/* In the transaction that ends this job. */
int repair_save(struct tx *tx, struct job_run *r)
{
	struct cluster cluster;
	json_t *args = doc_json(r->arena, r->job.args);
	int result = cluster_get(tx, r->arena, json_field(args, "id"), &cluster);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	if (!cluster_is(&cluster, "REPAIRING") && !cluster_is(&cluster, "DELETING"))
		return 0;
	/* What failed before is told until now; without this, years of trying would be kept. */
	result = tx_jobs_forget(tx, cluster.doc.id, 0);
	return result < 0 ? result : cluster_reconcile(tx, cluster.doc.id);
}

/* Clusters that end by themselves: the oldest form says how many hours after its creation. The plan keeps the hours. */
#include "api/clusters/lifetime.h"

#include "api/clusters/cluster.h"
#include "api/clusters/missing.h"
#include "api/clusters/store.h"
#include "api/kit/temporary.h"
#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>

#define HOURS_FIELD "deleteAfterCreationHours"
#define HOURS_MAX 87600 /* ten years */
#define HOUR_MS INT64_C(3600000)

#define SUBJECT "end/"

/* Not the cluster's own: its jobs run in their order, and would wait for this one. */
static struct str subject_of(struct arena *a, const struct cluster *cluster)
{
	return arena_printf(a, SUBJECT "%.*s", STR_ARG(cluster->doc.id));
}

/* 0: for good. */
static int64_t end_of(const struct cluster *cluster)
{
	int64_t hours = json_number(cluster->plan, HOURS_FIELD);
	return hours ? cluster->doc.created_ms + hours * HOUR_MS : 0;
}

void lifetime_check(struct call *c, struct faults *faults)
{
	const json_t *hours = json_object_get(c->body, HOURS_FIELD);
	if (json_is_integer(hours) && (json_integer_value(hours) < 1 || json_integer_value(hours) > HOURS_MAX))
		faults_add(faults, c->arena, STR(HOURS_FIELD), "must be from 1 to %d", HOURS_MAX);
}

/* It ends the cluster, and whoever may change one may not end it. */
static int change_check(struct call *c, const struct cluster *cluster)
{
	struct faults faults = {.count = 0};
	const struct op *ends = catalog_op("deleteCluster");
	if (!ends || !(c->roles & ends->roles))
		return call_fail_about(c, 403, "INSUFFICIENT_ROLE", STR(HOURS_FIELD),
		                       HOURS_FIELD ": this needs a role that permits the deletion of the cluster.");
	if (end_of(cluster) <= clock_now_ms())
		faults_add(&faults, c->arena, STR(HOURS_FIELD),
		           "must end after now. To end the cluster now, delete it");
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

int lifetime_set(struct call *c, struct cluster *cluster, bool is_new)
{
	json_t *hours = json_object_get(c->body, HOURS_FIELD);
	if (!hours || json_equal(hours, json_object_get(cluster->plan, HOURS_FIELD)))
		return 0;
	json_object_set(cluster->plan, HOURS_FIELD, hours);
	int result = is_new ? 0 : change_check(c, cluster);
	/* An update that changes nothing else has no event. */
	if (c->event.type_chosen && !c->event.type)
		event_set_type(c, c->op->event);
	if (result == 0)
		result = cluster_save(c->tx, c->arena, cluster);
	return result < 0 ? result
	                  : temporary_schedule(c->tx, LIFETIME_JOB, subject_of(c->arena, cluster), end_of(cluster));
}

void lifetime_show(struct arena *a, const struct doc *d, json_t *view)
{
	struct cluster cluster = cluster_of(a, d);
	int64_t end = end_of(&cluster);
	if (!end)
		return;
	json_object_set(view, HOURS_FIELD, json_object_get(cluster.plan, HOURS_FIELD));
	json_put_time(view, "deleteAfterDate", end);
}

/* One that is protected stays, and nobody asks again. */
int lifetime_save(struct tx *tx, struct job_run *r)
{
	struct cluster cluster;
	struct str id = r->job.subject;
	if (str_starts(id, STR(SUBJECT)))
		id = (struct str){id.p + strlen(SUBJECT), id.n - strlen(SUBJECT)};
	int result = cluster_get(tx, r->arena, id, &cluster);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	if (!end_of(&cluster) || end_of(&cluster) > clock_now_ms() || cluster_is(&cluster, "DELETING") ||
	    json_flag(cluster.body, "terminationProtectionEnabled"))
		return 0;
	json_put(cluster.plan, "retainBackups", json_boolean(json_flag(cluster.body, "retainBackups")));
	result = cluster_change(tx, r->arena, &cluster, "DELETING");
	return result < 0 ? result
	                  : cluster_event(tx, r->arena, "CLUSTER_DELETE_SUBMITTED", NULL, &cluster, NULL, STR_NONE);
}

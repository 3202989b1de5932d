/* The older form of restore jobs. What is downloaded of a cluster with several sets is a job for each, of one batch. */
#include "api/restores/restores.h"
#include "api/kit/verbs.h"
#include "api/legacy_backups/legacy_backups.h"
#include "api/snapshots/snapshots.h"
#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>

#define HOURS_MAX 168

/* --- looking */

static const char *job_status(const struct restore *job)
{
	return json_flag(job->body, "failed")          ? "BROKEN"
	       : json_flag(job->body, "cancelled")     ? "KILLED"
	       : json_field(job->body, "finishedAt").n ? "FINISHED"
	                                               : "IN_PROGRESS";
}

static const char *download_status(const struct restore *job)
{
	json_int_t most = json_number(job->plan, "downloads");
	if (json_flag(job->body, "cancelled"))
		return "INTERRUPTED";
	if (most && json_number(job->plan, "taken") >= most)
		return "MAX_DOWNLOADS_EXCEEDED";
	return json_flag(job->body, "expired") || json_number(job->plan, "until") <= clock_now_ms() ? "EXPIRED"
	                                                                                            : "READY";
}

static const char *automated_status(struct call *c, const struct restore *job)
{
	struct job row;
	if (json_flag(job->body, "failed"))
		return "FAILED";
	if (json_flag(job->body, "cancelled"))
		return "INTERRUPTED";
	if (json_field(job->body, "finishedAt").n)
		return "READY";
	bool runs = tx_job_find(c->tx, c->arena, RESTORE_JOB, json_field(job->plan, "target"), &row) == 0;
	return runs && row.progress.n ? "IN_PROGRESS" : "NOT_STARTED";
}

static int download_put(struct call *c, const struct restore *job, json_t *entity)
{
	const char *status = download_status(job);
	json_int_t most = json_number(job->plan, "downloads");
	json_t *to = json_object();
	json_put(entity, "delivery", to);
	json_put_z(to, "methodName", "HTTP");
	json_put_z(to, "statusName", status);
	json_put_str(to, "expires", json_field(job->body, "expiresAt"));
	json_put(to, "expirationHours",
	         json_integer((json_number(job->plan, "until") - job->doc.created_ms + 3599999) / 3600000));
	if (most)
		json_put(to, "maxDownloads", json_integer(most));
	if (strcmp(status, "READY") == 0 && download_is_shown(c, job)) {
		struct str url = STR_NONE;
		int r = download_link(c, job, 0, &url);
		if (r < 0)
			return r;
		json_put_str(to, "url", url);
		json_put_str(to, "urlV2", url);
	}
	return 0;
}

static int automated_put(struct call *c, const struct restore *job, json_t *entity)
{
	json_t *to = json_object();
	json_put(entity, "delivery", to);
	json_put_z(to, "methodName", "AUTOMATED_RESTORE");
	json_put_z(to, "statusName", automated_status(c, job));
	json_put_str(to, "targetClusterId", json_field(job->plan, "target"));
	json_put_str(to, "targetClusterName", json_field(job->body, "targetClusterName"));
	json_put_str(to, "targetGroupId", json_field(job->body, "targetGroupId"));
	return 0;
}

static int view(struct call *c, const struct doc *d, json_t *entity)
{
	struct restore job = restore_of(c->arena, d);
	const json_t *desired = json_object_get(job.body, "desiredTimestamp");
	struct str snapshot = json_field(job.body, "snapshotId"), batch = json_field(job.plan, "batch");
	int64_t at = json_number(json_object_get(job.plan, "point"), "time");
	json_object_clear(entity);
	json_put_str(entity, "id", d->id);
	if (batch.n)
		json_put_str(entity, "batchId", batch);
	json_put_str(entity, "clusterId", d->parent);
	json_put_str(entity, "clusterName", json_field(job.plan, "clusterName"));
	json_put_time(entity, "created", d->created_ms);
	int r = restore_is_download(&job) ? download_put(c, &job, entity) : automated_put(c, &job, entity);
	if (r < 0)
		return r;
	json_put(entity, "encryptionEnabled", json_true());
	json_put_str(entity, "groupId", json_field(job.plan, "groupId"));
	json_put(entity, "hashes", json_array());
	if (snapshot.n)
		json_put_str(entity, "snapshotId", snapshot);
	json_put_z(entity, "statusName", job_status(&job));
	json_put(entity, "timestamp", desired ? json_deep_copy(desired) : timestamp_make(at, 0));
	return 0;
}

static bool takes(struct call *c, const struct doc *d)
{
	struct str wanted = call_query(c, "batchId");
	struct restore job = restore_of(c->arena, d);
	return !wanted.n || str_eq(json_field(job.plan, "batch"), wanted);
}

const struct resource_hooks legacy_restore_hooks = {
        .load = restore_find, .segments = restore_segments, .takes = takes, .view = view};

/* --- asking for one */

static const json_t *delivery_of(const struct call *c)
{
	return json_object_get(c->body, "delivery");
}

static bool is_http(const struct call *c)
{
	return str_is(json_field(delivery_of(c), "methodName"), "HTTP");
}

static void field_refuse(struct call *c, const char *field, bool given, const char *with, struct faults *faults)
{
	if (given)
		faults_add(faults, c->arena, str_of(field), "does not go with %s", with);
}

/* Exactly one of the ways to say what is brought back. */
static void point_check(struct call *c, struct faults *faults)
{
	static const char *const ways[] = {"snapshotId", "checkpointId", "pointInTimeUTCMillis", "oplogTs"};
	const char *first = NULL;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		if (!json_object_get(c->body, ways[i]))
			continue;
		if (first)
			field_refuse(c, ways[i], true, first, faults);
		else
			first = ways[i];
	}
	if (!first)
		faults_add(faults, c->arena, STR("snapshotId"),
		           "is required, or checkpointId, pointInTimeUTCMillis, or oplogTs and oplogInc");
	if (!json_object_get(c->body, "oplogTs") != !json_object_get(c->body, "oplogInc"))
		faults_add(faults, c->arena, json_object_get(c->body, "oplogTs") ? STR("oplogInc") : STR("oplogTs"),
		           "is required: a position is oplogTs and oplogInc");
	if (first && is_http(c) && strcmp(first, "snapshotId") != 0)
		faults_add(faults, c->arena, str_of(first), "does not go with HTTP, which delivers a snapshot");
}

static void delivery_check(struct call *c, struct faults *faults)
{
	static const char *const targets[] = {"targetClusterId", "targetClusterName", "targetGroupId"},
	                         *const bounds[] = {"expirationHours", "maxDownloads"};
	const json_t *to = delivery_of(c);
	struct str method = json_field(to, "methodName");
	bool http = is_http(c);
	if (!http && !str_is(method, "AUTOMATED_RESTORE")) {
		faults_add(faults, c->arena, STR("delivery.methodName"),
		           "must be AUTOMATED_RESTORE or HTTP; the others are not offered");
		return;
	}
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
		field_refuse(c, arena_printf(c->arena, "delivery.%s", targets[i]).p,
		             http && json_object_get(to, targets[i]), "HTTP", faults);
	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
		field_refuse(c, arena_printf(c->arena, "delivery.%s", bounds[i]).p,
		             !http && json_object_get(to, bounds[i]), "AUTOMATED_RESTORE", faults);
	if (json_number(to, "expirationHours") > HOURS_MAX)
		faults_add(faults, c->arena, STR("delivery.expirationHours"), "must be at most %d", HOURS_MAX);
	if (!http && !json_object_get(to, "targetClusterName") && !json_object_get(to, "targetClusterId"))
		faults_add(faults, c->arena, STR("delivery.targetClusterName"), "is required for AUTOMATED_RESTORE");
}

static int checkpoint_wanted(struct call *c, struct tx *reader, struct wanted_point *wanted)
{
	struct str id = json_field(c->body, "checkpointId");
	struct backup_line line;
	tx_begin_read(reader);
	int r = backup_line_load(c, &line);
	bool known = r == 0;
	if (known)
		r = checkpoint_time(c, id, &wanted->ms);
	tx_end_read(reader);
	tx_rest(reader);
	return r == -ENOENT && known
	               ? call_fail_about(c, 404, "CHECKPOINT_NOT_FOUND", id,
	                                 "checkpointId: the cluster has no checkpoint with the id %.*s.", STR_ARG(id))
	               : r;
}

static int point_wanted(struct call *c, struct tx *reader)
{
	struct str position = json_field(c->body, "oplogTs");
	struct wanted_point wanted = {.ms = json_number(c->body, "pointInTimeUTCMillis"),
	                              .increment = json_number(c->body, "oplogInc"),
	                              .field = position.n ? "oplogTs" : "pointInTimeUTCMillis"};
	if (json_object_get(c->body, "checkpointId")) {
		wanted.field = "checkpointId";
		int r = checkpoint_wanted(c, reader, &wanted);
		if (r < 0)
			return r;
	}
	if (position.n && !clock_parse(position, &wanted.ms))
		return call_fail_fault(c, STR("oplogTs"), "must be a time");
	if (position.n)
		wanted.ms -= wanted.ms % 1000;
	return point_find(c, reader, &wanted);
}

int legacy_restores_prepare(struct call *c)
{
	struct faults faults = {.count = 0};
	delivery_check(c, &faults);
	point_check(c, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	if (!c->service->engine_ops->backup)
		return cluster_not_offered(c);
	return json_object_get(c->body, "snapshotId") ? 0 : prepare_with_reader(c, point_wanted);
}

/* By its name, by its id, or by both. */
static int target_load(struct call *c, struct cluster *ret_cluster)
{
	const json_t *to = delivery_of(c);
	struct str group = json_field(to, "targetGroupId"), name = json_field(to, "targetClusterName"),
	           id = json_field(to, "targetClusterId");
	struct cluster known;
	group = group.n ? group : c->group.id;
	int r = id.n ? cluster_get(c->tx, c->arena, id, &known) : 0;
	if (r < 0 && r != -ENOENT)
		return r;
	if (!name.n)
		name = r == 0 && str_eq(known.doc.parent, group) ? known.doc.name : id;
	r = restore_target(c, group, name, ret_cluster);
	if (r == 0 && id.n && !str_eq(ret_cluster->doc.id, id))
		return call_fail_about(c, 404, "CLUSTER_NOT_FOUND", id,
		                       "delivery.targetClusterId: the project has no cluster \"%.*s\" with this id.",
		                       STR_ARG(name));
	return r;
}

/* One job; `set` of several, or all of them where it is NULL. */
static int job_begin(struct call *c, const struct backup_line *line, const struct restore_wish *wish,
                     const json_t *form, const json_t *set, struct str *batch, struct doc *ret_doc)
{
	struct restore job;
	int r = restore_begin(c, line, wish, json_clone(c->arena, form), &job);
	if (r < 0)
		return r;
	if (!batch->n)
		*batch = job.doc.id;
	if (json_flag(line->body, "sharded"))
		json_put_str(job.plan, "batch", *batch);
	if (set)
		json_put(job.plan, "sets", json_pack("[O]", json_object_get(set, "set")));
	r = restore_save(c->tx, c->arena, &job);
	*ret_doc = job.doc;
	return r;
}

int legacy_restores_create(struct call *c)
{
	const json_t *to = delivery_of(c);
	struct restore_wish wish = {.delivery = is_http(c)    ? "download"
	                                        : c->prepared ? "pointInTime"
	                                                      : "automated",
	                            .hours = (unsigned)json_number(to, "expirationHours"),
	                            .downloads = (unsigned)json_number(to, "maxDownloads")};
	json_t *form = json_new(c->arena);
	struct backup_line line;
	struct snapshot s;
	struct cluster target;
	struct str batch = STR_NONE;
	int r = backup_line_load(c, &line);
	if (r == 0)
		r = c->prepared ? restore_from_point(c, &wish, &s, form) : restore_from_snapshot(c, &wish, &s, form);
	if (r == 0 && !is_http(c)) {
		r = target_load(c, &target);
		wish.target = &target;
	}
	if (r < 0)
		return r;
	const json_t *sets = json_object_get(s.plan, "sets");
	size_t count = is_http(c) && json_array_size(sets) > 1 ? json_array_size(sets) : 1;
	struct doc *docs = arena_new_array(c->arena, struct doc, count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = job_begin(c, &line, &wish, form, count > 1 ? json_array_get(sets, i) : NULL, &batch, &docs[i]);
	if (r < 0)
		return r;
	event_cluster(c, json_field(line.body, "clusterName"));
	event_field(c, "restoreJobId", docs[0].id);
	list_begin(c);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = resource_write(c, &resource_legacy_restore, &docs[i]);
	list_end(c, (int64_t)count, false);
	return r;
}

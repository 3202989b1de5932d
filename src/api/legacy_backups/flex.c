/* Backups of flex clusters: the snapshots and restore jobs of all others, in the words of these operations. A flex
 * cluster has one snapshot a day, which is kept for eight; nobody takes or deletes one. */
#include "api/kit/verbs.h"
#include "api/restores/restores.h"
#include "api/snapshots/snapshots.h"
#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>

static void time_put(json_t *to, const char *name, int64_t ms)
{
	if (ms)
		json_put_time(to, name, ms);
}

static void text_copy(json_t *to, const char *name, const json_t *from, const char *field)
{
	if (json_field(from, field).n)
		json_put_str(to, name, json_field(from, field));
}

/* --- snapshots */

static const char *snapshot_status(struct str status)
{
	return str_is(status, "queued")       ? "QUEUED"
	       : str_is(status, "inProgress") ? "RUNNING"
	       : str_is(status, "completed")  ? "COMPLETED"
	                                      : "FAILED";
}

static int snapshot_view(struct call *c, const struct doc *d, json_t *entity)
{
	const json_t *body = doc_json(c->arena, d->body), *plan = doc_json(c->arena, d->secret);
	json_object_clear(entity);
	json_put_str(entity, "id", d->id);
	json_put_z(entity, "status", snapshot_status(json_field(body, "status")));
	text_copy(entity, "expiration", body, "expiresAt");
	text_copy(entity, "dbVersion", body, "dbVersion");
	text_copy(entity, "scheduledTime", body, "createdAt");
	time_put(entity, "startTime", json_number(plan, "began"));
	time_put(entity, "finishTime", json_number(plan, "ended"));
	return 0;
}

const struct resource_hooks flex_snapshot_hooks = {
        .load = snapshot_find, .segments = snapshot_segments, .view = snapshot_view};

/* --- restore jobs */

static const char *restore_status(struct call *c, const struct restore *job)
{
	struct job row;
	if (json_flag(job->body, "failed") || json_flag(job->body, "cancelled"))
		return "FAILED";
	if (json_field(job->body, "finishedAt").n)
		return "COMPLETED";
	bool runs = tx_job_find(c->tx, c->arena, RESTORE_JOB, json_field(job->plan, "target"), &row) == 0;
	return runs && row.progress.n ? "RUNNING" : "PENDING";
}

static int restore_view(struct call *c, const struct doc *d, json_t *entity)
{
	struct restore job = restore_of(c->arena, d);
	struct snapshot s;
	bool download = restore_is_download(&job);
	int r = snapshot_get(c->tx, c->arena, json_field(json_object_get(job.plan, "from"), "snapshot"), &s);
	if (r < 0 && r != -ENOENT)
		return r;
	json_object_clear(entity);
	json_put_str(entity, "id", d->id);
	json_put_z(entity, "deliveryType", download ? "DOWNLOAD" : "RESTORE");
	json_put_z(entity, "status", restore_status(c, &job));
	json_put_str(entity, "projectId", json_field(job.plan, "groupId"));
	json_put_str(entity, "instanceName", json_field(job.plan, "clusterName"));
	time_put(entity, "restoreScheduledDate", d->created_ms);
	text_copy(entity, "restoreFinishedDate", job.body, "finishedAt");
	text_copy(entity, "expirationDate", job.body, "expiresAt");
	text_copy(entity, "snapshotId", job.body, "snapshotId");
	text_copy(entity, "targetDeploymentItemName", job.body, "targetClusterName");
	text_copy(entity, "targetProjectId", job.body, "targetGroupId");
	if (r == 0)
		time_put(entity, "snapshotFinishedDate", json_number(s.plan, "ended"));
	if (download && !restore_is_over(&job) && json_number(job.plan, "until") > clock_now_ms() &&
	    download_is_shown(c, &job)) {
		struct str url = STR_NONE;
		r = download_link(c, &job, 0, &url);
		if (r < 0)
			return r;
		json_put_str(entity, "snapshotUrl", url);
	}
	return 0;
}

const struct resource_hooks flex_restore_hooks = {
        .load = restore_find, .segments = restore_segments, .view = restore_view};

static int begin(struct call *c, const struct backup_line *line, struct restore_wish *wish, json_t *body)
{
	struct restore job;
	int r = restore_begin(c, line, wish, body, &job);
	if (r < 0)
		return r;
	event_cluster(c, json_field(line->body, "clusterName"));
	event_field(c, "restoreJobId", job.doc.id);
	return resource_write(c, &resource_flex_restore, &job.doc);
}

/* The path's cluster, and the snapshot that the body names. */
static int source_load(struct call *c, struct backup_line *line, struct restore_wish *wish, struct snapshot *s,
                       json_t *body)
{
	if (!c->service->engine_ops->backup)
		return cluster_not_offered(c);
	int r = backup_line_load(c, line);
	return r < 0 ? r : restore_from_snapshot(c, wish, s, body);
}

int flex_restores_create(struct call *c)
{
	struct str group = json_field(c->body, "targetProjectId");
	struct restore_wish wish = {.delivery = "automated"};
	json_t *body = json_new(c->arena);
	struct backup_line line;
	struct snapshot s;
	struct cluster target;
	int r = source_load(c, &line, &wish, &s, body);
	if (r == 0)
		r = restore_target(c, group.n ? group : c->group.id, json_field(c->body, "targetDeploymentItemName"),
		                   &target);
	wish.target = &target;
	return r < 0 ? r : begin(c, &line, &wish, body);
}

int flex_download(struct call *c)
{
	struct restore_wish wish = {.delivery = "download"};
	json_t *body = json_new(c->arena);
	struct backup_line line;
	struct snapshot s;
	int r = source_load(c, &line, &wish, &s, body);
	return r < 0 ? r : begin(c, &line, &wish, body);
}

/* Exports of snapshots: what is asked for, by callers and by schedules, and the documents about it. */
#include "api/exports/exports.h"

#include "api/exports/buckets.h"
#include "api/exports/job.h"
#include "api/exports/put.h"
#include "api/kit/verbs.h"
#include "api/snapshots/snapshots.h"
#include "base/clock.h"
#include "base/id.h"
#include "trail/events.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define EXPORTS_MAX 200 /* of a cluster: the oldest that are over go */
#define WAITING_MAX 10
#define LABELS_MAX 100

static struct export export_of(struct arena *a, const struct doc *d)
{
	return (struct export){.doc = *d, .body = doc_json(a, d->body), .plan = doc_json(a, d->secret)};
}

int export_get(struct tx *tx, struct arena *a, struct str id, struct export *ret_export)
{
	struct doc d;
	int r = tx_get(tx, a, SNAPSHOT_EXPORT_KIND, id, &d);
	if (r == 0)
		*ret_export = export_of(a, &d);
	return r;
}

int export_save(struct tx *tx, struct arena *a, struct export *e)
{
	e->doc.body = json_text(a, e->body);
	e->doc.secret = json_text(a, e->plan);
	return doc_put(tx, &e->doc);
}

bool export_is(const struct export *e, const char *state)
{
	return str_is(json_field(e->body, "state"), state);
}

bool export_is_over(const struct export *e)
{
	return !export_is(e, "Queued") && !export_is(e, "InProgress");
}

struct str export_subject(struct arena *a, struct str cluster_id)
{
	return arena_printf(a, "backup-export/%.*s", STR_ARG(cluster_id));
}

static int exports_of(struct tx *tx, struct arena *a, struct str cluster_id, struct export **ret_list,
                      size_t *ret_count)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, SNAPSHOT_EXPORT_KIND, cluster_id, &docs, &count);
	struct export *list = arena_new_array(a, struct export, count + 1);
	for (size_t i = 0; r == 0 && i < count; i++)
		list[i] = export_of(a, &docs[i]);
	*ret_list = list;
	*ret_count = count;
	return r;
}

int exports_use(struct tx *tx, struct arena *a, struct str cluster_id, struct str snapshot, struct str bucket,
                bool *ret_used)
{
	struct export *list;
	size_t count = 0;
	int r = exports_of(tx, a, cluster_id, &list, &count);
	*ret_used = false;
	for (size_t i = 0; r == 0 && i < count && !*ret_used; i++)
		*ret_used = !export_is_over(&list[i]) &&
		            (snapshot.n ? str_eq(json_field(list[i].body, "snapshotId"), snapshot)
		                        : str_eq(json_field(list[i].body, "exportBucketId"), bucket));
	return r;
}

/* --- beginning */

/* What is to be exported. */
struct export_wish {
	const struct snapshot *snapshot;
	struct str bucket;
	const json_t *labels; /* or NULL */
	bool automatic;
	bool names; /* in the prefix, instead of ids */
};

/* Of each cluster no two are the same, though the clock may stand still. */
static struct str prefix_free(struct arena *a, struct str base, const struct export *list, size_t count)
{
	for (int64_t at = clock_now_ms() / 1000;; at++) {
		struct str prefix = arena_printf(a, "%.*s/%lld", STR_ARG(base), (long long)at);
		bool taken = false;
		for (size_t i = 0; i < count && !taken; i++)
			taken = str_eq(json_field(list[i].body, "prefix"), prefix);
		if (!taken)
			return prefix;
	}
}

static int prefix_make(struct tx *tx, struct arena *a, const struct backup_line *line, const struct export_wish *wish,
                       struct str *ret_base)
{
	struct doc project, org;
	time_t at = (time_t)(wish->snapshot->doc.created_ms / 1000);
	char date[24];
	struct tm day;
	int r = tx_get(tx, a, "project", line->doc.parent, &project);
	if (r == 0)
		r = tx_get(tx, a, "org", project.parent, &org);
	if (r < 0)
		return r;
	gmtime_r(&at, &day);
	strftime(date, sizeof date, "%Y-%m-%dT%H%M", &day);
	struct str org_name = json_field(doc_json(a, org.body), "name");
	struct str own = export_part(a, wish->names ? org_name : org.id),
	           group = export_part(a, wish->names ? json_field(doc_json(a, project.body), "name") : project.id),
	           cluster = export_part(a, json_field(line->body, "clusterName"));
	*ret_base = arena_printf(a, "/" EXPORTS_BELOW "%.*s/%.*s/%.*s/%s", STR_ARG(own), STR_ARG(group),
	                         STR_ARG(cluster), date);
	return 0;
}

static json_t *components_make(struct arena *a, const struct snapshot *s)
{
	const json_t *members = json_object_get(s->body, "members");
	json_t *list = json_array();
	for (size_t i = 0; i < json_array_size(members); i++) {
		json_t *one = json_object();
		json_put_str(one, "exportId", id_make(a));
		json_put_str(one, "replicaSetName", json_field(json_array_get(members, i), "replicaSetName"));
		json_array_append_new(list, one);
	}
	return list;
}

static int export_begin(struct tx *tx, struct arena *a, const struct backup_line *line, const struct export_wish *wish,
                        struct export *ret_export)
{
	struct export e = {.doc = {.kind = STR(SNAPSHOT_EXPORT_KIND), .id = id_make(a), .parent = line->doc.id},
	                   .body = json_new(a),
	                   .plan = json_new(a)};
	struct export *list;
	size_t count = 0;
	struct str base;
	int r = exports_of(tx, a, line->doc.id, &list, &count);
	if (r == 0)
		r = prefix_make(tx, a, line, wish, &base);
	for (size_t i = 0; r == 0 && count >= EXPORTS_MAX && i < count; i++)
		if (export_is_over(&list[i])) {
			r = tx_delete(tx, SNAPSHOT_EXPORT_KIND, list[i].doc.id);
			break;
		}
	if (r < 0)
		return r;
	json_put_str(e.body, "id", e.doc.id);
	json_put_time(e.body, "createdAt", clock_now_ms());
	json_put_str(e.body, "exportBucketId", wish->bucket);
	json_put_str(e.body, "snapshotId", wish->snapshot->doc.id);
	json_put_z(e.body, "state", "Queued");
	json_put_str(e.body, "prefix", prefix_free(a, base, list, count));
	json_put(e.body, "exportStatus", json_pack("{s:i, s:i}", "exportedCollections", 0, "totalCollections", 0));
	json_put(e.body, "customData", wish->labels ? json_deep_copy(wish->labels) : json_array());
	if (str_is(json_field(wish->snapshot->body, "type"), "shardedCluster"))
		json_put(e.body, "components", components_make(a, wish->snapshot));
	json_put_str(e.plan, "groupId", line->doc.parent);
	json_put_str(e.plan, "clusterName", json_field(line->body, "clusterName"));
	json_put(e.plan, "automatic", json_boolean(wish->automatic));
	struct job job = {.kind = STR(EXPORT_JOB),
	                  .subject = export_subject(a, line->doc.id),
	                  .host = json_field(line->body, "host"),
	                  .args = arena_printf(a, "{\"id\":\"%.*s\"}", STR_ARG(e.doc.id)),
	                  .due_ms = clock_now_ms()};
	r = export_save(tx, a, &e);
	if (r == 0)
		r = tx_job_add(tx, &job);
	if (r == 0)
		*ret_export = e;
	return r;
}

/* --- what a call asks for */

static int snapshot_named(struct call *c, struct snapshot *ret_snapshot)
{
	struct str id = json_field(c->body, "snapshotId");
	int r = snapshot_load(c, id, ret_snapshot);
	if (r == -ENOENT)
		return call_fail_about(c, 404, "SNAPSHOT_NOT_FOUND", id,
		                       "snapshotId: the cluster has no snapshot with the id %.*s.", STR_ARG(id));
	if (r == 0 && !snapshot_is(ret_snapshot, "completed"))
		return call_fail_about(c, 409, "SNAPSHOT_NOT_COMPLETE", id, "snapshotId: the snapshot is %.*s.",
		                       STR_ARG(json_field(ret_snapshot->body, "status")));
	return r;
}

int bucket_reached(struct tx *tx, struct arena *a, const struct doc *bucket, bool *ret_reached)
{
	struct doc *docs;
	size_t count = 0;
	*ret_reached = !json_flag(doc_json(a, bucket->body), "requirePrivateNetworking");
	int r = *ret_reached ? 0 : tx_list_all(tx, a, "backup_private_endpoint", bucket->parent, &docs, &count);
	for (size_t i = 0; r == 0 && i < count && !*ret_reached; i++)
		*ret_reached = str_is(json_field(doc_json(a, docs[i].body), "status"), "ACTIVE");
	return r;
}

static int endpoint_check(struct call *c, const struct doc *bucket)
{
	bool reached;
	int r = bucket_reached(c->tx, c->arena, bucket, &reached);
	return r < 0 || reached
	               ? r
	               : call_fail_about(
	                         c, 409, "PRIVATE_ENDPOINT_REQUIRED", bucket->name,
	                         "exportBucketId: the bucket \"%.*s\" requires private networking, and the project's "
	                         "backups have no active private endpoint.",
	                         STR_ARG(bucket->name));
}

static int bucket_find(struct call *c)
{
	struct str id = json_field(c->body, "exportBucketId");
	struct doc d;
	int r = tx_get(c->tx, c->arena, BUCKET_KIND, id, &d);
	if (r == -ENOENT || (r == 0 && !str_eq(d.parent, c->group.id)))
		return call_fail_about(c, 404, "EXPORT_BUCKET_NOT_FOUND", id,
		                       "exportBucketId: the project has no export bucket with the id %.*s.",
		                       STR_ARG(id));
	return r < 0 ? r : endpoint_check(c, &d);
}

static int labels_check(struct call *c, const json_t *labels)
{
	struct faults faults = {.count = 0};
	char path[48];
	if (json_array_size(labels) > LABELS_MAX)
		return call_fail_fault(c, STR("customData"), "must have at most %d entries", LABELS_MAX);
	for (size_t i = 0; i < json_array_size(labels); i++) {
		struct str key = json_field(json_array_get(labels, i), "key");
		snprintf(path, sizeof path, "customData[%zu].key", i);
		bool again = false;
		for (size_t k = 0; k < i && !again; k++)
			again = str_eq(key, json_field(json_array_get(labels, k), "key"));
		if (!key.n || again)
			faults_add(&faults, c->arena, arena_dup(c->arena, str_of(path)), "%s",
			           key.n ? "repeats an earlier one" : "is required");
	}
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int queue_check(struct call *c, const struct backup_line *line, const struct export_wish *wish)
{
	struct export *list;
	size_t count = 0, waiting = 0;
	int r = exports_of(c->tx, c->arena, line->doc.id, &list, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (export_is_over(&list[i]))
			continue;
		waiting++;
		if (str_eq(json_field(list[i].body, "snapshotId"), wish->snapshot->doc.id) &&
		    str_eq(json_field(list[i].body, "exportBucketId"), wish->bucket))
			return call_fail_about(c, 409, "EXPORT_IN_PROGRESS", list[i].doc.id,
			                       "The export %.*s of this snapshot to this bucket is not over.",
			                       STR_ARG(list[i].doc.id));
	}
	return r < 0 || waiting < WAITING_MAX ? r
	                                      : call_fail(c, 409, "TOO_MANY_EXPORTS",
	                                                  "The cluster has %zu exports that are not over.", waiting);
}

int exports_create(struct call *c)
{
	struct export_wish wish = {.bucket = json_field(c->body, "exportBucketId"),
	                           .labels = json_object_get(c->body, "customData"),
	                           .names = true};
	struct backup_line line;
	struct snapshot s;
	struct export e;
	int r = backup_line_load(c, &line);
	if (r == 0 && !c->service->engine_ops->backup)
		r = cluster_not_offered(c);
	if (r == 0)
		r = labels_check(c, wish.labels);
	if (r == 0)
		r = snapshot_named(c, &s);
	if (r < 0)
		return r;
	wish.snapshot = &s;
	/* A cluster of the same name that is gone has a line of its own. */
	r = backup_line_get(c->tx, c->arena, s.doc.parent, &line);
	if (r == 0)
		r = bucket_find(c);
	if (r == 0)
		r = queue_check(c, &line, &wish);
	if (r == 0)
		r = export_begin(c->tx, c->arena, &line, &wish, &e);
	return r < 0 ? r : resource_write(c, &resource_backup_export, &e.doc);
}

/* --- what a schedule asks for */

static bool serves(const json_t *schedule, const struct snapshot *s, struct str frequency)
{
	const json_t *ids = json_object_get(s->body, "policyItems");
	const json_t *items = json_object_get(json_array_get(json_object_get(schedule, "policies"), 0), "policyItems");
	for (size_t i = 0; i < json_array_size(ids); i++)
		if (str_eq(json_field(json_find(items, "id", json_item(ids, i)), "frequencyType"), frequency))
			return true;
	return false;
}

/* In the write in which a snapshot is complete: the export that the schedule asks for. */
static int exported_by_schedule(struct tx *tx, struct arena *a, const struct backup_line *line,
                                const struct snapshot *s)
{
	json_t *schedule;
	struct export e;
	int r = schedule_of(tx, a, line, &schedule);
	if (r < 0 || !json_flag(schedule, "autoExportEnabled"))
		return r;
	const json_t *target = json_object_get(schedule, "export");
	struct str frequency = json_field(target, "frequencyType");
	const struct export_wish wish = {.snapshot = s,
	                                 .bucket = json_field(target, "exportBucketId"),
	                                 .automatic = true,
	                                 .names = json_flag(schedule, "useOrgAndGroupNamesInExportPrefix")};
	if (!serves(schedule, s, frequency.n ? frequency : STR("monthly")))
		return 0;
	return export_begin(tx, a, line, &wish, &e);
}

static int export_needs(struct tx *tx, struct arena *a, const struct snapshot *s, bool *ret_needed)
{
	return exports_use(tx, a, s->doc.parent, s->doc.id, STR_NONE, ret_needed);
}

const struct snapshot_user exports_snapshot_user = {.needs = export_needs, .taken = exported_by_schedule};

/* --- looking */

/* The form of "prefix" admits one text only, which is none of an export's: the header has it. */
static int view(struct call *c, const struct doc *d, json_t *entity)
{
	if (!c->is_list)
		call_header(c, STR("x-steward-export-prefix"), arena_dup(c->arena, json_field(entity, "prefix")));
	json_object_del(entity, "prefix");
	return 0;
}

static int find(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct export e;
	struct job row;
	int result = export_get(c->tx, c->arena, call_path(c, "exportId"), &e);
	if (result == 0 && (!str_eq(json_field(e.plan, "groupId"), c->group.id) ||
	                    !str_eq(json_field(e.plan, "clusterName"), call_path(c, "clusterName"))))
		result = -ENOENT;
	if (result < 0)
		return result == -ENOENT ? backup_missing(c, r, call_path(c, "exportId")) : result;
	if (export_is(&e, "InProgress") &&
	    tx_job_find(c->tx, c->arena, EXPORT_JOB, export_subject(c->arena, e.doc.parent), &row) == 0 &&
	    row.progress.n)
		call_header(c, STR("x-steward-progress"), row.progress);
	else if (export_is(&e, "Queued"))
		call_header(c, STR("x-steward-progress"), STR("0% waiting"));
	*ret_doc = e.doc;
	return 0;
}

/* Of the cluster of that name, and of clusters of that name that are gone. */
static int segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct backup_line line;
	struct doc *docs;
	size_t count = 0, made = 0;
	struct str name = call_path(c, "clusterName");
	int r = backup_line_load(c, &line);
	if (r == 0)
		r = tx_list_all(c->tx, c->arena, LINE_KIND, c->group.id, &docs, &count);
	if (r < 0)
		return r;
	struct segment *list = arena_new_array(c->arena, struct segment, count + 1);
	for (size_t i = 0; i < count; i++)
		if (str_eq(json_field(doc_json(c->arena, docs[i].body), "clusterName"), name))
			list[made++] = (struct segment){.kind = SNAPSHOT_EXPORT_KIND, .parent = docs[i].id};
	*ret_list = list;
	*ret_count = made;
	return 0;
}

const struct resource_hooks export_hooks = {.load = find, .segments = segments, .view = view};

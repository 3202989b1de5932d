/* Snapshots are taken, shown and deleted, by schedules and by callers. All of a cluster's are one list, whether it is
 * sharded or not; the sharded views show the same documents with their members. */
#include "api/snapshots/take.h"

#include "api/kit/verbs.h"
#include "api/snapshots/catalogue.h"
#include "api/snapshots/jobs.h"
#include "api/snapshots/metering.h"
#include "api/snapshots/points.h"
#include "api/snapshots/protection.h"
#include "api/snapshots/times.h"
#include "api/snapshots/timetable.h"
#include "base/clock.h"
#include "base/id.h"
#include "call/workers.h"
#include "gate/dispatch.h"
#include "trail/events.h"

#include <errno.h>

#define ON_DEMAND_DAYS 7
#define QUEUED_MAX 10
#define RETENTION_DAYS_MAX 36525

int snapshot_in_use(struct tx *tx, struct arena *a, const struct snapshot *s, bool *ret_used)
{
	int r = 0;
	*ret_used = false;
	for (size_t i = 0; r == 0 && i < snapshot_user_count && !*ret_used; i++)
		r = snapshot_users[i]->needs(tx, a, s, ret_used);
	return r;
}

/* --- taking one */

static json_t *members_make(struct arena *a, const struct backup_line *line)
{
	json_t *members = json_array();
	struct str label = json_field(line->body, "label"), provider = json_field(line->body, "provider");
	json_int_t shards = json_number(line->body, "shards");
	for (json_int_t i = 0; i < shards; i++) {
		json_t *one = json_object();
		json_put_str(one, "id", id_make(a));
		json_put_str(one, "cloudProvider", provider);
		json_put_str(one, "replicaSetName", arena_printf(a, "%.*s-shard-%lld", STR_ARG(label), (long long)i));
		json_array_append_new(members, one);
	}
	return members;
}

void snapshot_shape(struct arena *a, const struct backup_line *line, json_t *body)
{
	bool sharded = json_flag(line->body, "sharded");
	struct str label = json_field(line->body, "label");
	json_put_z(body, "type", sharded ? "shardedCluster" : "replicaSet");
	if (!sharded) {
		json_put_str(body, "cloudProvider", json_field(line->body, "provider"));
		json_put_str(body, "replicaSetName", arena_printf(a, "%.*s-shard-0", STR_ARG(label)));
		return;
	}
	json_t *members = members_make(a, line), *ids = json_array();
	for (size_t i = 0; i < json_array_size(members); i++)
		json_add_str(ids, json_field(json_array_get(members, i), "id"));
	json_put(body, "members", members);
	json_put(body, "snapshotIds", ids);
	json_put_z(body, "configServerType", "DEDICATED");
}

int snapshot_take(struct tx *tx, struct arena *a, struct backup_line *line, const struct snapshot_wish *wish,
                  struct snapshot *ret_snapshot)
{
	struct str group_id = json_field(line->body, "groupId");
	int64_t now = clock_now_ms(), floor = 0, retention = wish->retention_ms;
	json_t *schedule;
	int r = retention_floor(tx, a, group_id, wish->frequency, &floor);
	if (r == 0)
		r = schedule_of(tx, a, line, &schedule);
	if (r < 0)
		return r;
	retention = (retention > floor ? retention : floor) + schedule_extra_ms(schedule, wish->frequency);
	struct snapshot s = {
	        .doc = {.kind = STR(SNAPSHOT_KIND), .id = id_make(a), .parent = line->doc.id, .created_ms = now},
	        .body = json_new(a),
	        .plan = json_new(a)};
	json_put_str(s.body, "id", s.doc.id);
	json_put_time(s.body, "createdAt", now);
	json_put_time(s.body, "expiresAt", now + retention);
	json_put_z(s.body, "snapshotType", wish->type);
	json_put_z(s.body, "status", "queued");
	json_put(s.body, "storageSizeBytes", json_integer(0));
	json_put(s.body, "policyItems", wish->items ? json_deep_copy(wish->items) : json_array());
	json_put(s.body, "copyRegions", json_array());
	if (wish->description.n)
		json_put_str(s.body, "description", wish->description);
	if (wish->frequency != ON_DEMAND && strcmp(wish->type, "scheduled") == 0)
		json_put_z(s.body, "frequencyType", frequency_name((enum frequency)wish->frequency));
	snapshot_shape(a, line, s.body);
	json_put_str(s.plan, "groupId", group_id);
	json_put_str(s.plan, "clusterName", json_field(line->body, "clusterName"));
	json_put_str(s.plan, "incarnation", json_field(line->body, "incarnation"));
	json_put_str(s.plan, "region", json_field(line->body, "region"));
	json_put(s.plan, "frequency", json_integer(wish->frequency));
	r = snapshot_save(tx, a, &s);
	if (r == 0)
		r = backup_job_add(tx, a, SNAPSHOT_JOB, line, json_pack("{s:s%}", "id", s.doc.id.p, s.doc.id.n));
	if (r == 0)
		r = schedule_look(tx, a, line, now + retention);
	if (r == 0)
		*ret_snapshot = s;
	return r;
}

static int refuse_state(struct call *c, const struct cluster *cluster, const char *code, const char *what)
{
	return call_fail_about(c, 409, code, cluster->doc.name, "The cluster \"%.*s\" %s.", STR_ARG(cluster->doc.name),
	                       what);
}

static int take_check(struct call *c, const struct cluster *cluster)
{
	if (!c->service->engine_ops->backup)
		return cluster_not_offered(c);
	if (cluster_is(cluster, "DELETING"))
		return refuse_state(c, cluster, "CLUSTER_ALREADY_REQUESTED_DELETION", "is being deleted");
	if (!backup_is_wanted(cluster))
		return refuse_state(c, cluster, "CLUSTER_BACKUP_NOT_ENABLED",
		                    "has no backups. Set backupEnabled to true first");
	if (cluster_is(cluster, "CREATING"))
		return refuse_state(c, cluster, "CLUSTER_NOT_READY", "is being created");
	return 0;
}

static int queue_check(struct call *c, const struct backup_line *line)
{
	struct snapshot *list;
	size_t count = 0, queued = 0;
	int r = snapshots_of(c->tx, c->arena, line->doc.id, &list, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		queued += snapshot_is(&list[i], "queued");
	if (r < 0 || queued < QUEUED_MAX)
		return r;
	return call_fail_about(c, 409, "TOO_MANY_SNAPSHOTS_QUEUED", json_field(line->body, "clusterName"),
	                       "The cluster has %zu snapshots waiting to be taken. Wait for them.", queued);
}

int retention_check(struct call *c, int64_t ms, int frequency, const char *field)
{
	int64_t floor;
	int r = retention_floor(c->tx, c->arena, c->group.id, frequency, &floor);
	if (r < 0 || ms >= floor)
		return r;
	return call_fail_field(c, 400, "RETENTION_BELOW_COMPLIANCE_POLICY", field,
	                       "must be at least %lld days, by the project's backup compliance policy.",
	                       (long long)((floor + BACKUP_DAY_MS - 1) / BACKUP_DAY_MS));
}

static int snapshot_write(struct call *c, const struct snapshot *s)
{
	bool sharded = str_is(json_field(s->body, "type"), "shardedCluster");
	return resource_write(c, sharded ? &resource_backup_sharded_snapshot : &resource_backup_snapshot, &s->doc);
}

int snapshots_take(struct call *c)
{
	const json_t *days = json_object_get(c->body, "retentionInDays");
	struct snapshot_wish wish = {.type = "onDemand",
	                             .frequency = ON_DEMAND,
	                             .retention_ms = ON_DEMAND_DAYS * BACKUP_DAY_MS,
	                             .description = json_field(c->body, "description")};
	struct cluster cluster;
	struct backup_line line;
	struct snapshot s;
	int r = cluster_load(c, &cluster);
	if (r == 0)
		r = take_check(c, &cluster);
	if (r == 0)
		r = backup_line_follow(c->tx, c->arena, &cluster, &line);
	if (r < 0)
		return r;
	if (days && json_integer_value(days) > RETENTION_DAYS_MAX)
		return call_fail_fault(c, STR("retentionInDays"), "must be at most %d", RETENTION_DAYS_MAX);
	if (days) {
		wish.retention_ms = json_integer_value(days) * BACKUP_DAY_MS;
		r = retention_check(c, wish.retention_ms, ON_DEMAND, "retentionInDays");
	}
	if (r == 0)
		r = queue_check(c, &line);
	if (r == 0)
		r = resource_limit(c, &resource_backup_snapshot, line.doc.id, 1);
	if (r == 0)
		r = snapshot_take(c->tx, c->arena, &line, &wish, &s);
	if (r < 0)
		return r;
	event_cluster(c, cluster.doc.name);
	event_field(c, "snapshotId", s.doc.id);
	return snapshot_write(c, &s);
}

/* --- looking */

static void progress_header(struct call *c, const struct snapshot *s)
{
	struct job job;
	if (snapshot_is(s, "inProgress") &&
	    tx_job_find(c->tx, c->arena, SNAPSHOT_JOB, backup_subject(c->arena, s->doc.parent), &job) == 0 &&
	    job.progress.n)
		call_header(c, STR("x-steward-progress"), job.progress);
	else if (snapshot_is(s, "queued"))
		call_header(c, STR("x-steward-progress"), STR("0% waiting"));
	else if (snapshot_is(s, "failed") && json_field(s->plan, "why").n)
		call_header(c, STR("x-steward-progress"),
		            arena_printf(c->arena, "failed: %.*s", STR_ARG(json_field(s->plan, "why"))));
}

/* What the last drill found. The document has no place for it. */
static void proven_header(struct call *c, const struct snapshot *s)
{
	const json_t *failed = json_object_get(s->plan, "unproven");
	int64_t proven = json_number(s->plan, "proven");
	char text[CLOCK_TEXT];
	if (!snapshot_is(s, "completed"))
		return;
	clock_format(failed ? json_number(failed, "at") : proven, text);
	if (failed)
		call_header(c, STR("x-steward-proven"),
		            arena_printf(c->arena, "failed %s: %.*s", text, STR_ARG(json_field(failed, "why"))));
	else
		call_header(c, STR("x-steward-proven"), proven ? arena_printf(c->arena, "%s", text) : STR("never"));
}

int snapshot_find(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct snapshot s;
	int result = snapshot_load(c, call_path(c, "snapshotId"), &s);
	if (result < 0)
		return result;
	if (!c->op->writes) {
		progress_header(c, &s);
		proven_header(c, &s);
	}
	*ret_doc = s.doc;
	return 0;
}

static bool is_sharded(struct call *c, const struct doc *d)
{
	return str_is(json_field(doc_json(c->arena, d->body), "type"), "shardedCluster");
}

static int find_sharded(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct doc d;
	int result = snapshot_find(c, r, &d);
	if (result < 0 || !is_sharded(c, &d))
		return result < 0 ? result : -ENOENT;
	*ret_doc = d;
	return 0;
}

static int view_plain(struct call *c, const struct doc *d, json_t *entity)
{
	answer_form(c, c->is_list ? resource_backup_snapshot.schema : c->version->response, entity);
	return 0;
}

static int view_sharded(struct call *c, const struct doc *d, json_t *entity)
{
	answer_form(c, c->is_list ? resource_backup_sharded_snapshot.schema : c->version->response, entity);
	return 0;
}

/* Those of the cluster of that name, and of clusters of that name that are gone. */
int snapshot_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct backup_line line;
	struct doc *docs;
	size_t count = 0, made = 0;
	struct str name = backup_path_name(c);
	int r = backup_line_load(c, &line);
	if (r == 0)
		r = tx_list_all(c->tx, c->arena, LINE_KIND, c->group.id, &docs, &count);
	if (r < 0)
		return r;
	struct segment *list = arena_new_array(c->arena, struct segment, count + 1);
	for (size_t i = 0; i < count; i++) {
		const json_t *other = doc_json(c->arena, docs[i].body);
		if (!str_eq(docs[i].id, line.doc.id) && str_eq(json_field(other, "clusterName"), name) &&
		    json_flag(other, "flex") == backup_path_is_flex(c))
			list[made++] = (struct segment){.kind = SNAPSHOT_KIND, .parent = docs[i].id};
	}
	list[made++] = (struct segment){.kind = SNAPSHOT_KIND, .parent = line.doc.id};
	*ret_list = list;
	*ret_count = made;
	return 0;
}

/* The point that the list's snapshots must help to restore; 0: none was given. */
static int64_t point_asked(struct call *c)
{
	uint64_t seconds;
	struct str at = call_query(c, "pointInTimeUtcSeconds"), position = call_query(c, "oplogTs");
	return str_to_u64(at.n ? at : position, INT64_MAX / 1000, &seconds) ? (int64_t)seconds * 1000 : 0;
}

struct usable {
	struct restorable *list;
	size_t count;
};

/* Whether the list shall tell which moments can be restored. The reference has no field for it, and the answer lies in
 * the repository, so that it is looked up for those alone who ask. */
static bool window_asked(struct call *c)
{
	return request_header(c->request, "x-steward-describe-window").p && c->service->engine_ops->backup;
}

/* What can be restored is asked from the engine once for the list, also of data from before a restore. */
static int usable_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct usable *u = arena_new_of(c->arena, struct usable);
	struct backup_line line;
	if (!point_asked(c) && !window_asked(c))
		return snapshot_segments(c, ret_list, ret_count);
	if (!on_worker() && call_takes_long(c, INT64_MAX))
		return 0;
	int r = backup_line_load(c, &line);
	*u = (struct usable){.count = 0};
	if (r == 0 && c->service->engine_ops->backup)
		r = points_list(c, &line, &u->list, &u->count);
	c->noted = u;
	if (r == 0 && window_asked(c))
		call_header(c, STR("x-steward-restore-window"), windows_text(c->arena, u->list, u->count));
	return r < 0 ? r : snapshot_segments(c, ret_list, ret_count);
}

static bool plain_takes(struct call *c, const struct doc *d)
{
	const struct usable *u = c->noted;
	int64_t point = point_asked(c);
	if (!point)
		return true;
	struct snapshot s = snapshot_of(c->arena, d);
	int64_t at = json_number(s.plan, "at");
	for (size_t i = 0; u && i < u->count; i++)
		if (at <= point && point <= u->list[i].window.to_ms &&
		    snapshot_is_base(&s, &u->list[i].source, &u->list[i].window))
			return true;
	return false;
}

static bool sharded_takes(struct call *c, const struct doc *d)
{
	return is_sharded(c, d);
}

/* --- ending one */

/* The engine forgets what it keeps of the snapshot in that region. */
static int forget_ask(struct tx *tx, struct arena *a, const struct snapshot *s, const struct backup_line *line,
                      struct str region)
{
	json_t *args = json_object();
	json_put_str(args, "group", json_field(s->plan, "groupId"));
	json_put_str(args, "cluster", s->doc.parent);
	json_put_str(args, "incarnation", json_field(s->plan, "incarnation"));
	json_put_str(args, "snapshot", s->doc.id);
	json_put_str(args, "region", region);
	return backup_job_add(tx, a, FORGET_JOB, line, args);
}

int snapshot_delete(struct tx *tx, struct arena *a, const struct snapshot *s)
{
	struct backup_line line;
	const json_t *copies = json_object_get(s->plan, "copies");
	int r = backup_line_get(tx, a, s->doc.parent, &line);
	for (size_t i = 0; r == 0 && i <= json_array_size(copies); i++)
		r = forget_ask(tx, a, s, &line, json_field(i ? json_array_get(copies, i - 1) : s->plan, "region"));
	if (r == 0)
		r = snapshot_meter_end(tx, a, s->doc.parent, s->doc.id);
	return r < 0 ? r : tx_delete(tx, SNAPSHOT_KIND, s->doc.id);
}

int snapshot_drop_copy(struct tx *tx, struct arena *a, struct snapshot *s, struct str region)
{
	json_t *copies = json_object_get(s->plan, "copies"), *shown = json_array();
	struct backup_line line;
	int r = backup_line_get(tx, a, s->doc.parent, &line);
	for (size_t i = json_array_size(copies); r == 0 && i-- > 0;) {
		if (!str_eq(json_field(json_array_get(copies, i), "region"), region))
			continue;
		r = forget_ask(tx, a, s, &line, region);
		json_array_remove(copies, i);
	}
	for (size_t i = 0; i < json_array_size(copies); i++)
		json_add_str(shown, json_field(json_array_get(copies, i), "region"));
	json_put(s->body, "copyRegions", shown);
	return r < 0 ? r : snapshot_save(tx, a, s);
}

int snapshot_protected(struct call *c, const struct snapshot *s)
{
	if (!json_flag(s->plan, "doNotDelete"))
		return 0;
	return call_fail_about(c, 409, "SNAPSHOT_PROTECTED", s->doc.id,
	                       "The snapshot %.*s is protected: set its doNotDelete to false first.",
	                       STR_ARG(s->doc.id));
}

int snapshot_remove_check(struct call *c, const struct doc *d)
{
	struct snapshot s = snapshot_of(c->arena, d), *list;
	struct backup_line line;
	size_t count = 0;
	int64_t floor;
	bool used = false, held = false;
	if (snapshot_is(&s, "inProgress"))
		return call_fail_about(c, 409, "SNAPSHOT_IN_PROGRESS", d->id,
		                       "The snapshot %.*s is being taken. Delete it when it is complete.",
		                       STR_ARG(d->id));
	int r = snapshot_protected(c, &s);
	if (r == 0)
		r = snapshot_in_use(c->tx, c->arena, &s, &used);
	if (r == 0 && used)
		return call_fail_about(c, 409, "SNAPSHOT_IN_USE", d->id,
		                       "The snapshot %.*s is being restored or exported.", STR_ARG(d->id));
	if (r == 0)
		r = retention_floor(c->tx, c->arena, c->group.id, snapshot_frequency(&s), &floor);
	if (r == 0)
		r = backup_line_get(c->tx, c->arena, d->parent, &line);
	if (r == 0)
		r = snapshots_of(c->tx, c->arena, d->parent, &list, &count);
	if (r == 0)
		r = protection_window(c->tx, c->arena, &line, list, count, &s, &held);
	if (r < 0 || (!held && (snapshot_is(&s, "failed") || clock_now_ms() >= d->created_ms + floor)))
		return r;
	return call_fail_about(c, 409, "SNAPSHOT_PROTECTED_BY_COMPLIANCE_POLICY", d->id,
	                       "The snapshot %.*s is kept by the project's backup compliance policy.", STR_ARG(d->id));
}

int snapshot_drop(struct call *c, const struct doc *d)
{
	struct snapshot s = snapshot_of(c->arena, d);
	event_cluster(c, json_field(s.plan, "clusterName"));
	return snapshot_delete(c->tx, c->arena, &s);
}

int snapshots_update(struct call *c)
{
	struct snapshot s;
	struct backup_line line;
	int64_t ms = retention_ms(json_field(c->body, "retentionUnit"), json_number(c->body, "retentionValue"));
	int r = snapshot_load(c, call_path(c, "snapshotId"), &s);
	if (r == 0)
		r = if_match(c, s.doc.rev);
	if (r < 0)
		return r;
	if (!ms)
		return call_fail_fault(c, STR("retentionValue"), "must be at least 1, and at most a hundred years");
	r = snapshot_protected(c, &s);
	if (r == 0)
		r = retention_check(c, ms, snapshot_frequency(&s), "retentionValue");
	if (r == 0)
		r = backup_line_get(c->tx, c->arena, s.doc.parent, &line);
	if (r < 0)
		return r;
	json_put_time(s.body, "expiresAt", s.doc.created_ms + ms);
	r = snapshot_save(c->tx, c->arena, &s);
	if (r == 0)
		r = schedule_look(c->tx, c->arena, &line, s.doc.created_ms + ms);
	if (r < 0)
		return r;
	event_cluster(c, json_field(s.plan, "clusterName"));
	event_field(c, "snapshotId", s.doc.id);
	return resource_write(c, &resource_backup_snapshot, &s.doc);
}

const struct resource_hooks snapshot_hooks = {.load = snapshot_find,
                                              .segments = usable_segments,
                                              .takes = plain_takes,
                                              .view = view_plain,
                                              .remove = snapshot_remove_check,
                                              .drop = snapshot_drop};
const struct resource_hooks sharded_snapshot_hooks = {.load = find_sharded,
                                                      .segments = usable_segments,
                                                      .takes = sharded_takes,
                                                      .view = view_sharded,
                                                      .remove = snapshot_remove_check,
                                                      .drop = snapshot_drop};

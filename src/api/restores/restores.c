/* Restore jobs: what is asked for, whether it can be had, and the documents about it. Whether a point in time can be
 * restored is asked from the engine before the write, because the answer lies in the repository. */
#include "api/restores/restores.h"

#include "api/encryption_at_rest/encryption_at_rest.h"
#include "api/kit/verbs.h"
#include "api/restores/download.h"
#include "api/restores/job.h"
#include "api/restores/piece.h"
#include "api/snapshots/snapshots.h"
#include "base/clock.h"
#include "base/id.h"
#include "gate/gate.h"
#include "gate/right.h"
#include "trail/events.h"

#include <errno.h>
#include <stdio.h>

#define JOBS_MAX 200 /* of a cluster: the oldest that are over go */
/* By which a caller says that data leaves the protection of a project's key. The body has no word for it. */
#define DECRYPT_HEADER "x-steward-restore-decrypted"

struct restore restore_of(struct arena *a, const struct doc *d)
{
	return (struct restore){.doc = *d, .body = doc_json(a, d->body), .plan = doc_json(a, d->secret)};
}

int restore_get(struct tx *tx, struct arena *a, struct str id, struct restore *ret_restore)
{
	struct doc d;
	int r = tx_get(tx, a, RESTORE_KIND, id, &d);
	if (r == 0)
		*ret_restore = restore_of(a, &d);
	return r;
}

int restore_save(struct tx *tx, struct arena *a, struct restore *r)
{
	r->doc.body = json_text(a, r->body);
	r->doc.secret = json_text(a, r->plan);
	return doc_put(tx, &r->doc);
}

bool restore_is_download(const struct restore *r)
{
	return str_is(json_field(r->body, "deliveryType"), "download");
}

bool restore_is_over(const struct restore *r)
{
	bool ended = json_flag(r->body, "cancelled") || json_flag(r->body, "failed") || json_flag(r->body, "expired");
	return ended || (!restore_is_download(r) && json_field(r->body, "finishedAt").n);
}

int restore_sources(struct tx *tx, struct arena *a, const struct restore *r, struct engine_source **ret_list,
                    size_t *ret_count)
{
	const json_t *from = json_object_get(r->plan, "from");
	struct engine_source first = {.region = ""}, *others = NULL;
	struct snapshot s;
	size_t count = 0, made = 1;
	str_copy(json_field(from, "group"), first.group_id, sizeof first.group_id);
	str_copy(json_field(from, "cluster"), first.cluster_id, sizeof first.cluster_id);
	str_copy(json_field(from, "incarnation"), first.incarnation, sizeof first.incarnation);
	str_copy(json_field(from, "snapshot"), first.snapshot_id, sizeof first.snapshot_id);
	str_copy(json_field(from, "region"), first.region, sizeof first.region);
	int result = snapshot_get(tx, a, json_field(from, "snapshot"), &s);
	if (result < 0 && result != -ENOENT)
		return result;
	if (result == 0)
		count = snapshot_sources(a, &s, &others);
	struct engine_source *list = arena_new_array(a, struct engine_source, count + 1);
	list[0] = first;
	for (size_t i = 0; i < count; i++)
		if (strcmp(others[i].region, first.region) != 0)
			list[made++] = others[i];
	*ret_list = list;
	*ret_count = made;
	return 0;
}

static int restore_needs(struct tx *tx, struct arena *a, const struct snapshot *s, bool *ret_needed)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, RESTORE_KIND, s->doc.parent, &docs, &count);
	*ret_needed = false;
	for (size_t i = 0; r == 0 && i < count && !*ret_needed; i++) {
		struct restore one = restore_of(a, &docs[i]);
		*ret_needed = !restore_is_over(&one) &&
		              str_eq(json_field(json_object_get(one.plan, "from"), "snapshot"), s->doc.id);
	}
	return r;
}

const struct snapshot_user restores_snapshot_user = {.needs = restore_needs};

/* --- the target */

static int insufficient(struct call *c)
{
	call_fail(c, 403, "INSUFFICIENT_ROLE", "targetGroupId: the caller's roles in this project do not permit %s.",
	          c->op->id);
	for (unsigned i = 0; i < role_count; i++)
		if (c->op->roles >> i & 1)
			call_fail_param(c, str_of(role_names[i]));
	return -403;
}

/* What the request calls the target: the older views have other words. */
static const char *target_field(const struct call *c)
{
	return json_object_get(c->body, "delivery")                   ? "delivery.targetClusterName"
	       : json_object_get(c->body, "targetDeploymentItemName") ? "targetDeploymentItemName"
	                                                              : "targetClusterName";
}

int restore_target(struct call *c, struct str group_id, struct str name, struct cluster *ret_cluster)
{
	struct doc project = {.id = STR_NONE}, d;
	bool own = str_eq(group_id, c->group.id);
	int r = own ? 0 : tx_get(c->tx, c->arena, "project", group_id, &project);
	if (r < 0 && r != -ENOENT)
		return r;
	role_mask roles = own            ? c->roles
	                  : r == -ENOENT ? 0
	                                 : principal_org_roles(c->caller, project.parent) |
	                                           principal_group_roles(c->caller, project.parent, group_id);
	/* Who is no member does not learn whether it is there. */
	if (!roles)
		return call_fail_about(c, 404, "GROUP_NOT_FOUND", group_id,
		                       "targetGroupId: no project has the id %.*s.", STR_ARG(group_id));
	if (!(roles & c->op->roles))
		return insufficient(c);
	r = own ? 0 : payment_check(c, project.parent);
	if (r < 0)
		return r;
	r = tx_get_by_name(c->tx, c->arena, CLUSTER_KIND, group_id, name, &d);
	if (r == -ENOENT)
		r = tx_get_by_name(c->tx, c->arena, FLEX_KIND, group_id, name, &d);
	if (r == -ENOENT)
		return call_fail_about(c, 404, "CLUSTER_NOT_FOUND", name, "%s: the project has no cluster \"%.*s\".",
		                       target_field(c), STR_ARG(name));
	if (r == 0)
		*ret_cluster = cluster_of(c->arena, &d);
	return r;
}

static int refuse(struct call *c, const struct cluster *target, const char *code, const char *what)
{
	return call_fail_about(c, 409, code, target->doc.name, "The cluster \"%.*s\" %s.", STR_ARG(target->doc.name),
	                       what);
}

/* One that is being made is restored into as soon as it is there: who wants a new cluster with old data need not wait
 * for it, and nobody's closed window leaves it empty. */
static int state_check(struct call *c, const struct cluster *target)
{
	if (cluster_is(target, "DELETING"))
		return refuse(c, target, "CLUSTER_ALREADY_REQUESTED_DELETION", "is being deleted");
	if (json_object_get(target->plan, "restoring"))
		return refuse(c, target, "CLUSTER_RESTORE_IN_PROGRESS", "is being restored already");
	if (!cluster_is(target, "IDLE") && !cluster_is(target, "CREATING"))
		return refuse(c, target, "CLUSTER_NOT_READY", "is being changed. Wait until it is IDLE");
	if (json_flag(target->body, "paused"))
		return refuse(c, target, "CANNOT_UPDATE_PAUSED_CLUSTER", "is paused. Resume it first");
	return 0;
}

static struct str major_of(struct str version)
{
	struct str major, rest;
	str_cut(version, '.', &major, &rest);
	return major;
}

static int target_check(struct call *c, const struct backup_line *line, const struct restore_wish *wish)
{
	const struct cluster *target = wish->target;
	struct faults faults = {.count = 0};
	struct str field = str_of(target_field(c));
	struct str version = wish->snapshot ? json_field(wish->snapshot->body, "dbVersion") : STR_NONE;
	uint64_t major;
	bool sharded = !str_is(json_field(target->body, "clusterType"), "REPLICASET");
	size_t shards = json_array_size(json_object_get(target->body, "replicationSpecs"));
	int r = state_check(c, target);
	if (r < 0)
		return r;
	if (wish->only && sharded)
		faults_add(&faults, c->arena, field,
		           "must not be sharded: one database or table is restored into a replica set");
	else if (sharded != json_flag(line->body, "sharded"))
		faults_add(&faults, c->arena, field, "must be a cluster that is %s, as the source is",
		           sharded ? "not sharded" : "sharded");
	else if ((json_int_t)shards != json_number(line->body, "shards"))
		faults_add(&faults, c->arena, field, "must have %lld shards, as the source has",
		           (long long)json_number(line->body, "shards"));
	if (version.n && str_to_u64(major_of(version), 1000, &major) &&
	    major != cluster_version(c->service->db_versions, target->body))
		faults_add(&faults, c->arena, field, "must run version %.*s, as the snapshot's data does",
		           STR_ARG(major_of(version)));
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

/* Whether what is brought back is sealed with the project's own key. Snapshots from before this was noted are, when the
 * project had its key by then. */
static int sealed_look(struct call *c, const struct restore_wish *wish, bool *ret_sealed)
{
	const json_t *noted = json_object_get(wish->snapshot->plan, "dataKey");
	bool on;
	int64_t since;
	int r = encryption_is_on(c->tx, c->arena, str_of(wish->from.group_id), &on, &since);
	if (r < 0)
		return r;
	*ret_sealed = noted ? json_string_length(noted) > 0 : json_number(wish->snapshot->plan, "at") >= since;
	/* The log behind the snapshot is sealed with the key of its time. */
	*ret_sealed = *ret_sealed || (on && wish->point.kind != POINT_SNAPSHOT);
	return 0;
}

/* A project without a key of its own gets what another one's key has sealed only by the caller's explicit word: who
 * takes that key back later does not reach what was brought there. The word is an event of its own. */
static int decrypt_check(struct call *c, const struct restore_wish *wish, struct str job_id)
{
	bool sealed = false, on = false;
	int64_t since;
	if (!wish->snapshot)
		return 0;
	int r = encryption_is_on(c->tx, c->arena, wish->target->doc.parent, &on, &since);
	if (r == 0 && !on)
		r = sealed_look(c, wish, &sealed);
	if (r < 0 || on || !sealed)
		return r;
	if (!str_ieq(request_header(c->request, DECRYPT_HEADER), STR("true")))
		return call_fail_about(
		        c, 409, "RESTORE_WOULD_DECRYPT", wish->target->doc.name,
		        "The snapshot is sealed with its project's own key, and the project of the cluster "
		        "\"%.*s\" has none: its data would be there without the protection of that key. Set "
		        "encryption at rest up in that project first, or send the header "
		        "X-Steward-Restore-Decrypted: true.",
		        STR_ARG(wish->target->doc.name));
	event_set_type(c, "CPS_RESTORE_AUTH_AUDIT");
	event_field(c, "restoreJobId", job_id);
	event_field(c, "decryptedInto", wish->target->doc.parent);
	return event_next(c);
}

/* --- beginning */

static int old_drop(struct call *c, struct str line_id)
{
	int64_t count;
	struct doc *docs;
	size_t n = 0;
	int r = tx_count(c->tx, RESTORE_KIND, line_id, &count);
	if (r < 0 || count < JOBS_MAX)
		return r;
	r = tx_list_all(c->tx, c->arena, RESTORE_KIND, line_id, &docs, &n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct restore one = restore_of(c->arena, &docs[i]);
		if (restore_is_over(&one))
			return tx_delete(c->tx, RESTORE_KIND, one.doc.id);
	}
	return r < 0 ? r
	             : call_fail(c, 409, "TOO_MANY_RESTORE_JOBS", "The cluster has %d restore jobs that are not over.",
	                         JOBS_MAX);
}

static void from_put(const struct restore_wish *wish, json_t *plan)
{
	const struct engine_source *from = &wish->from;
	const struct engine_point *point = &wish->point;
	static const char *const kinds[] = {"snapshot", "time", "position"};
	char lsn[24];
	snprintf(lsn, sizeof lsn, "%llx", (unsigned long long)point->position.lsn);
	json_put(plan, "from",
	         json_pack("{s:s, s:s, s:s, s:s, s:s}", "group", from->group_id, "cluster", from->cluster_id,
	                   "incarnation", from->incarnation, "snapshot", from->snapshot_id, "region", from->region));
	json_put(plan, "point",
	         json_pack("{s:s, s:I, s:s, s:I, s:s}", "kind", kinds[point->kind], "time", (json_int_t)point->time_ms,
	                   "set", point->position.set, "timeline", (json_int_t)point->position.timeline, "lsn", lsn));
}

static int target_begin(struct call *c, const struct restore_wish *wish, struct restore *job)
{
	struct cluster *target = wish->target;
	json_put_str(target->plan, "restoring", job->doc.id);
	if (!cluster_is(target, "CREATING"))
		json_put_z(target->body, "stateName", "UPDATING");
	int r = cluster_save(c->tx, c->arena, target);
	struct job row = {.kind = STR(RESTORE_JOB),
	                  .subject = target->doc.id,
	                  .args = arena_printf(c->arena, "{\"id\":\"%.*s\"}", STR_ARG(job->doc.id)),
	                  .due_ms = clock_now_ms()};
	return r < 0 ? r : tx_job_add(c->tx, &row);
}

/* A download is ready at once: what it is made of lies in the repository. */
static int download_begin(struct call *c, const struct restore_wish *wish, struct restore *job)
{
	int64_t now = clock_now_ms(), expires = now + (wish->hours ? wish->hours : DOWNLOAD_HOURS) * 3600000LL;
	json_t *sets = json_array();
	const json_t *known = json_object_get(wish->snapshot->plan, "sets");
	char nonce[33];
	random_text(nonce, sizeof nonce - 1, "0123456789abcdef");
	for (size_t i = 0; i < json_array_size(known); i++)
		json_add_str(sets, json_field(json_array_get(known, i), "set"));
	json_put(job->plan, "sets", sets);
	json_put_z(job->plan, "nonce", nonce);
	json_put(job->plan, "until", json_integer(expires));
	json_put(job->plan, "downloads", json_integer(wish->downloads));
	json_put_z(job->plan, "operation", c->op->id);
	json_put_time(job->body, "finishedAt", now);
	json_put_time(job->body, "expiresAt", expires);
	struct job row = {.kind = STR(EXPIRE_JOB),
	                  .subject = arena_printf(c->arena, "download/%.*s", STR_ARG(job->doc.id)),
	                  .args = arena_printf(c->arena, "{\"id\":\"%.*s\"}", STR_ARG(job->doc.id)),
	                  .due_ms = expires};
	return tx_job_add(c->tx, &row);
}

int restore_begin(struct call *c, const struct backup_line *line, const struct restore_wish *wish, json_t *body,
                  struct restore *ret_restore)
{
	struct restore job = {.doc = {.kind = STR(RESTORE_KIND), .id = id_make(c->arena), .parent = line->doc.id},
	                      .body = body,
	                      .plan = json_new(c->arena)};
	int r = wish->target ? target_check(c, line, wish) : 0;
	if (r == 0 && wish->target)
		r = decrypt_check(c, wish, job.doc.id);
	if (r == 0)
		r = old_drop(c, line->doc.id);
	if (r < 0)
		return r;
	json_put_str(body, "id", job.doc.id);
	json_put_z(body, "deliveryType", wish->delivery);
	json_put(body, "cancelled", json_false());
	json_put(body, "expired", json_false());
	json_put(body, "failed", json_false());
	json_put_str(job.plan, "groupId", c->group.id);
	json_put_str(job.plan, "clusterName", json_field(line->body, "clusterName"));
	if ((r = right_link_put(c, job.plan)) < 0)
		return r;
	from_put(wish, job.plan);
	if (wish->target) {
		json_put_str(body, "targetClusterName", wish->target->doc.name);
		json_put_str(body, "targetGroupId", wish->target->doc.parent);
		json_put_str(job.plan, "target", wish->target->doc.id);
		json_put_str(job.plan, "incarnation", id_make(c->arena));
	}
	if (wish->only)
		json_put(job.plan, "only", json_incref(wish->only));
	r = wish->target ? target_begin(c, wish, &job) : download_begin(c, wish, &job);
	if (r == 0)
		r = restore_save(c->tx, c->arena, &job);
	if (r == 0)
		*ret_restore = job;
	return r;
}

/* --- what the request says */

static void wants(struct call *c, const char *field, bool wanted, const char *why, struct faults *faults)
{
	bool given = json_object_get(c->body, field) != NULL;
	if (wanted && !given)
		faults_add(faults, c->arena, str_of(field), "is required for %s", why);
	if (!wanted && given)
		faults_add(faults, c->arena, str_of(field), "does not go with %s", why);
}

static int form_check(struct call *c)
{
	const char *delivery = json_string_value(json_object_get(c->body, "deliveryType"));
	struct faults faults = {.count = 0};
	json_t *only;
	bool by_time = strcmp(delivery, "pointInTime") == 0, download = strcmp(delivery, "download") == 0;
	bool seconds = json_object_get(c->body, "pointInTimeUTCSeconds") != NULL;
	char why[48];
	snprintf(why, sizeof why, "the deliveryType %s", delivery);
	wants(c, "snapshotId", !by_time, why, &faults);
	if (!by_time || seconds) {
		const char *what = by_time ? "pointInTimeUTCSeconds" : why;
		wants(c, "oplogTs", false, what, &faults);
		wants(c, "oplogInc", false, what, &faults);
	} else if (!json_object_get(c->body, "oplogTs") && !json_object_get(c->body, "oplogInc")) {
		wants(c, "pointInTimeUTCSeconds", true, why, &faults);
	} else {
		wants(c, "oplogTs", true, "oplogInc", &faults);
		wants(c, "oplogInc", true, "oplogTs", &faults);
	}
	if (!by_time)
		wants(c, "pointInTimeUTCSeconds", false, why, &faults);
	wants(c, "targetClusterName", !download, why, &faults);
	if (download)
		wants(c, "targetGroupId", false, why, &faults);
	piece_read(c, &faults, &only);
	if (only && download)
		faults_add(&faults, c->arena, STR("X-Steward-Restore-Only"), "does not go with %s", why);
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int body_point(struct call *c, struct tx *reader)
{
	const json_t *seconds = json_object_get(c->body, "pointInTimeUTCSeconds"),
	             *position = json_object_get(c->body, "oplogTs");
	const struct wanted_point wanted = {.ms = json_integer_value(seconds ? seconds : position) * 1000,
	                                    .increment = json_number(c->body, "oplogInc"),
	                                    .field = seconds ? "pointInTimeUTCSeconds" : "oplogTs"};
	return point_find(c, reader, &wanted);
}

int restores_prepare(struct call *c)
{
	int r = form_check(c);
	if (r == 0 && !c->service->engine_ops->backup)
		r = cluster_not_offered(c);
	if (r < 0 || !str_is(json_field(c->body, "deliveryType"), "pointInTime"))
		return r;
	return prepare_with_reader(c, body_point);
}

int restore_from_snapshot(struct call *c, struct restore_wish *wish, struct snapshot *s, json_t *body)
{
	struct str id = json_field(c->body, "snapshotId");
	int r = snapshot_load(c, id, s);
	if (r == -ENOENT)
		return call_fail_about(c, 404, "SNAPSHOT_NOT_FOUND", id,
		                       "snapshotId: the cluster has no snapshot with the id %.*s.", STR_ARG(id));
	if (r < 0)
		return r;
	if (!snapshot_is(s, "completed"))
		return call_fail_about(c, 409, "SNAPSHOT_NOT_COMPLETE", id, "snapshotId: the snapshot is %.*s.",
		                       STR_ARG(json_field(s->body, "status")));
	wish->snapshot = s;
	wish->from = snapshot_source(s);
	wish->point = (struct engine_point){.kind = POINT_SNAPSHOT, .time_ms = json_number(s->plan, "at")};
	json_put_str(body, "snapshotId", id);
	json_put_time(body, "timestamp", wish->point.time_ms);
	return 0;
}

/* What was found before the write, unless its snapshot is gone by now. */
int restore_from_point(struct call *c, struct restore_wish *wish, struct snapshot *s, json_t *body)
{
	const struct found_point *found = c->prepared;
	int r = snapshot_get(c->tx, c->arena, found->base.doc.id, s);
	if (r < 0)
		return r == -ENOENT ? call_fail(c, 409, "SNAPSHOT_NOT_FOUND",
		                                "The snapshot that this point needs was deleted just now. Try again.")
		                    : r;
	wish->point = found->point;
	wish->from = found->from;
	wish->snapshot = s;
	json_put(body, found->wanted.increment ? "oplogTs" : "pointInTimeUTCSeconds",
	         json_integer(found->wanted.ms / 1000));
	if (found->wanted.increment)
		json_put(body, "oplogInc", json_integer(found->wanted.increment));
	json_put_time(body, "timestamp", found->at_ms);
	json_t *desired = json_object();
	json_put_time(desired, "date", found->at_ms);
	json_put(desired, "increment", json_integer(INCREMENT_BASE + found->units));
	json_put(body, "desiredTimestamp", desired);
	return 0;
}

int restores_create(struct call *c)
{
	struct str group = json_field(c->body, "targetGroupId"), name = json_field(c->body, "targetClusterName");
	struct restore_wish wish = {.delivery = json_string_value(json_object_get(c->body, "deliveryType"))};
	json_t *body = json_new(c->arena);
	struct backup_line line;
	struct snapshot s;
	struct restore job;
	struct cluster target;
	struct faults none = {.count = 0}; /* form_check() has found them */
	int r = backup_line_load(c, &line);
	if (r == 0)
		r = c->prepared ? restore_from_point(c, &wish, &s, body) : restore_from_snapshot(c, &wish, &s, body);
	if (r < 0)
		return r;
	piece_read(c, &none, &wish.only);
	if (wish.only)
		piece_name(c, wish.only,
		           c->prepared ? ((const struct found_point *)c->prepared)->at_ms : wish.point.time_ms);
	if (name.n) {
		r = restore_target(c, group.n ? group : c->group.id, name, &target);
		wish.target = &target;
	}
	if (r == 0 && line.doc.rev == 0)
		r = -ENOENT;
	if (r == 0)
		r = restore_begin(c, &line, &wish, body, &job);
	if (r < 0)
		return r;
	event_cluster(c, json_field(line.body, "clusterName"));
	event_field(c, "restoreJobId", job.doc.id);
	piece_tell(c, wish.only);
	return resource_write(c, &resource_backup_restore, &job.doc);
}

/* --- looking */

static int restore_load(struct call *c, struct restore *ret_restore)
{
	struct restore job;
	struct backup_line line;
	struct str id = call_path(c, "restoreJobId");
	int r = restore_get(c->tx, c->arena, id.n ? id : call_path(c, "jobId"), &job);
	if (r == 0 && (!str_eq(json_field(job.plan, "groupId"), c->group.id) ||
	               !str_eq(json_field(job.plan, "clusterName"), backup_path_name(c))))
		r = -ENOENT;
	if (r == 0)
		r = backup_line_get(c->tx, c->arena, job.doc.parent, &line);
	if (r == 0 && json_flag(line.body, "flex") != backup_path_is_flex(c))
		r = -ENOENT;
	if (r == 0)
		*ret_restore = job;
	return r == -ENOENT ? backup_missing(c, &resource_backup_restore, id) : r;
}

int restore_find(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct restore job;
	struct job row;
	int result = restore_load(c, &job);
	if (result < 0)
		return result;
	if (!restore_is_over(&job) && !restore_is_download(&job) &&
	    tx_job_find(c->tx, c->arena, RESTORE_JOB, json_field(job.plan, "target"), &row) == 0)
		call_header(c, STR("x-steward-progress"), row.progress.n ? row.progress : STR("0% waiting"));
	else if (json_flag(job.body, "failed") && json_field(job.plan, "why").n)
		call_header(c, STR("x-steward-progress"),
		            arena_printf(c->arena, "failed: %.*s", STR_ARG(json_field(job.plan, "why"))));
	piece_tell(c, json_object_get(job.plan, "only"));
	*ret_doc = job.doc;
	return 0;
}

int restore_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct backup_line line;
	int r = backup_line_load(c, &line);
	if (r < 0)
		return r;
	*ret_list = arena_new_array(c->arena, struct segment, 1);
	**ret_list = (struct segment){.kind = RESTORE_KIND, .parent = line.doc.id};
	*ret_count = 1;
	return 0;
}

/* The links of a download are made anew each time, and stored nowhere. */
static int view(struct call *c, const struct doc *d, json_t *entity)
{
	struct restore job = restore_of(c->arena, d);
	const json_t *sets = json_object_get(job.plan, "sets");
	json_t *urls = json_keep(c->arena, json_array()), *parts = json_keep(c->arena, json_array());
	bool open = restore_is_download(&job) && !restore_is_over(&job) &&
	            json_number(job.plan, "until") > clock_now_ms() && download_is_shown(c, &job);
	for (size_t i = 0; open && i < json_array_size(sets); i++) {
		struct str url = STR_NONE;
		int r = download_link(c, &job, i, &url);
		if (r < 0)
			return r;
		json_add_str(urls, url);
		json_t *part = json_object();
		json_put_str(part, "downloadUrl", url);
		json_put_str(part, "replicaSetName", json_item(sets, i));
		json_array_append_new(parts, part);
	}
	if (json_array_size(urls) > 1)
		json_put(entity, "components", json_incref(parts));
	if (json_array_size(urls))
		json_put(entity, "deliveryUrl", json_incref(urls));
	return 0;
}

const struct resource_hooks restore_hooks = {.load = restore_find, .segments = restore_segments, .view = view};

/* --- ending */

int restores_cancel(struct call *c)
{
	struct restore job;
	int r = restore_load(c, &job);
	if (r < 0)
		return r;
	if (restore_is_over(&job))
		return call_fail_about(c, 409, "RESTORE_JOB_IS_OVER", job.doc.id, "The restore job %.*s is over.",
		                       STR_ARG(job.doc.id));
	if (restore_is_download(&job)) {
		json_put(job.body, "cancelled", json_true());
		return restore_save(c->tx, c->arena, &job);
	}
	json_put(job.plan, "cancel", json_true());
	struct job row = {
	        .kind = STR(RESTORE_JOB), .subject = json_field(job.plan, "target"), .due_ms = clock_now_ms()};
	r = restore_save(c->tx, c->arena, &job);
	/* It may wait for a time that is far away. A job that runs is told by its watch. */
	struct job there;
	if (r == 0 && tx_job_find(c->tx, c->arena, RESTORE_JOB, row.subject, &there) == 0 && !there.running)
		r = tx_job_ensure(c->tx, &row);
	return r;
}

int expire_save(struct tx *tx, struct job_run *r)
{
	struct restore job;
	int result = restore_get(tx, r->arena, json_field(doc_json(r->arena, r->job.args), "id"), &job);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_put(job.body, "expired", json_true());
	return restore_save(tx, r->arena, &job);
}

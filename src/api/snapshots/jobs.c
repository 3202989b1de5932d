/* What jobs do with snapshots: take one, copy it, forget it. Snapshots of a cluster are taken one after the other,
 * beside the cluster's other jobs: they may last for hours. */
#include "api/snapshots/jobs.h"

#include "api/kit/verbs.h"
#include "api/snapshots/adopt.h"
#include "api/snapshots/catalogue.h"
#include "api/snapshots/metering.h"
#include "api/snapshots/points.h"
#include "api/snapshots/protection.h"
#include "api/snapshots/take.h"
#include "api/snapshots/timetable.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>

/* One snapshot under way. */
struct taking {
	struct snapshot snapshot;
	struct backup_line line;
	struct cluster cluster;
	struct engine_snapshot made;
	int64_t units; /* of its position within its second; 0: not known */
	json_t *copies;
};

static struct str arg_of(struct job_run *r, const char *name)
{
	return json_field(doc_json(r->arena, r->job.args), name);
}

/* -ENOENT: the snapshot is gone, and so is the work. */
static int taking_load(struct tx *tx, struct job_run *r, struct taking *t)
{
	int result = snapshot_get(tx, r->arena, arg_of(r, "id"), &t->snapshot);
	return result < 0 ? result : backup_line_get(tx, r->arena, t->snapshot.doc.parent, &t->line);
}

/* The data is being made, or is about to become another. */
static bool must_wait(const struct cluster *cluster)
{
	return !json_number(cluster->plan, "applied") || json_object_get(cluster->plan, "restoring");
}

/* A restore that was asked for since the step looked comes first: it does not wait for what is queued. And what was
 * queued before one is of the data that came with it. */
static int begin_save(struct tx *tx, struct job_run *r)
{
	struct taking t;
	int result = taking_load(tx, r, &t);
	if (result == 0)
		result = cluster_get(tx, r->arena, t.line.doc.id, &t.cluster);
	if (result < 0 || must_wait(&t.cluster))
		return result == -ENOENT ? 0 : result;
	json_put_str(t.snapshot.plan, "incarnation", cluster_incarnation(&t.cluster));
	json_put_z(t.snapshot.body, "status", "inProgress");
	json_put(t.snapshot.plan, "began", json_integer(clock_now_ms()));
	result = snapshot_save(tx, r->arena, &t.snapshot);
	return result < 0 ? result
	                  : backup_event(tx, r->arena, "CPS_SNAPSHOT_STARTED", NULL, &t.line, "snapshotId",
	                                 t.snapshot.doc.id);
}

static int copies_ask(struct tx *tx, struct job_run *r, struct taking *t)
{
	json_t *copies;
	int result = schedule_copies(tx, r->arena, &t->line, &t->snapshot, &copies);
	bool more = false;
	for (size_t i = 0; result == 0 && i < json_array_size(copies); i++) {
		json_t *args = json_deep_copy(json_array_get(copies, i));
		json_put_str(args, "id", t->snapshot.doc.id);
		more |= backup_region_note(&t->line, json_field(args, "region"));
		result = backup_job_add(tx, r->arena, COPY_JOB, &t->line, args);
	}
	return result < 0 || !more ? result : backup_line_save(tx, r->arena, &t->line);
}

static void taken_fill(const struct taking *done, struct snapshot *s)
{
	const struct engine_snapshot *made = &done->made;
	json_put_z(s->body, "status", "completed");
	json_put(s->body, "storageSizeBytes", json_integer((json_int_t)made->bytes));
	json_put_z(s->body, "dbVersion", made->version);
	json_put(s->plan, "at", json_integer(made->at_ms));
	json_put(s->plan, "ended", json_integer(clock_now_ms()));
	json_put(s->plan, "bytes", json_integer((json_int_t)made->bytes));
	json_put(s->plan, "stored", json_integer((json_int_t)made->stored));
	json_put(s->plan, "sets", snapshot_sets_json(made));
	json_put(s->plan, "units", json_integer(done->units));
	json_put(s->plan, "standby", json_boolean(made->from_standby));
	json_put_z(s->plan, "dataKey", made->data_key);
}

static int taken_save(struct tx *tx, struct job_run *r)
{
	struct taking t;
	int result = taking_load(tx, r, &t);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	struct snapshot *s = &t.snapshot;
	taken_fill(r->save_ctx, s);
	json_put(t.line.body, "taken", json_integer(clock_now_ms()));
	json_object_del(t.line.body, "overdue");
	result = snapshot_save(tx, r->arena, s);
	if (result == 0)
		result = snapshot_meter_taken(tx, r->arena, &t.line, s);
	if (result == 0)
		result = backup_line_save(tx, r->arena, &t.line);
	if (result == 0) /* a drill can be made of it */
		result = schedule_look(tx, r->arena, &t.line, clock_now_ms());
	if (result == 0)
		result = copies_ask(tx, r, &t);
	for (size_t i = 0; result == 0 && i < snapshot_user_count; i++)
		if (snapshot_users[i]->taken)
			result = snapshot_users[i]->taken(tx, r->arena, &t.line, s);
	if (result < 0)
		return result;
	bool fallback = str_is(json_field(s->body, "snapshotType"), "fallback");
	return backup_event(tx, r->arena, fallback ? "CPS_SNAPSHOT_FALLBACK_SUCCESSFUL" : "CPS_SNAPSHOT_SUCCESSFUL",
	                    NULL, &t.line, "snapshotId", s->doc.id);
}

int snapshot_failed(struct tx *tx, struct job_run *r)
{
	struct taking t;
	int result = taking_load(tx, r, &t);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	struct snapshot *s = &t.snapshot;
	log_error("snapshot %.*s of cluster %.*s: %s", STR_ARG(s->doc.id), STR_ARG(s->doc.parent), r->why);
	json_put_z(s->body, "status", "failed");
	json_put_z(s->plan, "why", r->why);
	bool fallback = str_is(json_field(s->body, "snapshotType"), "fallback");
	result = snapshot_save(tx, r->arena, s);
	if (result == 0 && fallback)
		result = window_again(tx, r->arena, &t.line, clock_now_ms());
	/* A failed one is no reason to keep this job's row. */
	if (result == 0)
		result = tx_jobs_forget(tx, r->job.subject, 0);
	return result < 0
	               ? result
	               : backup_event(tx, r->arena, fallback ? "CPS_SNAPSHOT_FALLBACK_FAILED" : "CPS_SNAPSHOT_FAILED",
	                              "WARNING", &t.line, "snapshotId", s->doc.id);
}

static int give_up(struct job_run *r, const char *why)
{
	r->why = why;
	return JOB_FAILED;
}

/* Where in its second the only set was: the log tells. */
static int64_t units_find(const struct service *s, const struct engine_source *of, const struct engine_snapshot *made)
{
	struct engine_position at;
	uint64_t second;
	if (made->set_count != 1 ||
	    s->engine_ops->backup->position(s->engine_state, of, made->at_ms, &at, &second) < 0 ||
	    made->sets[0].lsn < second)
		return 0;
	return (int64_t)((made->sets[0].lsn - second) / POSITION_UNIT) + 1;
}

/* What the catalogue is about to say is put beside the snapshot. Where that fails, a sweep does it. */
static void taken_record(struct job_run *r, struct taking *t, const struct engine_source *to)
{
	const struct service *s = r->ctx;
	struct str text = STR_NONE;
	taken_fill(t, &t->snapshot);
	tx_begin_read(r->reader);
	int result = snapshot_record(r->reader, r->arena, &t->line, &t->snapshot, &text);
	tx_end_read(r->reader);
	tx_rest(r->reader);
	if (result == 0)
		result = s->engine_ops->backup->record(s->engine_state, to, text.p);
	if (result < 0)
		log_warn("snapshot %s: its record is not beside it yet (error %d)", to->snapshot_id, result);
}

int snapshot_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct engine_progress p = cluster_progress(r);
	struct taking *t = arena_new_of(r->arena, struct taking);
	tx_begin_read(r->reader);
	int result = taking_load(r->reader, r, t);
	int found = result == 0 ? cluster_get(r->reader, r->arena, t->line.doc.id, &t->cluster) : result;
	tx_end_read(r->reader);
	tx_rest(r->reader);
	if (result < 0)
		return result == -ENOENT ? JOB_DONE : result;
	if (found < 0 && found != -ENOENT)
		return found;
	if (found == -ENOENT || cluster_is(&t->cluster, "DELETING"))
		return give_up(r, "the cluster was deleted meanwhile");
	if (!s->engine_ops->backup)
		return give_up(r, "the engine in use takes no snapshots");
	if (snapshot_is(&t->snapshot, "queued") && must_wait(&t->cluster))
		return job_later(r, clock_now_ms() + LOOK_AGAIN_MS);
	if (snapshot_is(&t->snapshot, "queued")) {
		r->save = begin_save;
		return JOB_STEP;
	}
	struct engine_source to = snapshot_source(&t->snapshot);
	result = s->engine_ops->backup->snapshot(s->engine_state, &to, &p, r->arena, &t->made, &r->why);
	if (result == -EAGAIN && p.again_ms)
		return job_later(r, p.again_ms);
	if (result < 0)
		return result;
	t->units = units_find(s, &to, &t->made);
	taken_record(r, t, &to);
	r->save = taken_save;
	r->save_ctx = t;
	return JOB_DONE;
}

/* --- copies */

/* At most so many copies lie in the region: the oldest go. */
static int copies_trim(struct tx *tx, struct job_run *r, const struct taking *t, struct str region, json_int_t most)
{
	struct snapshot *list;
	size_t count = 0;
	json_int_t there = 0;
	int result = most ? snapshots_of(tx, r->arena, t->line.doc.id, &list, &count) : 0;
	for (size_t i = count; result == 0 && i-- > 0;) {
		int64_t floor = 0;
		if (!json_find(json_object_get(list[i].plan, "copies"), "region", region) || ++there <= most)
			continue;
		result = protection_copies(tx, r->arena, &list[i], &floor);
		if (result == 0 && clock_now_ms() >= list[i].doc.created_ms + floor)
			result = snapshot_drop_copy(tx, r->arena, &list[i], region);
	}
	return result;
}

static bool copy_has_begun(const struct taking *t, struct str region)
{
	const json_t *begun = json_object_get(t->snapshot.plan, "copying");
	for (size_t i = 0; i < json_array_size(begun); i++)
		if (str_eq(json_item(begun, i), region))
			return true;
	return false;
}

static int copy_begin_save(struct tx *tx, struct job_run *r)
{
	struct taking t;
	int result = taking_load(tx, r, &t);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_add_str(json_default(t.snapshot.plan, "copying", json_array()), arg_of(r, "region"));
	result = snapshot_save(tx, r->arena, &t.snapshot);
	return result < 0 ? result
	                  : backup_event(tx, r->arena, "CPS_COPY_SNAPSHOT_STARTED", NULL, &t.line, "snapshotId",
	                                 t.snapshot.doc.id);
}

/* It is over, one way or the other: another that is asked for begins anew. */
static void copy_end(struct taking *t, struct str region)
{
	json_t *begun = json_object_get(t->snapshot.plan, "copying");
	for (size_t i = json_array_size(begun); i-- > 0;)
		if (str_eq(json_item(begun, i), region))
			json_array_remove(begun, i);
}

static int copied_save(struct tx *tx, struct job_run *r)
{
	struct str region = arg_of(r, "region");
	struct taking t;
	int result = taking_load(tx, r, &t);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_t *copies = json_default(t.snapshot.plan, "copies", json_array()),
	       *shown = json_default(t.snapshot.body, "copyRegions", json_array()),
	       *args = doc_json(r->arena, r->job.args);
	if (!json_find(copies, "region", region)) {
		json_object_del(args, "id");
		json_array_append(copies, args);
		json_add_str(shown, region);
	}
	copy_end(&t, region);
	result = snapshot_save(tx, r->arena, &t.snapshot);
	if (result == 0)
		result = copies_trim(tx, r, &t, region, json_number(args, "most"));
	if (result == 0 && json_number(args, "expires"))
		result = schedule_look(tx, r->arena, &t.line, json_number(args, "expires"));
	return result < 0 ? result
	                  : backup_event(tx, r->arena, "CPS_COPY_SNAPSHOT_SUCCESSFUL", NULL, &t.line, "snapshotId",
	                                 t.snapshot.doc.id);
}

int copy_failed(struct tx *tx, struct job_run *r)
{
	struct taking t;
	int result = taking_load(tx, r, &t);
	if (result == 0)
		result = tx_jobs_forget(tx, r->job.subject, 0);
	if (result == 0) {
		copy_end(&t, arg_of(r, "region"));
		result = snapshot_save(tx, r->arena, &t.snapshot);
	}
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	return backup_event(tx, r->arena, "CPS_COPY_SNAPSHOT_FAILED", "WARNING", &t.line, "snapshotId",
	                    t.snapshot.doc.id);
}

int copy_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct engine_progress p = cluster_progress(r);
	struct taking t;
	tx_begin_read(r->reader);
	int result = taking_load(r->reader, r, &t);
	tx_end_read(r->reader);
	tx_rest(r->reader);
	if (result < 0)
		return result == -ENOENT ? JOB_DONE : result;
	if (!s->engine_ops->backup)
		return give_up(r, "the engine in use takes no snapshots");
	const char *region = arena_z(r->arena, arg_of(r, "region"));
	if (!copy_has_begun(&t, str_of(region))) {
		r->save = copy_begin_save;
		return JOB_STEP;
	}
	struct engine_source *from;
	size_t count = snapshot_sources(r->arena, &t.snapshot, &from);
	bool tried = false;
	for (size_t i = 0; i < count && (!tried || source_is_bad(result)); i++) {
		if (strcmp(from[i].region, region) == 0)
			continue;
		result = s->engine_ops->backup->copy(s->engine_state, &from[i], region, &p, &r->why);
		tried = true;
	}
	if (result == -EAGAIN && p.again_ms)
		return job_later(r, p.again_ms);
	if (result < 0)
		return result;
	r->save = copied_save;
	return JOB_DONE;
}

/* --- forgetting */

int forget_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct engine_source of = source_of(doc_json(r->arena, r->job.args));
	int result = s->engine_ops->backup ? s->engine_ops->backup->forget(s->engine_state, &of) : 0;
	return result < 0 && result != -ENOENT ? result : JOB_DONE;
}

/* The job of a restore. It runs as a job of the target, so that nothing else changes the target meanwhile, and on the
 * target's host. Whoever cancels it writes so into its document; a watch beside the engine's work looks there. */
#include "api/restores/job.h"

#include "api/kit/verbs.h"
#include "api/restores/piece.h"
#include "api/restores/restores.h"
#include "api/snapshots/snapshots.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define WATCH_MS 500
#define POINT_MS 30000 /* that a point may be gone before it is given up */

struct restoring {
	struct restore job;
	struct cluster target;
	struct cluster_want want;
	struct engine_access access;
	struct engine_source *from; /* the best first */
	size_t from_count;
	struct engine_point point;
	bool found, busy; /* the target; a snapshot of it is being taken */
};

static struct str arg_id(struct job_run *r)
{
	return json_field(doc_json(r->arena, r->job.args), "id");
}

/* --- the end of it, whichever */

static int event_write(struct tx *tx, struct job_run *r, const struct restore *job, const struct cluster *target,
                       const char *type, const char *severity)
{
	struct backup_line line;
	int result = target ? cluster_event(tx, r->arena, type, severity, target, "restoreJobId", job->doc.id) : 0;
	if (result < 0 || (target && str_eq(target->doc.parent, json_field(job->plan, "groupId"))))
		return result;
	result = backup_line_get(tx, r->arena, job->doc.parent, &line);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	return backup_event(tx, r->arena, type, severity, &line, "restoreJobId", job->doc.id);
}

/* The target goes on: with other data where it was restored, and as wanted by now in any case. */
static int target_end(struct tx *tx, struct job_run *r, struct str job_id, struct str incarnation,
                      struct cluster *target)
{
	if (!str_eq(json_field(target->plan, "restoring"), job_id))
		return 0;
	json_object_del(target->plan, "restoring");
	if (incarnation.n) {
		json_put_str(target->plan, "incarnation", incarnation);
		json_object_del(target->plan, "made"); /* it is other data, which the next look notes */
	}
	return cluster_is(target, "DELETING") ? cluster_save(tx, r->arena, target)
	                                      : cluster_change(tx, r->arena, target, NULL);
}

static int end_save(struct tx *tx, struct job_run *r, const char *how)
{
	struct restore job;
	struct cluster target;
	bool restored = strcmp(how, "finishedAt") == 0, whole;
	int result = restore_get(tx, r->arena, arg_id(r), &job),
	    found = cluster_get(tx, r->arena, r->job.subject, &target);
	if ((result < 0 && result != -ENOENT) || (found < 0 && found != -ENOENT))
		return result < 0 && result != -ENOENT ? result : found;
	if (result == -ENOENT) /* the source went, with all that was kept of it */
		return found == 0 ? target_end(tx, r, arg_id(r), STR_NONE, &target) : 0;
	whole = restored && !json_object_get(job.plan, "only");
	if (!restored)
		json_put(job.body, how, json_true());
	if (strcmp(how, "failed") == 0 && r->why)
		json_put_z(job.plan, "why", r->why);
	json_put_time(job.body, "finishedAt", clock_now_ms());
	result = restore_save(tx, r->arena, &job);
	if (result == 0 && found == 0)
		result = target_end(tx, r, job.doc.id, whole ? json_field(job.plan, "incarnation") : STR_NONE, &target);
	return result < 0 ? result
	                  : event_write(tx, r, &job, found == 0 ? &target : NULL,
	                                restored ? "CPS_RESTORE_SUCCESSFUL" : "CPS_RESTORE_FAILED",
	                                restored ? NULL : "WARNING");
}

static int restored_save(struct tx *tx, struct job_run *r)
{
	return end_save(tx, r, "finishedAt");
}

static int cancelled_save(struct tx *tx, struct job_run *r)
{
	return end_save(tx, r, "cancelled");
}

int restore_failed(struct tx *tx, struct job_run *r)
{
	log_error("restore %.*s into cluster %.*s: %s", STR_ARG(arg_id(r)), STR_ARG(r->job.subject), r->why);
	int result = tx_jobs_forget(tx, r->job.subject, 0);
	return result < 0 ? result : end_save(tx, r, "failed");
}

/* --- the watch */

struct watch {
	struct store *store;
	struct str id;
	_Atomic bool cancel;
	bool over;
	pthread_mutex_t lock;
	pthread_cond_t ended;
};

/* By somebody, or because the target is to go: that waits for this job. */
static bool is_cancelled(struct tx *reader, struct str id)
{
	struct arena *a = arena_new();
	struct restore job;
	struct cluster target;
	tx_begin_read(reader);
	bool cancelled = restore_get(reader, a, id, &job) == 0;
	if (cancelled && !json_flag(job.plan, "cancel"))
		cancelled = cluster_get(reader, a, json_field(job.plan, "target"), &target) == 0 &&
		            cluster_is(&target, "DELETING");
	tx_end_read(reader);
	tx_rest(reader);
	arena_free(a);
	return cancelled;
}

static void *watch_main(void *arg)
{
	struct watch *w = arg;
	struct tx *reader = store_reader(w->store);
	pthread_mutex_lock(&w->lock);
	while (reader && !w->over && !w->cancel) {
		int64_t until = clock_mono_us() + INT64_C(1000) * WATCH_MS;
		const struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
		pthread_cond_clockwait(&w->ended, &w->lock, CLOCK_MONOTONIC, &t);
		pthread_mutex_unlock(&w->lock);
		bool cancelled = is_cancelled(reader, w->id);
		pthread_mutex_lock(&w->lock);
		w->cancel = w->cancel || cancelled;
	}
	pthread_mutex_unlock(&w->lock);
	if (reader)
		store_reader_free(reader);
	return NULL;
}

/* --- the step */

static void point_read(struct arena *a, const json_t *plan, struct restoring *w)
{
	const json_t *point = json_object_get(plan, "point");
	struct str kind = json_field(point, "kind");
	w->point.kind = str_is(kind, "snapshot") ? POINT_SNAPSHOT : str_is(kind, "time") ? POINT_TIME : POINT_POSITION;
	w->point.time_ms = json_number(point, "time");
	str_copy(json_field(point, "set"), w->point.position.set, sizeof w->point.position.set);
	w->point.position.timeline = (unsigned)json_number(point, "timeline");
	w->point.position.lsn = strtoull(arena_z(a, json_field(point, "lsn")), NULL, 16);
}

static int busy_read(struct tx *tx, struct job_run *r, struct restoring *w)
{
	struct snapshot *list;
	size_t count = 0;
	int result = snapshots_of(tx, r->arena, w->target.doc.id, &list, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		w->busy |= snapshot_is(&list[i], "inProgress");
	return result;
}

static int restoring_load(struct tx *tx, struct job_run *r, struct restoring *w)
{
	*w = (struct restoring){.found = false};
	int result = restore_get(tx, r->arena, arg_id(r), &w->job);
	if (result < 0)
		return result;
	point_read(r->arena, w->job.plan, w);
	result = restore_sources(tx, r->arena, &w->job, &w->from, &w->from_count);
	if (result < 0)
		return result;
	result = cluster_get(tx, r->arena, r->job.subject, &w->target);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	w->found = !cluster_is(&w->target, "DELETING");
	if (w->found)
		result = cluster_want_load(r->ctx, tx, r->arena, &w->target, &w->want, &w->access);
	if (!json_object_get(w->job.plan, "only"))
		str_copy(json_field(w->job.plan, "incarnation"), w->want.engine.backup.incarnation,
		         sizeof w->want.engine.backup.incarnation);
	return result < 0 ? result : busy_read(tx, r, w);
}

static int engine_bring(struct job_run *r, struct restoring *w, const struct engine_source *from,
                        const struct engine_point *point, const _Atomic bool *cancel, struct engine_progress *p,
                        const char **ret_why)
{
	const struct service *s = r->ctx;
	const struct engine_backup_ops *ops = s->engine_ops->backup;
	const json_t *only = json_object_get(w->job.plan, "only");
	if (!only)
		return ops->restore(s->engine_state, from, point, &w->want.engine, &w->access, cancel, p, r->arena,
		                    ret_why);
	struct engine_piece piece = piece_of(r->arena, only, w->job.doc.id);
	return ops->restore_piece(s->engine_state, from, point, &piece, &w->want.engine, &w->access, cancel, p,
	                          r->arena, ret_why);
}

/* *ret_stopped: it was cut short because the service stops, and nobody has cancelled it. */
static int engine_restore(struct job_run *r, struct restoring *w, struct engine_progress *p, bool *ret_stopped)
{
	const struct service *s = r->ctx;
	struct watch watch = {.store = r->store, .id = w->job.doc.id, .cancel = json_flag(w->job.plan, "cancel")};
	pthread_t thread;
	pthread_mutex_init(&watch.lock, NULL);
	pthread_cond_init(&watch.ended, NULL);
	/* An engine that only waits comes back here; one that works has to be told. */
	bool watched = s->engine_ops->core->on_host && pthread_create(&thread, NULL, watch_main, &watch) == 0;
	int result = -ENOENT;
	struct engine_point point = w->point;
	for (size_t i = 0; i < w->from_count; i++) {
		const char *why = NULL;
		/* That nothing happened behind that position was found of the first: a copy may not have it yet. */
		if (i && point.kind == POINT_TIME)
			point.position.lsn = 0;
		int one = engine_bring(r, w, &w->from[i], &point, &watch.cancel, p, &why);
		/* What is told is of the first, unless it has only lost it. */
		if (i == 0 || !source_is_bad(one) || result == -ENOENT) {
			result = one;
			r->why = why;
		}
		if (!source_is_bad(one))
			break;
		log_warn("restore %.*s: from %s: %s", STR_ARG(w->job.doc.id), w->from[i].region, why ? why : "");
	}
	if (watched) {
		pthread_mutex_lock(&watch.lock);
		watch.over = true;
		pthread_cond_signal(&watch.ended);
		pthread_mutex_unlock(&watch.lock);
		pthread_join(thread, NULL);
	}
	pthread_mutex_destroy(&watch.lock);
	pthread_cond_destroy(&watch.ended);
	*ret_stopped = result == -ECANCELED && !watch.cancel && *job_stop(r);
	return result;
}

/* It was cancelled while the step ran: nobody waits for a time that is far away. */
static int later_save(struct tx *tx, struct job_run *r)
{
	struct restore job;
	struct job again = {.kind = STR(RESTORE_JOB), .subject = r->job.subject, .due_ms = clock_now_ms()};
	int result = restore_get(tx, r->arena, arg_id(r), &job);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	return json_flag(job.plan, "cancel") ? tx_job_ensure(tx, &again) : 0;
}

static int later(struct job_run *r, int64_t due_ms)
{
	r->save = later_save;
	return job_later(r, due_ms);
}

/* Since when the point is gone: the job may have waited for long before. */
static int gone_save(struct tx *tx, struct job_run *r)
{
	struct restore job;
	int result = restore_get(tx, r->arena, arg_id(r), &job);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_default(job.plan, "gone", json_integer(clock_now_ms()));
	result = restore_save(tx, r->arena, &job);
	return result < 0 ? result : later_save(tx, r);
}

int restore_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct engine_progress p = cluster_progress(r);
	struct restoring *w = arena_new_of(r->arena, struct restoring);
	tx_begin_read(r->reader);
	int result = restoring_load(r->reader, r, w);
	tx_end_read(r->reader);
	tx_rest(r->reader);
	if (result == -ENOENT) {
		r->save = cancelled_save;
		return JOB_DONE;
	}
	if (result < 0)
		return result;
	if (!w->found || !s->engine_ops->backup) {
		r->why = w->found ? "the engine in use restores nothing" : "the cluster was deleted meanwhile";
		return JOB_FAILED;
	}
	/* An earlier attempt may have changed the data already, and then it was restored: the engine knows. */
	bool cancelled = json_flag(w->job.plan, "cancel");
	bool is_made = json_number(w->target.plan, "applied") > 0;
	if (!is_made && cancelled) {
		r->save = cancelled_save;
		return JOB_DONE;
	}
	if ((w->busy && !cancelled) || !is_made)
		return later(r, clock_now_ms() + LOOK_AGAIN_MS);
	bool stopped;
	result = engine_restore(r, w, &p, &stopped);
	if (stopped)
		return result;
	if (cancelled && result < 0 && result != -EINPROGRESS)
		result = -ECANCELED;
	if (result == -EAGAIN && p.again_ms)
		return later(r, p.again_ms);
	/* It was there when it was asked for. While another primary begins, its log cannot be told for moments. */
	int64_t gone = json_number(w->job.plan, "gone");
	if (result == -ENOENT && w->point.kind != POINT_SNAPSHOT && (!gone || clock_now_ms() - gone < POINT_MS)) {
		result = later(r, clock_now_ms() + LOOK_AGAIN_MS);
		r->save = gone_save;
		return result;
	}
	/* Which no further attempt brings: it is gone, or its key was taken back, and only its owner can mend that. */
	if (result == -ENOENT || result == -EKEYREVOKED)
		return JOB_FAILED;
	/* Nor this one of a single database or table: it is not in there, or its place is taken. */
	if (result == -EINVAL && json_object_get(w->job.plan, "only"))
		return JOB_FAILED;
	/* The new data is in its place, whatever else is wrong: the cluster's own job goes on with it. */
	bool placed = result == -EINPROGRESS && r->job.attempt + 1 >= RESTORE_ATTEMPTS;
	if (result < 0 && result != -ECANCELED && !placed)
		return result;
	r->save = result == -ECANCELED ? cancelled_save : restored_save;
	return JOB_DONE;
}

static const struct job_kind kinds[] = {
        {.name = RESTORE_JOB,
         .step = restore_step,
         .failed = restore_failed,
         .attempts = RESTORE_ATTEMPTS,
         .lasts = JOB_IS_LONG,
         .moves = true},
        {.name = EXPIRE_JOB, .save = expire_save},
};
const struct job_kinds restores_jobs = JOB_KINDS(kinds);

/* Drills: now and then a snapshot of each cluster is restored into a server that is thrown away, and is read and
 * checked there, so that whether it comes back is known before it is needed. One at a time on each host, beside
 * everything else. */
#include "api/snapshots/drills.h"

#include "api/snapshots/catalogue.h"
#include "api/snapshots/jobs.h"
#include "api/snapshots/snapshot.h"
#include "api/snapshots/times.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#define AGAIN_MS BACKUP_DAY_MS  /* after one that failed */
#define AWAY_MS (3600 * 1000LL) /* that a repository may be away before that is a failure */
#define AWAY_AGAIN_MS (60 * 1000LL)
#define BUSY_MS (60 * 1000LL)          /* while another is made */
#define PENDING_MS (7 * BACKUP_DAY_MS) /* an operator does not wait longer for one that was asked for before */

/* --- asking for one */

static bool was_proven(const struct snapshot *s)
{
	return json_number(s->plan, "proven") > 0;
}

/* The newest that never was; where all were, the one that was longest ago. */
static const struct snapshot *drill_pick(const struct snapshot *list, size_t count)
{
	const struct snapshot *found = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct snapshot *s = &list[i];
		if (!snapshot_is(s, "completed"))
			continue;
		bool better = !found || (was_proven(found) && !was_proven(s));
		if (found && !was_proven(found) && !was_proven(s))
			better = json_number(s->plan, "at") >= json_number(found->plan, "at");
		else if (found && was_proven(found) && was_proven(s))
			better = json_number(s->plan, "proven") < json_number(found->plan, "proven");
		found = better ? s : found;
	}
	return found;
}

int drill_ask(struct tx *tx, struct arena *a, struct backup_line *line, const struct snapshot *s)
{
	struct str host = json_field(line->body, "host"), id = s->doc.id, cluster = line->doc.id;
	json_t *drill = json_default(line->body, "drill", json_object()),
	       *args = json_pack("{s:s%, s:s%}", "id", id.p, id.n, "cluster", cluster.p, cluster.n);
	struct job job = {.kind = STR(DRILL_JOB),
	                  .subject = arena_printf(a, "backup-drill/%.*s", STR_ARG(cluster)),
	                  .host = host,
	                  .args = json_text(a, json_keep(a, args)),
	                  .due_ms = clock_now_ms()};
	json_put(drill, "asked", json_integer(clock_now_ms()));
	json_put_str(drill, "snapshot", id);
	json_put(drill, "pending", json_true());
	json_object_del(drill, "away");
	/* One that still waits, for a host that may be gone, is not wanted any more. */
	int r = tx_jobs_cancel(tx, DRILL_JOB, job.subject);
	r = r < 0 ? r : tx_job_add(tx, &job);
	return r < 0 ? r : backup_line_save(tx, a, line);
}

int drill_look(struct tx *tx, struct arena *a, struct backup_line *line, unsigned days, int64_t now, int64_t *next)
{
	const json_t *last = json_object_get(line->body, "drill");
	int64_t period = days * BACKUP_DAY_MS, asked = json_number(last, "asked");
	struct snapshot *list;
	size_t count = 0;
	if (!days)
		return 0;
	/* A host that is away for good does not end the drills of what it had. */
	if (json_flag(last, "pending") && now < asked + 2 * period)
		return 0;
	int64_t due = drill_next(line->doc.id, asked ? asked : line->doc.created_ms, period);
	if (json_flag(last, "failed") && asked + AGAIN_MS < due)
		due = asked + AGAIN_MS;
	if (due > now) {
		*next = due < *next ? due : *next;
		return 0;
	}
	/* Where there is none, the next one that is complete has this looked at. */
	int r = snapshots_of(tx, a, line->doc.id, &list, &count);
	const struct snapshot *picked = r == 0 ? drill_pick(list, count) : NULL;
	return picked ? drill_ask(tx, a, line, picked) : r;
}

/* --- for the operator */

struct search {
	struct arena *arena;
	struct str name, id;
	unsigned found;
};

static int visit_line(struct tx *tx, void *ctx, const struct doc *d)
{
	struct search *w = ctx;
	if (!str_eq(json_field(doc_json(w->arena, d->body), "clusterName"), w->name))
		return 0;
	w->id = arena_dup(w->arena, d->id);
	w->found++;
	return 0;
}

static const struct snapshot *snapshot_pick(const struct snapshot *list, size_t count, struct str id)
{
	const struct snapshot *found = NULL;
	for (size_t i = 0; i < count; i++)
		if (snapshot_is(&list[i], "completed") && (!id.n || str_eq(list[i].doc.id, id)))
			found = &list[i];
	return found;
}

int drill_request(struct tx *tx, struct arena *a, struct str cluster, struct str snapshot_id,
                  struct drill_asked *ret_asked)
{
	struct search w = {.arena = a, .name = cluster};
	struct backup_line line;
	struct snapshot *list;
	size_t count = 0;
	int r = backup_line_get(tx, a, cluster, &line);
	if (r == -ENOENT) {
		r = tx_walk_all(tx, LINE_KIND, visit_line, &w);
		if (r == 0)
			r = w.found == 1 ? backup_line_get(tx, a, w.id, &line) : w.found ? -EEXIST : -ENOENT;
	}
	if (r == 0)
		r = snapshots_of(tx, a, line.doc.id, &list, &count);
	if (r < 0)
		return r;
	const struct snapshot *picked = snapshot_pick(list, count, snapshot_id);
	if (!picked)
		return -ENODATA;
	const json_t *last = json_object_get(line.body, "drill");
	if (json_flag(last, "pending") && clock_now_ms() < json_number(last, "asked") + PENDING_MS)
		return -EALREADY;
	*ret_asked = (struct drill_asked){line.doc.id, picked->doc.id};
	return drill_ask(tx, a, &line, picked);
}

/* --- the end of it */

struct drilling {
	struct snapshot snapshot;
	struct backup_line line;
	struct engine_proof proof;
	bool found; /* the snapshot */
};

static struct str arg_of(struct job_run *r, const char *name)
{
	return json_field(doc_json(r->arena, r->job.args), name);
}

/* -ENOENT: nothing is left of the cluster's backups. */
static int drilling_load(struct tx *tx, struct job_run *r, struct drilling *d)
{
	*d = (struct drilling){.found = false};
	int result = backup_line_get(tx, r->arena, arg_of(r, "cluster"), &d->line);
	if (result < 0)
		return result;
	result = snapshot_get(tx, r->arena, arg_of(r, "id"), &d->snapshot);
	d->found = result == 0;
	return result == -ENOENT ? 0 : result;
}

static int line_end(struct tx *tx, struct job_run *r, struct drilling *d)
{
	int result = backup_line_save(tx, r->arena, &d->line);
	return result < 0 ? result : schedule_look(tx, r->arena, &d->line, clock_now_ms());
}

/* An event when it begins to fail, and when it is over. */
static int outcome_save(struct tx *tx, struct job_run *r, struct drilling *d, bool failed)
{
	json_t *drill = json_default(d->line.body, "drill", json_object());
	bool before = json_flag(drill, "failed");
	json_put(drill, "pending", json_false());
	json_put(drill, "failed", json_boolean(failed));
	json_object_del(drill, "away");
	int result = snapshot_save(tx, r->arena, &d->snapshot);
	if (result == 0)
		result = line_end(tx, r, d);
	if (result < 0 || failed == before)
		return result;
	return backup_event(tx, r->arena, failed ? "CPS_RESTORE_FAILED" : "CPS_RESTORE_SUCCESSFUL",
	                    failed ? "WARNING" : NULL, &d->line, "snapshotId", d->snapshot.doc.id);
}

/* The snapshot went meanwhile, which tells nothing about it. */
static int gone_save(struct tx *tx, struct job_run *r)
{
	struct drilling d;
	int result = drilling_load(tx, r, &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_put(json_default(d.line.body, "drill", json_object()), "pending", json_false());
	return line_end(tx, r, &d);
}

static int proven_save(struct tx *tx, struct job_run *r)
{
	const struct drilling *done = r->save_ctx;
	struct drilling d;
	int64_t now = clock_now_ms();
	int result = drilling_load(tx, r, &d);
	if (result < 0 || !d.found)
		return result < 0 && result != -ENOENT ? result : gone_save(tx, r);
	json_put(d.snapshot.plan, "proven", json_integer(now));
	json_put(d.snapshot.plan, "proof",
	         json_pack("{s:I, s:I, s:I}", "files", (json_int_t)done->proof.files, "bytes",
	                   (json_int_t)done->proof.bytes, "relations", (json_int_t)done->proof.relations));
	json_object_del(d.snapshot.plan, "unproven");
	json_put(d.line.body, "proven", json_integer(now));
	return outcome_save(tx, r, &d, false);
}

int drill_failed(struct tx *tx, struct job_run *r)
{
	const char *why = r->why ? r->why : "it could not be restored";
	struct drilling d;
	int result = drilling_load(tx, r, &d);
	if (result == 0)
		result = tx_jobs_forget(tx, r->job.subject, 0);
	if (result < 0 || !d.found)
		return result < 0 && result != -ENOENT ? result : gone_save(tx, r);
	log_error("drill: snapshot %.*s of cluster %.*s was not proven: %s", STR_ARG(d.snapshot.doc.id),
	          STR_ARG(d.snapshot.doc.parent), why);
	json_t *unproven = json_pack("{s:I, s:s}", "at", (json_int_t)clock_now_ms(), "why", why);
	if (!unproven) /* names in a database may be in another encoding, or were cut */
		unproven = json_pack("{s:I, s:s}", "at", (json_int_t)clock_now_ms(), "why", "the log tells why");
	json_put(d.snapshot.plan, "unproven", unproven);
	return outcome_save(tx, r, &d, true);
}

/* --- the step */

/* Since when. */
static int away_save(struct tx *tx, struct job_run *r)
{
	struct drilling d;
	int result = drilling_load(tx, r, &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_default(json_default(d.line.body, "drill", json_object()), "away", json_integer(clock_now_ms()));
	return backup_line_save(tx, r->arena, &d.line);
}

/* That the repository cannot be reached tells nothing about what lies there, for a while. */
static bool is_away(const struct drilling *d, int result)
{
	int64_t since = json_number(json_object_get(d->line.body, "drill"), "away");
	return (result == -EHOSTUNREACH || result == -ETIMEDOUT) && (!since || clock_now_ms() < since + AWAY_MS);
}

int drill_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct engine_progress p = cluster_progress(r);
	struct drilling *d = arena_new_of(r->arena, struct drilling);
	tx_begin_read(r->reader);
	int result = drilling_load(r->reader, r, d);
	job_read_end(r);
	if (result < 0 && result != -ENOENT)
		return result;
	r->save = gone_save;
	if (result == -ENOENT || !d->found || !snapshot_is(&d->snapshot, "completed") || !s->engine_ops->backup)
		return JOB_DONE;
	r->save = NULL;
	struct engine_source of = snapshot_source(&d->snapshot);
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* at a time on this host */
	if (pthread_mutex_trylock(&one) != 0)
		return job_later(r, clock_now_ms() + BUSY_MS);
	result = s->engine_ops->backup->prove(s->engine_state, &of, true, &p, r->arena, &d->proof, &r->why);
	pthread_mutex_unlock(&one);
	if (result == -EAGAIN && p.again_ms)
		return job_later(r, p.again_ms);
	if (is_away(d, result)) {
		log_warn("drill: snapshot %.*s: %s; it is tried again", STR_ARG(d->snapshot.doc.id),
		         r->why ? r->why : strerror(-result));
		r->save = away_save;
		return job_later(r, clock_now_ms() + AWAY_AGAIN_MS);
	}
	if (result == -EBADMSG) /* it will not be whole the next time */
		return JOB_FAILED;
	if (result < 0)
		return result;
	r->save = proven_save;
	r->save_ctx = d;
	return JOB_DONE;
}

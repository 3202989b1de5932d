/* The jobs of online archives, on the host that has the cluster.
 *
 * Each archive has one job, which does what is due and asks for itself anew: whoever changes the archive only makes it
 * due sooner. A step does one thing, so that archives do not wait for each other: it looks whether the table is (still)
 * one that rows can leave, moves one batch, ends files, or sweeps. A batch is followed by a pause of half its own
 * length, so that a table whose rows leave by the million has time for its own work.
 *
 * A pass looks through the table once, from the first page to the last, in as many steps as it takes. It begins with
 * its schedule's window; one that the window is too short for goes on in the next.
 *
 * When an archive goes, its files stay until no backup can bring its manifest back. That is another job, which needs no
 * document: the archive is gone, and perhaps its cluster. */
#include "api/archives/work.h"

#include "api/archives/metering.h"
#include "api/archives/queries.h"
#include "api/archives/schedule.h"
#include "api/kit/lifecycle.h"
#include "api/kit/verbs.h"
#include "api/snapshots/snapshots.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>

#define REMAINS_JOB "online_archive_remains"
#define HOUR_MS INT64_C(3600000)
#define DAY_MS INT64_C(86400000)
#define REST_MS HOUR_MS  /* between two passes of a schedule without windows */
#define AWAY_MS 10000    /* the databases do not answer now */
#define PAUSED_MS 60000  /* the cluster is paused */
#define ORPHAN_MS 600000 /* until it is looked again whether the table is back */
#define KEY_MS 60000     /* the project's key is out of reach */
#define REMAINS_MS HOUR_MS

/* One step, and what it leaves to be saved. */
struct work {
	struct cluster cluster;
	struct archive archive;
	struct engine_lake want;
	int64_t now_ms, due_ms;
	json_int_t generation;
	json_t *changes;            /* of the run's document; null takes a field away */
	const char *word;           /* of the lifecycle; NULL: it stays in its state */
	struct archive_query query; /* kind NULL: nothing for the log */
};

static const struct engine_lake_ops *lake_of(const struct job_run *r)
{
	return ((const struct service *)r->ctx)->engine_ops->lake;
}

static struct engine *engine_of(const struct job_run *r)
{
	return ((const struct service *)r->ctx)->engine_state;
}

static struct str archive_id_of(const struct job_run *r)
{
	struct str kind, id;
	str_cut(r->job.subject, '/', &kind, &id);
	return id;
}

/* The earliest moment that the cluster can be brought back to; INT64_MAX: it can to none. Any window of its log begins
 * with a snapshot. */
static int oldest_find(struct job_run *r, struct str cluster_id, int64_t *ret_ms)
{
	struct snapshot *list;
	size_t count = 0;
	int64_t oldest = INT64_MAX;
	tx_begin_read(r->reader);
	int result = snapshots_of(r->reader, r->arena, cluster_id, &list, &count);
	job_read_end(r);
	for (size_t i = 0; result == 0 && i < count; i++) {
		int64_t at = json_number(list[i].plan, "at");
		at = at ? at : list[i].doc.created_ms;
		if (!snapshot_is(&list[i], "failed") && at < oldest)
			oldest = at;
	}
	if (result == 0)
		*ret_ms = oldest;
	return result;
}

/* --- loading and saving */

static int work_load(struct job_run *r, struct work *w)
{
	struct arena *a = r->arena;
	tx_begin_read(r->reader);
	int result = archive_get(r->reader, a, archive_id_of(r), &w->archive);
	if (result == 0)
		result = cluster_get(r->reader, a, w->archive.doc.parent, &w->cluster);
	job_read_end(r);
	if (result < 0)
		return result;
	const json_t *pass = json_object_get(w->archive.run, "pass");
	w->now_ms = clock_now_ms();
	w->due_ms = w->now_ms;
	w->generation = json_number(w->archive.run, "generation");
	w->changes = json_new(a);
	/* All of a pass has the age that its first batch had. */
	archive_want_make(a, w->cluster.doc.id, json_field(w->archive.run, "region"), w->archive.body,
	                  pass ? json_number(pass, "from") : w->now_ms, &w->want);
	return 0;
}

/* What a pass has reached counts for nothing where something else is wanted by now. */
static void changes_merge(const struct work *w, struct archive *now)
{
	if (json_number(now->run, "generation") != w->generation) {
		json_object_del(w->changes, "pass");
		json_object_del(w->changes, "passed");
	}
	/* Nor does what has come back, where that was ended meanwhile. */
	if (json_number(json_object_get(now->run, "bring"), "from") !=
	    json_number(json_object_get(w->archive.run, "bring"), "from"))
		json_object_del(w->changes, "bring");
	/* A place is a number of its own: what is left out was not changed. */
	json_merge(now->run, w->changes);
}

static int work_save(struct tx *tx, struct job_run *r)
{
	const struct work *w = r->save_ctx;
	struct archive now;
	int result = archive_get(tx, r->arena, w->archive.doc.id, &now);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	changes_merge(w, &now);
	result = archive_run_save(tx, r->arena, &now);
	if (result == 0 && !json_object_get(now.run, "pass"))
		result = archive_metered(tx, r->arena, &w->cluster, &now);
	if (result == 0 && w->query.kind)
		result = archive_query_note(tx, r->arena, &now, &w->query);
	if (result == 0 && w->word && lifecycle_allows(now.doc.kind, now.body, w->word))
		result = lifecycle_move(tx, r->arena, &now.doc, w->word);
	if (result < 0 || (w->word && strcmp(w->word, "END") == 0))
		return result;
	return archive_work_ask(tx, r->arena, &w->cluster, now.doc.id, w->due_ms);
}

static void reason_put(struct work *w, const char *why)
{
	json_put(w->changes, "reason", why ? json_string(why) : json_null());
}

static void number_put(json_t *o, const char *name, uint64_t number)
{
	json_put(o, name, json_integer((json_int_t)number));
}

/* --- looking */

/* What a failed question or move means for the archive. Negative: it is tried again, as failed jobs are. */
static int fault_take(struct job_run *r, struct work *w, int result, const char *why)
{
	why = why ? why : "the databases do not answer";
	if (result == -ENOENT || result == -EINVAL) {
		log_info("online archive %.*s: %s", STR_ARG(w->archive.doc.id), why);
		w->word = "ORPHAN";
		json_put(w->changes, "pass", json_null());
		w->due_ms = w->now_ms + ORPHAN_MS;
	} else if (result == -EAGAIN) {
		w->due_ms = w->now_ms + AWAY_MS;
	} else if (result == -EKEYREVOKED) {
		w->due_ms = w->now_ms + KEY_MS;
	} else {
		r->why = why;
		return result;
	}
	reason_put(w, why);
	return 0;
}

/* Whether rows can leave the table. */
static int table_look(struct job_run *r, struct work *w)
{
	const char *field = "", *why = NULL;
	int result = lake_of(r)->check(engine_of(r), &w->want, r->arena, NULL, &field, &why);
	if (result < 0)
		return fault_take(r, w, result, why);
	w->word = "BEGIN";
	reason_put(w, NULL);
	return 0;
}

/* --- moving */

/* When the next step of a pass is due; its window begins at *ret_from_ms. */
static int64_t pass_due(const struct work *w, int64_t *ret_from_ms)
{
	const json_t *schedule = json_object_get(w->archive.body, "schedule");
	bool under_way = json_object_get(w->archive.run, "pass");
	int64_t passed = json_number(w->archive.run, "passed");
	struct archive_window window;
	*ret_from_ms = w->now_ms;
	if (!archive_schedule_window(schedule, w->now_ms, &window)) {
		int64_t due = passed + REST_MS;
		return under_way || !passed || due < w->now_ms ? w->now_ms : due;
	}
	if (!under_way && passed && passed >= window.from_ms &&
	    !archive_schedule_window(schedule, window.to_ms, &window))
		return w->now_ms + DAY_MS;
	*ret_from_ms = window.from_ms;
	return window.from_ms > w->now_ms ? window.from_ms : w->now_ms;
}

static json_t *pass_make(const struct work *w, uint64_t place, const struct engine_lake_moved *moved)
{
	const json_t *before = json_object_get(w->archive.run, "pass");
	json_t *pass = json_object();
	json_put(pass, "from", json_integer(before ? json_number(before, "from") : w->now_ms));
	number_put(pass, "place", place);
	number_put(pass, "files", (uint64_t)json_number(before, "files") + (moved->rows > 0));
	number_put(pass, "rows", (uint64_t)json_number(before, "rows") + moved->rows);
	number_put(pass, "bytes", (uint64_t)json_number(before, "bytes") + moved->bytes);
	return pass;
}

static void counts_add(struct work *w, const struct engine_lake_moved *moved)
{
	const json_t *run = w->archive.run;
	number_put(w->changes, "files", (uint64_t)json_number(run, "files") + (moved->rows > 0));
	number_put(w->changes, "rows", (uint64_t)json_number(run, "rows") + moved->rows);
	number_put(w->changes, "bytes", (uint64_t)json_number(run, "bytes") + moved->bytes);
}

/* A pass that has found nothing leaves no line in the log. */
static void pass_end(struct work *w, const json_t *pass, int64_t window_ms)
{
	if (json_number(pass, "rows"))
		w->query = (struct archive_query){.kind = "ARCHIVE",
		                                  .files = (uint64_t)json_number(pass, "files"),
		                                  .rows = (uint64_t)json_number(pass, "rows"),
		                                  .bytes = (uint64_t)json_number(pass, "bytes"),
		                                  .from_ms = json_number(pass, "from")};
	json_put(w->changes, "pass", json_null());
	json_put(w->changes, "passed", json_integer(window_ms));
}

static int batch_move(struct job_run *r, struct work *w, int64_t window_ms)
{
	uint64_t place = (uint64_t)json_number(json_object_get(w->archive.run, "pass"), "place");
	struct engine_lake_moved moved;
	const char *why = NULL;
	int64_t began_us = clock_mono_us();
	int result = lake_of(r)->move(engine_of(r), &w->want, NULL, job_stop(r), r->arena, &place, &moved, &why);
	if (result < 0)
		return fault_take(r, w, result, why);
	json_t *pass = json_keep(r->arena, pass_make(w, place, &moved));
	reason_put(w, NULL);
	counts_add(w, &moved);
	w->due_ms = w->now_ms + (clock_mono_us() - began_us) / 2000;
	if (moved.over)
		pass_end(w, pass, window_ms);
	else
		json_put(w->changes, "pass", json_incref(pass));
	return 0;
}

/* --- ending and sweeping */

static void held_put(struct work *w, const struct engine_lake_held *held)
{
	number_put(w->changes, "files", held->files);
	number_put(w->changes, "rows", held->rows);
	number_put(w->changes, "bytes", held->bytes);
}

static int files_expire(struct job_run *r, struct work *w, int64_t before_ms, const char *kind)
{
	struct engine_lake_held gone;
	int result = lake_of(r)->expire(engine_of(r), &w->want, before_ms, r->arena, &gone, &r->why);
	if (result == 0 && gone.files)
		w->query = (struct archive_query){.kind = kind,
		                                  .archived_only = true,
		                                  .files = gone.files,
		                                  .rows = gone.rows,
		                                  .bytes = gone.bytes,
		                                  .from_ms = w->now_ms};
	return result;
}

/* Once a day: what is too old ends, and what nobody names goes. What cannot be done now is tried again soon. */
static int archive_care(struct job_run *r, struct work *w)
{
	const json_t *rule = json_object_get(w->archive.body, "dataExpirationRule");
	struct engine_lake_held held;
	struct engine_lake_swept swept;
	int64_t oldest = 0;
	int result = 0;
	if (rule)
		result = files_expire(r, w, w->now_ms - json_number(rule, "expireAfterDays") * DAY_MS, "EXPIRE");
	if (result == 0)
		result = oldest_find(r, w->cluster.doc.id, &oldest);
	if (result == 0)
		result = lake_of(r)->sweep(engine_of(r), &w->want, oldest, r->arena, &swept, &r->why);
	if (result == 0)
		result = lake_of(r)->held(engine_of(r), &w->want, r->arena, &held);
	if (result == 0)
		held_put(w, &held);
	/* A database that was dropped has neither rows nor a manifest: nothing is swept until it is back. */
	if (result == 0 || result == -ENOENT)
		json_put(w->changes, "cared", json_integer(w->now_ms));
	else if (result == -EAGAIN)
		w->due_ms = w->now_ms + AWAY_MS;
	else
		return result;
	return 0;
}

/* The manifest is told to forget all files; what is left of them is the other job's. */
static int archive_end(struct job_run *r, struct work *w)
{
	int result = files_expire(r, w, INT64_MAX, "DELETE");
	if (result == -EAGAIN) {
		w->due_ms = w->now_ms + AWAY_MS;
		return 0;
	}
	if (result < 0 && result != -ENOENT)
		return result;
	w->word = "END";
	return 0;
}

/* --- rows that come back */

static json_t *bring_make(const json_t *before, uint64_t left, const struct engine_lake_moved *moved)
{
	json_t *bring = json_deep_copy(before);
	number_put(bring, "skip", (uint64_t)json_number(before, "skip") + (moved->rows == 0));
	number_put(bring, "left", left);
	number_put(bring, "files", (uint64_t)json_number(before, "files") + (moved->rows > 0));
	number_put(bring, "rows", (uint64_t)json_number(before, "rows") + moved->rows);
	number_put(bring, "bytes", (uint64_t)json_number(before, "bytes") + moved->bytes);
	return bring;
}

static void bring_end(struct work *w, const json_t *bring)
{
	w->query = (struct archive_query){.kind = "BRING_BACK",
	                                  .files = (uint64_t)json_number(bring, "files"),
	                                  .rows = (uint64_t)json_number(bring, "rows"),
	                                  .bytes = (uint64_t)json_number(bring, "bytes"),
	                                  .from_ms = json_number(bring, "from")};
	json_put(w->changes, "bring", json_null());
}

/* What ends it for good, and what is tried again. */
static int bring_fault(struct job_run *r, struct work *w, int result, const char *why)
{
	why = why ? why : "the databases do not answer";
	if (result == -ENOENT || result == -EINVAL || result == -EEXIST || result == -EBADMSG) {
		log_info("online archive %.*s: rows do not come back: %s", STR_ARG(w->archive.doc.id), why);
		bring_end(w, json_object_get(w->archive.run, "bring"));
	} else if (result == -EAGAIN || result == -EKEYREVOKED) {
		w->due_ms = w->now_ms + (result == -EAGAIN ? AWAY_MS : KEY_MS);
	} else {
		r->why = why;
		return result;
	}
	reason_put(w, why);
	return 0;
}

/* One file. Those whose rows stay are passed over; what stays of others is behind the last, and is not looked at. */
static int file_bring(struct job_run *r, struct work *w, const struct engine_lake_held *held)
{
	const json_t *bring = json_object_get(w->archive.run, "bring"), *left = json_object_get(bring, "left");
	uint64_t files = left ? (uint64_t)json_integer_value(left) : held->files;
	size_t skip = (size_t)json_number(bring, "skip"), count = 0;
	struct engine_lake_file *list = NULL;
	struct engine_lake_moved moved = {.rows = 0};
	const char *why = NULL, *query = json_string_value(json_object_get(bring, "query"));
	int result = files ? lake_of(r)->files(engine_of(r), &w->want, skip, 1, r->arena, &list, &count) : 0;
	if (result == 0 && count)
		result = lake_of(r)->bring(engine_of(r), &w->want, query, list[0].id, job_stop(r), r->arena, &moved,
		                           &why);
	if (result < 0)
		return bring_fault(r, w, result, why);
	reason_put(w, NULL);
	if (!count) {
		bring_end(w, bring);
		return 0;
	}
	json_t *now = json_keep(r->arena, bring_make(bring, files - 1, &moved));
	if (moved.over || files == 1)
		bring_end(w, now);
	else
		json_put(w->changes, "bring", json_incref(now));
	return 0;
}

static int rows_bring(struct job_run *r, struct work *w)
{
	struct engine_lake_held held;
	int64_t began_us = clock_mono_us();
	int result = lake_of(r)->held(engine_of(r), &w->want, r->arena, &held);
	result = result < 0 ? bring_fault(r, w, result, NULL) : file_bring(r, w, &held);
	if (result == 0 && w->due_ms == w->now_ms)
		w->due_ms += (clock_mono_us() - began_us) / 2000;
	/* What is left is counted anew, not reckoned: a file that was cut in two is smaller than its part. */
	if (result == 0 && lake_of(r)->held(engine_of(r), &w->want, r->arena, &held) == 0)
		held_put(w, &held);
	return result;
}

/* --- the step */

static int rows_move(struct job_run *r, struct work *w)
{
	int64_t window_ms, due = pass_due(w, &window_ms), care = json_number(w->archive.run, "cared") + DAY_MS;
	if (due <= w->now_ms)
		return batch_move(r, w, window_ms);
	w->due_ms = care < due ? care : due;
	return 0;
}

static int state_work(struct job_run *r, struct work *w)
{
	if (archive_is(&w->archive, "DELETED"))
		return archive_end(r, w);
	if (archive_is(&w->archive, "PAUSING")) {
		w->word = "PAUSED";
		return 0;
	}
	if (archive_is(&w->archive, "PENDING"))
		return table_look(r, w);
	if (w->now_ms - json_number(w->archive.run, "cared") >= DAY_MS)
		return archive_care(r, w);
	if (archive_is(&w->archive, "ORPHANED"))
		return table_look(r, w);
	if (archive_is(&w->archive, "ACTIVE"))
		return rows_move(r, w);
	if (json_object_get(w->archive.run, "bring") && lake_of(r)->bring)
		return rows_bring(r, w);
	w->due_ms = json_number(w->archive.run, "cared") + DAY_MS;
	return 0;
}

static int work_step(struct job_run *r)
{
	struct work *w = arena_calloc(r->arena, 1, sizeof *w);
	int result = work_load(r, w);
	if (result == -ENOENT || (result == 0 && (!lake_of(r) || cluster_is(&w->cluster, "DELETING"))))
		return JOB_DONE;
	if (result < 0)
		return result;
	if (json_flag(w->cluster.body, "paused"))
		w->due_ms = w->now_ms + PAUSED_MS;
	else
		result = state_work(r, w);
	if (result < 0)
		return result;
	r->save = work_save;
	r->save_ctx = w;
	return JOB_DONE;
}

/* --- what is left of an archive that is gone */

int archive_remains_ask(struct tx *tx, struct arena *a, const struct archive *x)
{
	static const char *const names[] = {"_id", "groupId", "dbName", "collName"};
	struct cluster cluster;
	json_t *args = json_new(a);
	int r = cluster_get(tx, a, x->doc.parent, &cluster);
	if (r < 0 && r != -ENOENT)
		return r;
	json_copy_fields(args, x->body, names, sizeof names / sizeof *names);
	json_put_str(args, "cluster", x->doc.parent);
	json_put_str(args, "region", json_field(x->run, "region"));
	struct job job = {.kind = STR(REMAINS_JOB),
	                  .subject = arena_printf(a, "archive_remains/%.*s", STR_ARG(x->doc.id)),
	                  .host = r == 0 ? cluster_host(&cluster) : STR_NONE,
	                  .args = json_text(a, args),
	                  .tenant = json_field(x->body, "groupId"),
	                  .due_ms = clock_now_ms()};
	return tx_job_add(tx, &job);
}

/* Without the database there is no manifest: all goes when no backup can bring it back. */
static int remains_erase(struct job_run *r, const struct engine_lake *want, int64_t oldest_ms)
{
	if (oldest_ms != INT64_MAX)
		return job_later(r, clock_now_ms() + REMAINS_MS);
	int result = lake_of(r)->erase(engine_of(r), want, r->arena, &r->why);
	return result < 0 ? result : JOB_DONE;
}

static int remains_sweep(struct job_run *r, const struct engine_lake *want, int64_t oldest_ms)
{
	struct engine_lake_swept swept;
	int result = lake_of(r)->sweep(engine_of(r), want, oldest_ms, r->arena, &swept, &r->why);
	if (result == -ENOENT)
		return remains_erase(r, want, oldest_ms);
	if (result < 0 && result != -EAGAIN)
		return result;
	return result == 0 && !swept.kept ? JOB_DONE : job_later(r, clock_now_ms() + REMAINS_MS);
}

static int remains_step(struct job_run *r)
{
	const json_t *args = doc_json(r->arena, r->job.args);
	struct str cluster_id = json_field(args, "cluster");
	struct engine_lake want;
	struct cluster cluster;
	int64_t oldest = 0;
	if (!lake_of(r))
		return JOB_DONE;
	archive_want_make(r->arena, cluster_id, json_field(args, "region"), args, clock_now_ms(), &want);
	tx_begin_read(r->reader);
	int there = cluster_get(r->reader, r->arena, cluster_id, &cluster);
	job_read_end(r);
	if (there < 0 && there != -ENOENT)
		return there;
	int result = oldest_find(r, cluster_id, &oldest);
	if (result < 0)
		return result;
	if (there < 0)
		return remains_erase(r, &want, oldest);
	if (cluster_is(&cluster, "DELETING") || json_flag(cluster.body, "paused"))
		return job_later(r, clock_now_ms() + PAUSED_MS);
	return remains_sweep(r, &want, oldest);
}

static const struct job_kind kinds[] = {
        {.name = ARCHIVE_JOB, .step = work_step, .attempts = UINT32_MAX, .lasts = JOB_IS_BACKGROUND},
        {.name = REMAINS_JOB, .step = remains_step, .attempts = UINT32_MAX, .lasts = JOB_IS_BACKGROUND},
};
const struct job_kinds archives_jobs = JOB_KINDS(kinds);

/* --- what it has to do with clusters */

static int removed(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	return archive_queries_drop(tx, cluster->doc.id);
}

const struct cluster_part archives_part = {.removed = removed};

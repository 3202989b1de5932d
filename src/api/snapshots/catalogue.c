/* The catalogue of what is kept: a line for each cluster that has or had backups. It follows the cluster as a part of
 * it (struct cluster_part) and stays when the cluster goes and its backups are to be kept. */
#include "api/snapshots/catalogue.h"

#include "api/kit/verbs.h"
#include "api/snapshots/clock.h"
#include "api/snapshots/drills.h"
#include "api/snapshots/jobs.h"
#include "api/snapshots/judge.h"
#include "api/snapshots/metering.h"
#include "api/snapshots/protection.h"
#include "api/snapshots/schedule.h"
#include "api/snapshots/snapshot.h"
#include "api/snapshots/sweep.h"
#include "api/snapshots/take.h"
#include "api/snapshots/times.h"
#include "base/clock.h"
#include "base/id.h"
#include "trail/events.h"

#include <errno.h>
#include <stdio.h>

#define FALLBACK_DAYS 2 /* beyond the window that it begins */
#define RESIDUE_DAYS 7
/* Between two tries to begin the window. */
#define AGAIN_MS (5 * 60000LL)
#define AGAIN_MAX_MS (6 * 3600000LL)

static int line_find(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct backup_line line;
	int result = backup_line_load(c, &line);
	if (result == 0)
		*ret_doc = line.doc;
	return result;
}

/* What it kept in the repository is looked for, and taken away, for some days: also where a host is away now. */
static int residue_add(struct tx *tx, struct arena *a, struct str group_id, struct str region)
{
	json_t *residue = json_new(a);
	json_put_str(residue, "groupId", group_id);
	json_put_str(residue, "region", region);
	json_put(residue, "until", json_integer(clock_now_ms() + RESIDUE_DAYS * BACKUP_DAY_MS));
	return doc_insert(tx, RESIDUE_KIND, id_make(a), STR_NONE, STR_NONE, json_text(a, residue));
}

/* Its snapshots went before it: where it had copies, it knows itself. */
static int line_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	const json_t *body = doc_json(a, d->body), *copied = json_object_get(body, "copied");
	int r = residue_add(tx, a, d->parent, json_field(body, "region"));
	for (size_t i = 0; r == 0 && i < json_array_size(copied); i++)
		r = residue_add(tx, a, d->parent, json_item(copied, i));
	return r;
}

const struct resource_hooks backup_line_hooks = {.load = line_find, .gone = line_gone};

/* --- following the cluster */

int backup_line_follow(struct tx *tx, struct arena *a, const struct cluster *cluster, struct backup_line *ret_line)
{
	bool wanted = backup_is_wanted(cluster);
	int r = backup_line_get(tx, a, cluster->doc.id, ret_line);
	if (r < 0 && (r != -ENOENT || !wanted))
		return r;
	if (r == -ENOENT)
		*ret_line = (struct backup_line){
		        .doc = {.kind = STR(LINE_KIND), .id = cluster->doc.id, .parent = cluster->doc.parent},
		        .body = json_new(a)};
	struct str before = ret_line->doc.body;
	bool slept = !json_flag(ret_line->body, "wanted") || json_flag(ret_line->body, "paused");
	if (wanted && slept) /* what the clock passed while nothing was wanted is not due */
		running_put(ret_line);
	backup_line_fill(ret_line, cluster);
	if (r == 0 && str_eq(before, json_text(a, ret_line->body)))
		return 0;
	r = backup_line_save(tx, a, ret_line);
	if (r == 0)
		r = wanted ? schedule_ensure(tx, a, cluster) : schedule_remove(tx, cluster->doc.id);
	return r < 0 ? r : schedule_look(tx, a, ret_line, clock_now_ms());
}

static int part_changed(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	struct backup_line line;
	int r = backup_line_follow(tx, a, cluster, &line);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return schedule_follow(tx, a, cluster);
}

static bool data_is_other(const struct backup_line *line, const json_t *made)
{
	const char *set;
	json_t *was;
	json_object_foreach(json_object_get(line->body, "made"), set, was)
	{
		const json_t *is = json_object_get(made, set);
		if (is && !json_equal(is, was))
			return true;
	}
	return false;
}

/* Data that no restore brought: of a new major version, or made anew after it was given up. Its log begins anew too. */
static int data_follow(struct tx *tx, struct arena *a, const struct cluster *cluster, struct backup_line *line)
{
	struct cluster now = *cluster;
	json_t *made = json_object_get(cluster->plan, "made");
	int r = 0;
	if (data_is_other(line, made)) {
		json_put_str(now.plan, "incarnation", id_make(a));
		r = cluster_save(tx, a, &now);
		if (r == 0)
			r = cluster_reconcile(tx, now.doc.id);
		if (r == 0)
			r = backup_line_follow(tx, a, &now, line);
	}
	if (r < 0 || json_equal(json_object_get(line->body, "made"), made))
		return r;
	json_put(line->body, "made", json_deep_copy(made));
	return backup_line_save(tx, a, line);
}

static int part_converged(struct tx *tx, struct arena *a, const struct cluster *cluster, bool maintained)
{
	struct backup_line line;
	int r = backup_line_follow(tx, a, cluster, &line);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (json_object_size(json_object_get(cluster->plan, "made")))
		r = data_follow(tx, a, cluster, &line);
	return r == 0 ? window_ensure(tx, a, &line) : r;
}

static int part_removed(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	struct backup_line line;
	int r = backup_line_get(tx, a, cluster->doc.id, &line);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_t *policy; /* keeps them, whatever the caller wanted */
	r = protection_load(tx, a, cluster->doc.parent, &policy);
	if (r < 0)
		return r;
	if (!policy && !json_flag(cluster->plan, "retainBackups")) {
		r = snapshot_meter_end(tx, a, cluster->doc.id, STR(""));
		return r < 0 ? r : resource_take_away(tx, a, &resource_backup_line, &line.doc);
	}
	json_put(line.body, "gone", json_true());
	json_put(line.body, "goneAt", json_integer(clock_now_ms()));
	json_put(line.body, "logged", json_boolean(policy && json_flag(line.body, "archive")));
	json_put(line.body, "archive", json_false());
	json_put(line.body, "wanted", json_false());
	r = backup_line_save(tx, a, &line);
	return r < 0 ? r : schedule_look(tx, a, &line, clock_now_ms());
}

static int part_wanted(struct tx *tx, struct arena *a, const struct cluster *cluster, struct cluster_want *want)
{
	struct engine_archiving *to = &want->engine.backup;
	const json_t *first = json_array_get(json_object_get(cluster->plan, "nodes"), 0);
	struct backup_line line;
	int r = backup_line_get(tx, a, cluster->doc.id, &line);
	if (r < 0 && r != -ENOENT)
		return r;
	struct str region = r == 0 ? json_field(line.body, "region") : json_field(first, "region");
	to->archive = backup_log_is_wanted(cluster);
	str_copy(cluster_incarnation(cluster), to->incarnation, sizeof to->incarnation);
	str_copy(region, to->region, sizeof to->region);
	const json_t *copies = r == 0 ? json_object_get(line.body, "logCopies") : NULL;
	for (size_t i = 0; i < json_array_size(copies) && to->copy_count < ENGINE_COPIES_MAX; i++)
		str_copy(json_item(copies, i), to->copies[to->copy_count++], sizeof to->copies[0]);
	return 0;
}

static void part_links(struct call *c, const struct doc *cluster)
{
	struct doc d;
	if (tx_get(c->tx, c->arena, SCHEDULE_KIND, cluster->id, &d) != 0)
		return;
	entity_link_op(c, "backupSchedule", resource_backup_schedule.self, "clusterName", cluster->name);
	entity_link_op(c, "snapshotSchedule", resource_legacy_schedule.self, "clusterName", cluster->name);
}

const struct cluster_part backups_part = {.created = part_changed,
                                          .changed = part_changed,
                                          .removed = part_removed,
                                          .wanted = part_wanted,
                                          .links = part_links,
                                          .rules = protection_cluster_rules,
                                          .converged = part_converged};

/* --- the window */

int window_ensure(struct tx *tx, struct arena *a, struct backup_line *line)
{
	struct snapshot *list, taken;
	size_t count = 0;
	int64_t since = json_number(line->body, "since"), now = clock_now_ms();
	if (!json_flag(line->body, "archive"))
		return 0;
	int r = snapshots_of(tx, a, line->doc.id, &list, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (!snapshot_is(&list[i], "failed") && list[i].doc.created_ms >= since &&
		    list[i].doc.created_ms <= now && /* or by a clock that was ahead */
		    str_eq(json_field(list[i].plan, "incarnation"), json_field(line->body, "incarnation")))
			return 0;
	const struct snapshot_wish wish = {.type = "fallback",
	                                   .frequency = 0,
	                                   .retention_ms = (json_number(line->body, "windowDays") + FALLBACK_DAYS) *
	                                                   BACKUP_DAY_MS,
	                                   .description = STR("begins the restore window")};
	return r < 0 ? r : snapshot_take(tx, a, line, &wish, &taken);
}

int window_again(struct tx *tx, struct arena *a, struct backup_line *line, int64_t now)
{
	int64_t pause = now - json_number(line->body, "since"); /* so each is twice the one before */
	pause = pause < AGAIN_MS ? AGAIN_MS : pause > AGAIN_MAX_MS ? AGAIN_MAX_MS : pause;
	json_put(line->body, "windowDue", json_integer(now + pause));
	int r = backup_line_save(tx, a, line);
	return r < 0 ? r : schedule_look(tx, a, line, now + pause);
}

int window_look(struct tx *tx, struct arena *a, struct backup_line *line, int64_t now, int64_t *next)
{
	int64_t due = json_number(line->body, "windowDue");
	if (due > now)
		*next = due < *next ? due : *next;
	if (!due || due > now)
		return 0;
	json_object_del(line->body, "windowDue");
	int r = backup_line_save(tx, a, line);
	bool wanted = json_flag(line->body, "wanted") && !json_flag(line->body, "paused");
	return r == 0 && wanted ? window_ensure(tx, a, line) : r;
}

static const struct job_kind kinds[] = {
        {.name = SNAPSHOT_JOB,
         .step = snapshot_step,
         .failed = snapshot_failed,
         .attempts = 3,
         .lasts = JOB_IS_BACKGROUND,
         .moves = true},
        {.name = COPY_JOB,
         .step = copy_step,
         .failed = copy_failed,
         .attempts = 5,
         .lasts = JOB_IS_BACKGROUND,
         .moves = true},
        {.name = FORGET_JOB, .step = forget_step},
        {.name = CLOCK_JOB, .step = clock_step, .attempts = 1000000},
        {.name = SWEEP_JOB, .step = sweep_step, .period_ms = SWEEP_MS, .per_node = true, .lasts = JOB_IS_LONG},
        {.name = WATCH_ARCHIVE_JOB, .step = archive_watch_step, .period_ms = WATCH_ARCHIVE_MS, .per_node = true},
        {.name = JUDGE_JOB, .step = backup_judge_step, .period_ms = JUDGE_MS, .per_node = true},
        {.name = DRILL_JOB,
         .step = drill_step,
         .failed = drill_failed,
         .attempts = 2,
         .lasts = JOB_IS_BACKGROUND,
         .moves = true},
};
const struct job_kinds snapshots_jobs = JOB_KINDS(kinds);

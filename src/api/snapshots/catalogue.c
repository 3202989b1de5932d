/* The catalogue of what is kept: a line for each cluster that has or had backups. It follows the cluster as a part of
 * it (struct cluster_part) and stays when the cluster goes and its backups are to be kept. */
#include "api/snapshots/catalogue.h"

#include "api/kit/verbs.h"
#include "api/snapshots/drills.h"
#include "api/snapshots/jobs.h"
#include "api/snapshots/judge.h"
#include "api/snapshots/metering.h"
#include "api/snapshots/protection.h"
#include "api/snapshots/schedule.h"
#include "api/snapshots/snapshot.h"
#include "api/snapshots/sweep.h"
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

bool backup_is_wanted(const struct cluster *cluster)
{
	return json_flag(cluster->body, "backupEnabled") || str_is(cluster->doc.kind, FLEX_KIND);
}

struct str cluster_incarnation(const struct cluster *cluster)
{
	struct str own = json_field(cluster->plan, "incarnation");
	return own.n ? own : cluster->doc.id;
}

struct str backup_subject(struct arena *a, struct str cluster_id)
{
	return arena_printf(a, "backup/%.*s", STR_ARG(cluster_id));
}

static bool archive_is_wanted(const struct cluster *cluster)
{
	return backup_is_wanted(cluster) && json_flag(cluster->body, "pitEnabled");
}

static struct backup_line line_of(struct arena *a, const struct doc *d)
{
	return (struct backup_line){.doc = *d, .body = doc_json(a, d->body)};
}

int backup_line_get(struct tx *tx, struct arena *a, struct str cluster_id, struct backup_line *ret_line)
{
	struct doc d;
	int r = tx_get(tx, a, LINE_KIND, cluster_id, &d);
	if (r == 0)
		*ret_line = line_of(a, &d);
	return r;
}

int backup_line_save(struct tx *tx, struct arena *a, struct backup_line *line)
{
	line->doc.body = json_text(a, line->body);
	return doc_put(tx, &line->doc);
}

static void text_put(char *to, size_t size, struct str text)
{
	snprintf(to, size, "%.*s", STR_ARG(text));
}

struct engine_source backup_source(const struct backup_line *line)
{
	struct engine_source s = {.snapshot_id = ""};
	text_put(s.group_id, sizeof s.group_id, json_field(line->body, "groupId"));
	text_put(s.cluster_id, sizeof s.cluster_id, line->doc.id);
	text_put(s.incarnation, sizeof s.incarnation, json_field(line->body, "incarnation"));
	text_put(s.region, sizeof s.region, json_field(line->body, "region"));
	return s;
}

struct engine_source source_of(const json_t *from)
{
	struct engine_source s = {.region = ""};
	text_put(s.group_id, sizeof s.group_id, json_field(from, "group"));
	text_put(s.cluster_id, sizeof s.cluster_id, json_field(from, "cluster"));
	text_put(s.incarnation, sizeof s.incarnation, json_field(from, "incarnation"));
	text_put(s.snapshot_id, sizeof s.snapshot_id, json_field(from, "snapshot"));
	text_put(s.region, sizeof s.region, json_field(from, "region"));
	return s;
}

int backup_event(struct tx *tx, struct arena *a, const char *type, const char *severity, const struct backup_line *line,
                 const char *name, struct str text)
{
	const struct event_detail detail = {.name = name, .text = text};
	return event_service_about(tx, a, type,
	                           &(struct event_about){.group_id = json_field(line->body, "groupId"),
	                                                 .cluster = json_field(line->body, "clusterName"),
	                                                 .severity = severity,
	                                                 .details = &detail,
	                                                 .detail_count = text.n > 0});
}

int backup_job_add(struct tx *tx, struct arena *a, const char *kind, const struct backup_line *line, json_t *args)
{
	struct job job = {.kind = str_of(kind),
	                  .subject = backup_subject(a, line->doc.id),
	                  .host = json_field(line->body, "host"),
	                  .args = json_text(a, json_keep(a, args)),
	                  .due_ms = clock_now_ms()};
	return tx_job_add(tx, &job);
}

/* --- finding one */

static int line_by_name(struct call *c, struct str name, bool flex, struct backup_line *ret_line)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(c->tx, c->arena, LINE_KIND, c->group.id, &docs, &count);
	for (size_t i = count; r == 0 && i-- > 0;) {
		struct backup_line line = line_of(c->arena, &docs[i]);
		if (str_eq(json_field(line.body, "clusterName"), name) && json_flag(line.body, "flex") == flex) {
			*ret_line = line;
			return 0;
		}
	}
	return r < 0 ? r : -ENOENT;
}

static void line_follow(struct backup_line *line, const struct cluster *cluster);

struct str backup_path_name(const struct call *c)
{
	struct str name = call_path(c, "clusterName");
	return name.n ? name : call_path(c, "name");
}

bool backup_path_is_flex(const struct call *c)
{
	return !call_path(c, "clusterName").n;
}

/* A cluster that never had backups has an empty line, which is not kept. */
int backup_line_load(struct call *c, struct backup_line *ret_line)
{
	struct str name = backup_path_name(c);
	bool flex = backup_path_is_flex(c);
	struct doc d;
	int r = tx_get_by_name(c->tx, c->arena, flex ? FLEX_KIND : CLUSTER_KIND, c->group.id, name, &d);
	if (r == -ENOENT) {
		r = line_by_name(c, name, flex, ret_line);
		return r == -ENOENT ? call_missing(c, flex ? &resource_flex_cluster : &resource_cluster, name) : r;
	}
	if (r < 0)
		return r;
	struct cluster cluster = cluster_of(c->arena, &d);
	r = backup_line_get(c->tx, c->arena, d.id, ret_line);
	if (r != -ENOENT)
		return r;
	*ret_line = (struct backup_line){.doc = {.kind = STR(LINE_KIND), .id = d.id, .parent = c->group.id},
	                                 .body = json_new(c->arena)};
	line_follow(ret_line, &cluster);
	return 0;
}

int backup_missing(struct call *c, const struct resource *r, struct str id)
{
	struct backup_line line;
	int result = backup_line_load(c, &line);
	return result == 0 ? call_missing(c, r, id) : result;
}

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

static void line_follow(struct backup_line *line, const struct cluster *cluster)
{
	const json_t *first = json_array_get(json_object_get(cluster->plan, "nodes"), 0);
	struct str incarnation = cluster_incarnation(cluster), before = json_field(line->body, "incarnation");
	int64_t now = clock_now_ms();
	bool archive = archive_is_wanted(cluster), again = before.n && !str_eq(before, incarnation);
	if (again) {
		json_array_append_new(json_default(line->body, "ended", json_array()),
		                      json_pack("{s:s%, s:I}", "id", before.p, before.n, "at", (json_int_t)now));
		json_object_del(line->body, "made");
	}
	if (archive && (again || !json_flag(line->body, "archive"))) {
		json_put(line->body, "since", json_integer(now));
		json_object_del(line->body, "begun");
	}
	json_put_str(line->body, "clusterName", cluster->doc.name);
	json_put_str(line->body, "groupId", cluster->doc.parent);
	json_put_str(line->body, "incarnation", incarnation);
	json_put_str(line->body, "provider", json_field(first, "provider"));
	if (!json_field(line->body, "region").n) /* what was begun there goes on there */
		json_put_str(line->body, "region", json_field(first, "region"));
	json_put_str(line->body, "host", cluster_host(cluster));
	json_put_str(line->body, "label", json_field(cluster->plan, "label"));
	json_put(line->body, "archive", json_boolean(archive));
	json_put(line->body, "wanted", json_boolean(backup_is_wanted(cluster)));
	if (!backup_is_wanted(cluster)) /* with the schedule that asks for them */
		json_object_del(line->body, "logCopies");
	json_put(line->body, "paused", json_boolean(json_flag(cluster->body, "paused")));
	json_put(line->body, "flex", json_boolean(str_is(cluster->doc.kind, FLEX_KIND)));
	json_put(line->body, "sharded", json_boolean(!str_is(json_field(cluster->body, "clusterType"), "REPLICASET")));
	json_put(line->body, "shards",
	         json_integer((json_int_t)json_array_size(json_object_get(cluster->body, "replicationSpecs"))));
	json_default(line->body, "looked", json_integer(now));
	json_default(line->body, "windowDays", json_integer(WINDOW_DAYS));
}

void running_put(struct backup_line *line)
{
	json_put(line->body, "looked", json_integer(clock_now_ms()));
	json_put(line->body, "running", json_integer(clock_now_ms()));
	json_object_del(line->body, "overdue");
}

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
	line_follow(ret_line, cluster);
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
	to->archive = archive_is_wanted(cluster);
	text_put(to->incarnation, sizeof to->incarnation, cluster_incarnation(cluster));
	text_put(to->region, sizeof to->region, region);
	const json_t *copies = r == 0 ? json_object_get(line.body, "logCopies") : NULL;
	for (size_t i = 0; i < json_array_size(copies) && to->copy_count < ENGINE_COPIES_MAX; i++)
		text_put(to->copies[to->copy_count++], sizeof to->copies[0], json_item(copies, i));
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

/* Ages of snapshots and of log, judged once a minute by the alert configurations that have a bound for them. Each host
 * looks at its own clusters. */
#include "api/snapshots/judge.h"

#include "api/alerts/alerts.h"
#include "api/snapshots/catalogue.h"
#include "api/snapshots/figures.h"
#include "api/snapshots/jobs.h"
#include "api/snapshots/schedule.h"
#include "api/snapshots/times.h"
#include "base/clock.h"
#include "hosts/hosts.h"

#include <errno.h>

#define LATE "CPS_SNAPSHOT_BEHIND"
#define OLD "CPS_PREV_SNAPSHOT_OLD"
#define LOG_BEHIND "CPS_OPLOG_BEHIND"
#define LOST_MS 150000 /* that lost log counts at least: two looks of a busy host */

struct judging {
	const struct service *service;
	struct arena *arena;
	struct alert_findings findings;
	/* Of the project in hand: lines come project by project. */
	struct arena *project;
	struct alert_watch watch;
};

static void figure_take(struct judging *j, struct arena *a, const struct backup_line *line, const char *type,
                        int64_t age_ms)
{
	const struct alert_reading r = {.group_id = j->watch.group_id,
	                                .cluster = json_field(line->body, "clusterName"),
	                                .type = type,
	                                .value = (double)(age_ms > 0 ? age_ms : 0)};
	if (alerts_watch_matters(&j->watch, a, &r))
		alerts_find(&j->findings, &(struct alert_finding){.reading = r});
}

/* How old the last snapshot is, and how late the next. What the schedule's beginning left out is not late. */
static int snapshots_judge(struct judging *j, struct tx *tx, struct arena *a, const struct backup_line *line)
{
	int64_t taken = 0, since = json_number(line->body, "running"), now = clock_now_ms();
	json_t *schedule;
	int r = backup_taken(tx, a, line, &taken);
	if (r < 0)
		return r;
	since = since ? since : line->doc.created_ms;
	since = taken > since ? taken : since;
	figure_take(j, a, line, OLD, now - (taken ? taken : since));
	if (!alerts_watch_has(&j->watch, LATE))
		return 0;
	r = schedule_of(tx, a, line, &schedule);
	int64_t due = r == 0 ? schedule_next(schedule, since) : 0;
	if (r == 0)
		figure_take(j, a, line, LATE, due ? now - due : 0);
	return r;
}

/* Log that is lost never comes: it counts as old as the window is long. A snapshot may begin another window before this
 * looks, and the loss shall be told all the same. */
static void log_judge(struct judging *j, struct arena *a, const struct backup_line *line)
{
	const struct service *s = j->service;
	const int64_t window = json_number(line->body, "windowDays") * BACKUP_DAY_MS;
	const bool lately = clock_now_ms() - json_number(line->body, "lostAt") < LOST_MS;
	struct engine_archive archive;
	if (!alerts_watch_has(&j->watch, LOG_BEHIND) || !json_flag(line->body, "archive"))
		return;
	if (s->engine_ops->backup->archive(s->engine_state, arena_z(a, line->doc.id), a, &archive) == 0 && archive.on)
		figure_take(j, a, line, LOG_BEHIND,
		            (archive.broken || lately) && window > archive.lag_ms ? window : archive.lag_ms);
}

/* Nothing is taken of a cluster that is paused, or whose backups are not wanted: nothing would end its alerts. */
static void ends_find(struct judging *j, const struct backup_line *line)
{
	struct str cluster = json_field(line->body, "clusterName");
	for (size_t i = 0; i < j->watch.open_count; i++) {
		const struct alert_open *o = &j->watch.open[i];
		for (size_t k = 0; k < j->watch.rule_count; k++)
			if (str_eq(o->cluster, cluster) && str_eq(o->config_id, j->watch.rules[k].config.id))
				alerts_find(&j->findings, &(struct alert_finding){.ends = o->alert_id});
	}
}

static int watch_change(struct judging *j, struct tx *tx, struct str group_id)
{
	if (j->project && str_eq(j->watch.group_id, group_id))
		return 0;
	if (j->project)
		arena_free(j->project);
	j->project = arena_new();
	return alerts_watch_load(tx, j->project, arena_dup(j->project, group_id), LATE "|" OLD "|" LOG_BEHIND,
	                         &j->watch);
}

static int line_judge(struct tx *tx, void *ctx, const struct doc *d)
{
	struct judging *j = ctx;
	int r = watch_change(j, tx, d->parent);
	if (r < 0 || !j->watch.rule_count)
		return r;
	struct arena *a = arena_new();
	const struct backup_line line = {.doc = *d, .body = doc_json(a, d->body)};
	if (!host_is_elsewhere(json_field(line.body, "host")) && !json_flag(line.body, "gone")) {
		if (!backup_is_running(&line)) {
			ends_find(j, &line);
		} else {
			r = snapshots_judge(j, tx, a, &line);
			log_judge(j, a, &line);
		}
	}
	arena_free(a);
	return r;
}

int backup_judge_step(struct job_run *r)
{
	struct judging j = {.service = r->ctx, .arena = r->arena, .findings = {.arena = r->arena}};
	if (!j.service->engine_ops->backup)
		return JOB_DONE;
	tx_begin_read(r->reader);
	int result = tx_walk_all(r->reader, LINE_KIND, line_judge, &j);
	tx_end_read(r->reader);
	tx_rest(r->reader);
	if (result == 0)
		result = alerts_findings_write(r->store, &j.findings);
	if (j.project)
		arena_free(j.project);
	return result < 0 ? result : JOB_DONE;
}

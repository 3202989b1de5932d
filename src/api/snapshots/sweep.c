/* The sweep: each hour, and on each host, what the catalogue does not want any more is taken out of the repositories.
 * What it does want is proven to be there: the log, by the names of its segments, from the oldest snapshot that is
 * needed on, and that the newest snapshot begins or continues the last window.
 * And the archives: a log that has fallen behind is told, and one that has a gap is begun anew with a snapshot. */
#include "api/snapshots/sweep.h"

#include "api/kit/verbs.h"
#include "api/snapshots/adopt.h"
#include "api/snapshots/catalogue.h"
#include "api/snapshots/figures.h"
#include "api/snapshots/jobs.h"
#include "api/snapshots/keep.h"
#include "api/snapshots/protection.h"
#include "api/snapshots/snapshot.h"
#include "api/snapshots/strangers.h"
#include "base/clock.h"
#include "base/log.h"
#include "hosts/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define BEHIND_MS 300000 /* of log that is not in the repository yet */

/* --- from the catalogue */

static void sets_read(struct arena *a, const struct snapshot *s, struct kept_snapshot *to)
{
	const json_t *sets = json_object_get(s->plan, "sets");
	size_t count = json_array_size(sets);
	struct engine_position *list = arena_new_array(a, struct engine_position, count + 1);
	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_array_get(sets, i);
		snprintf(list[i].set, sizeof list[i].set, "%.*s", STR_ARG(json_field(one, "set")));
		list[i].timeline = (unsigned)json_number(one, "timeline");
		list[i].lsn = strtoull(arena_z(a, json_field(one, "lsn")), NULL, 16);
	}
	to->sets = list;
	to->set_count = count;
}

struct gathering {
	struct arena *arena;
	struct str region;
	struct strangers *strangers;
	struct kept_snapshot *snapshots;
	struct kept_line *lines;
	size_t snapshot_count, snapshot_room, line_count, line_room;
};

/* `copying`: a copy of the cluster's snapshots is under way; a set that it has brought over may be hours old. */
static void snapshot_add(struct gathering *g, const struct snapshot *s, bool copying)
{
	if (g->snapshot_count == g->snapshot_room) {
		g->snapshot_room = g->snapshot_room ? 2 * g->snapshot_room : 64;
		g->snapshots =
		        arena_grow(g->arena, g->snapshots, g->snapshot_count, g->snapshot_room, sizeof *g->snapshots);
	}
	struct kept_snapshot *to = &g->snapshots[g->snapshot_count++];
	bool lies = snapshot_lies_in(s, g->region);
	*to = (struct kept_snapshot){.cluster = s->doc.parent,
	                             .id = s->doc.id,
	                             .incarnation = json_field(s->plan, "incarnation"),
	                             .at_ms = json_number(s->plan, "at"),
	                             .completed = snapshot_is(s, "completed"),
	                             .here = lies || copying,
	                             .coming = !lies};
	sets_read(g->arena, s, to);
}

static void line_add(struct gathering *g, const struct backup_line *line, int64_t window, struct str incarnation,
                     int64_t ended)
{
	if (g->line_count == g->line_room) {
		g->line_room = g->line_room ? 2 * g->line_room : 16;
		g->lines = arena_grow(g->arena, g->lines, g->line_count, g->line_room, sizeof *g->lines);
	}
	g->lines[g->line_count++] = (struct kept_line){
	        .cluster = line->doc.id, .incarnation = incarnation, .ended_ms = ended, .window_ms = window};
}

static bool has_log(const struct backup_line *line, struct str region)
{
	const json_t *copies = json_object_get(line->body, "logCopies");
	bool has = str_eq(json_field(line->body, "region"), region);
	for (size_t i = 0; i < json_array_size(copies); i++)
		has |= str_eq(json_item(copies, i), region);
	return has;
}

static int line_gather(struct tx *tx, struct gathering *g, const struct doc *d)
{
	struct backup_line line = {.doc = *d, .body = doc_json(g->arena, d->body)};
	const json_t *ended = json_object_get(line.body, "ended");
	struct snapshot *list;
	size_t count = 0;
	struct job copy;
	int64_t window = 0;
	int r = tx_job_find(tx, g->arena, COPY_JOB, backup_subject(g->arena, d->id), &copy);
	bool copying = r == 0 && !copy.failed;
	r = r == -ENOENT ? 0 : r;
	r = r < 0 ? r : snapshots_of(tx, g->arena, d->id, &list, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		strangers_know(g->strangers, list[i].doc.id);
		if (!snapshot_is(&list[i], "failed"))
			snapshot_add(g, &list[i], copying);
	}
	strangers_know(g->strangers, json_field(line.body, "incarnation"));
	for (size_t i = 0; i < json_array_size(ended); i++)
		strangers_know(g->strangers, json_field(json_array_get(ended, i), "id"));
	r = r < 0 ? r : protection_log(tx, g->arena, &line, &window);
	if (r < 0 || !has_log(&line, g->region))
		return r;
	line_add(g, &line, window, json_field(line.body, "incarnation"), json_number(line.body, "goneAt"));
	for (size_t i = 0; i < json_array_size(ended); i++)
		line_add(g, &line, window, json_field(json_array_get(ended, i), "id"),
		         json_number(json_array_get(ended, i), "at"));
	return 0;
}

/* In a read of its own: a snapshot that is asked for later is younger than what a sweep touches. */
static int keep_load(struct job_run *r, struct arena *a, struct str group_id, struct str region,
                     struct repo_keep *ret_keep, struct strangers **ret_strangers)
{
	struct gathering g = {.arena = a, .region = region};
	struct doc *docs;
	size_t count = 0;
	int64_t began_us = clock_boot_us();
	tx_begin_read(r->reader);
	int result = strangers_new(r->reader, a, &g.strangers);
	if (result == 0)
		result = tx_list_all(r->reader, a, LINE_KIND, group_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = line_gather(r->reader, &g, &docs[i]);
	tx_end_read(r->reader);
	tx_rest(r->reader);
	if (result == 0)
		keep_make(a, g.snapshots, g.snapshot_count, g.lines, g.line_count, clock_now_ms(), ret_keep);
	if (result < 0)
		return result;
	ret_keep->read_us = began_us;
	ret_keep->stranger = strangers_is;
	ret_keep->stranger_found = strangers_tell;
	ret_keep->stranger_ctx = *ret_strangers = g.strangers;
	return 0;
}

/* --- which projects, in which regions */

struct place {
	struct str group_id, region;
};
struct places {
	struct arena *arena;
	struct place *list;
	size_t count, room;
	int64_t now_ms;
	json_t *over;     /* ids of residues whose time is over */
	json_t *young;    /* and of clusters that shall have backups and have no line: made by an older version */
	struct kept_log { /* of this host's clusters whose log is kept */
		struct engine_source source;
		struct snapshot *snapshots;
		size_t snapshot_count;
		bool begun; /* its window was seen to begin */
	} * windows;
	size_t window_count, window_room;
	json_t *lost;     /* ids of those whose window has no snapshot any more that it begins with */
	uint64_t bytes;   /* that lie in the repositories */
	uint64_t unknown; /* snapshots that lie there, and the catalogue does not have */
};
#define YOUNG_MAX 500 /* what is written down at once holds up other writes */

static void place_add(struct places *p, struct str group_id, struct str region)
{
	for (size_t i = 0; i < p->count; i++)
		if (str_eq(p->list[i].group_id, group_id) && str_eq(p->list[i].region, region))
			return;
	if (p->count == p->room) {
		p->room = p->room ? 2 * p->room : 64;
		p->list = arena_grow(p->arena, p->list, p->count, p->room, sizeof *p->list);
	}
	p->list[p->count++] = (struct place){arena_dup(p->arena, group_id), arena_dup(p->arena, region)};
}

static int visit_line(struct tx *tx, void *ctx, const struct doc *d)
{
	struct places *p = ctx;
	const json_t *body = doc_json(p->arena, d->body), *copied = json_object_get(body, "copied");
	place_add(p, d->parent, json_field(body, "region"));
	for (size_t i = 0; i < json_array_size(copied); i++)
		place_add(p, d->parent, json_item(copied, i));
	if (!json_flag(body, "archive") || host_is_elsewhere(json_field(body, "host")))
		return 0;
	const struct backup_line line = {.doc = *d, .body = doc_json(p->arena, d->body)};
	if (p->window_count == p->window_room) {
		p->window_room = p->window_room ? 2 * p->window_room : 64;
		p->windows = arena_grow(p->arena, p->windows, p->window_count, p->window_room, sizeof *p->windows);
	}
	struct kept_log *log = &p->windows[p->window_count++];
	*log = (struct kept_log){.source = backup_source(&line),
	                         .begun = str_eq(json_field(body, "begun"), json_field(body, "incarnation"))};
	return snapshots_of(tx, p->arena, d->id, &log->snapshots, &log->snapshot_count);
}

static int visit_snapshot(struct tx *tx, void *ctx, const struct doc *d)
{
	struct places *p = ctx;
	const json_t *plan = doc_json(p->arena, d->secret), *copies = json_object_get(plan, "copies");
	for (size_t i = 0; i < json_array_size(copies); i++)
		place_add(p, json_field(plan, "groupId"), json_field(json_array_get(copies, i), "region"));
	return 0;
}

static int visit_residue(struct tx *tx, void *ctx, const struct doc *d)
{
	struct places *p = ctx;
	const json_t *body = doc_json(p->arena, d->body);
	place_add(p, json_field(body, "groupId"), json_field(body, "region"));
	if (json_number(body, "until") < p->now_ms)
		json_add_str(p->over, d->id);
	return 0;
}

static int visit_cluster(struct tx *tx, void *ctx, const struct doc *d)
{
	struct places *p = ctx;
	struct doc line;
	static const char on[] = "\"backupEnabled\":true";
	bool wanted = str_is(d->kind, FLEX_KIND) || memmem(d->body.p, d->body.n, on, sizeof on - 1);
	if (!wanted || json_array_size(p->young) == YOUNG_MAX)
		return 0;
	int r = tx_get(tx, p->arena, LINE_KIND, d->id, &line);
	if (r == -ENOENT)
		json_add_str(p->young, d->id);
	return r == -ENOENT ? 0 : r;
}

static int young_save(struct tx *tx, struct arena *a, const json_t *ids)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(ids); i++) {
		struct cluster cluster;
		struct backup_line line;
		r = cluster_get(tx, a, json_item(ids, i), &cluster);
		if (r == 0 && !cluster_is(&cluster, "DELETING"))
			r = backup_line_follow(tx, a, &cluster, &line);
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

/* The watch of the archives looks again, tells, and has a snapshot taken. */
static int lost_save(struct tx *tx, struct arena *a, const json_t *ids)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(ids); i++) {
		struct backup_line line;
		r = backup_line_get(tx, a, json_item(ids, i), &line);
		if (r == 0) {
			json_object_del(line.body, "begun");
			r = backup_line_save(tx, a, &line);
		}
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

static int over_save(struct tx *tx, struct job_run *r)
{
	const struct places *p = r->save_ctx;
	int result = young_save(tx, r->arena, p->young);
	if (result == 0)
		result = lost_save(tx, r->arena, p->lost);
	if (result == 0)
		result = backup_figures_keep(tx, r->arena, p->bytes, p->unknown);
	for (size_t i = 0; result == 0 && i < json_array_size(p->over); i++) {
		result = tx_delete(tx, RESIDUE_KIND, json_item(p->over, i));
		if (result == -ENOENT) /* another host was quicker */
			result = 0;
	}
	return result;
}

static bool has_base(const struct snapshot *list, size_t count, const struct engine_source *of,
                     const struct engine_window *w)
{
	for (size_t i = 0; i < count; i++)
		if (snapshot_is_base(&list[i], of, w))
			return true;
	return false;
}

/* The shortest of the last windows; negative: there is none that could be. And those that nothing begins any more. */
static int64_t windows_look(struct job_run *r, const struct places *p)
{
	const struct service *s = r->ctx;
	int64_t shortest = -1;
	for (size_t i = 0; i < p->window_count && !*job_stop(r); i++) {
		const struct kept_log *log = &p->windows[i];
		struct arena *a = arena_new();
		struct engine_window *list;
		size_t count = 0;
		if (s->engine_ops->backup->window(s->engine_state, &log->source, a, &list, &count) == 0) {
			int64_t ms = count ? list[count - 1].to_ms - list[count - 1].from_ms : 0;
			shortest = shortest < 0 || ms < shortest ? ms : shortest;
			if (log->begun && count &&
			    !has_base(log->snapshots, log->snapshot_count, &log->source, &list[count - 1]))
				json_add_str(p->lost, str_of(log->source.cluster_id));
		}
		arena_free(a);
	}
	return shortest;
}

/* Of a snapshot whose record is missing. */
static char *record_find(void *ctx, struct str cluster, struct str snapshot)
{
	struct job_run *r = ctx;
	struct arena *a = arena_new();
	struct backup_line line;
	struct snapshot s;
	struct str text = STR_NONE;
	tx_begin_read(r->reader);
	int result = snapshot_get(r->reader, a, snapshot, &s);
	if (result == 0 && (!str_eq(s.doc.parent, cluster) || !snapshot_is(&s, "completed")))
		result = -ENOENT;
	if (result == 0)
		result = backup_line_get(r->reader, a, cluster, &line);
	if (result == 0)
		result = snapshot_record(r->reader, a, &line, &s, &text);
	tx_end_read(r->reader);
	tx_rest(r->reader);
	char *found = result == 0 ? must_strdup(text.p) : NULL;
	arena_free(a);
	return found;
}

/* Of this host's clusters, whose archives then look whether all of it is there. Before the sweep, which may be long:
 * what is needed is older then than what another host may take away meanwhile. */
static void logs_prove(const struct service *s, const char *region, const struct repo_keep *keep)
{
	for (size_t i = 0; i < keep->wal_count; i++)
		(void)!s->engine_ops->backup->prove_log(s->engine_state, region, &keep->wal[i]);
}

static void place_sweep(struct job_run *r, const struct place *at, uint64_t *bytes, uint64_t *unknown)
{
	const struct service *s = r->ctx;
	struct arena *a = arena_new();
	struct repo_keep keep;
	struct repo_swept swept = {0};
	struct strangers *strangers = NULL;
	struct str names;
	int result = keep_load(r, a, at->group_id, at->region, &keep, &strangers);
	if (result == 0) {
		keep.record = record_find;
		keep.record_ctx = r;
		logs_prove(s, arena_z(a, at->region), &keep);
	}
	if (result == 0)
		result = s->engine_ops->backup->sweep(s->engine_state, arena_z(a, at->region), arena_z(a, at->group_id),
		                                      &keep, &swept);
	if (result < 0)
		log_error("backups of project %.*s in %.*s could not be swept (error %d)", STR_ARG(at->group_id),
		          STR_ARG(at->region), result);
	else if (swept.bytes_freed)
		log_info("backups of project %.*s in %.*s: %llu bytes freed", STR_ARG(at->group_id),
		         STR_ARG(at->region), (unsigned long long)swept.bytes_freed);
	size_t told = strangers ? strangers_told(strangers, &names) : 0;
	*unknown += told;
	if (told)
		log_warn("backups of project %.*s in %.*s: the catalogue does not have %zu snapshots that were made "
		         "while no "
		         "service ran on this store, so it is an older copy; they are kept: %.*s. See `steward "
		         "repository "
		         "unknown`",
		         STR_ARG(at->group_id), STR_ARG(at->region), told, STR_ARG(names));
	if (result < 0 && s->engine_ops->backup->usage(s->engine_state, arena_z(a, at->region),
	                                               arena_z(a, at->group_id), &swept.bytes_kept) < 0)
		swept.bytes_kept = 0;
	*bytes += swept.bytes_kept;
	arena_free(a);
}

int sweep_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct places *p = arena_new_of(r->arena, struct places);
	*p = (struct places){.arena = r->arena,
	                     .now_ms = clock_now_ms(),
	                     .over = json_keep(r->arena, json_array()),
	                     .lost = json_keep(r->arena, json_array()),
	                     .young = json_keep(r->arena, json_array())};
	if (!s->engine_ops->backup)
		return JOB_DONE;
	tx_begin_read(r->reader);
	int result = tx_walk_all(r->reader, LINE_KIND, visit_line, p);
	if (result == 0)
		result = tx_walk_all(r->reader, SNAPSHOT_KIND, visit_snapshot, p);
	if (result == 0)
		result = tx_walk_all(r->reader, RESIDUE_KIND, visit_residue, p);
	if (result == 0)
		result = clusters_walk(r->reader, visit_cluster, p);
	tx_end_read(r->reader);
	tx_rest(r->reader);
	for (size_t i = 0; result == 0 && i < p->count && !*job_stop(r); i++)
		place_sweep(r, &p->list[i], &p->bytes, &p->unknown);
	if (result == 0 && *job_stop(r))
		return -ECANCELED;
	if (result == 0)
		backup_figures_swept(p->bytes, p->unknown, windows_look(r, p));
	r->save = over_save;
	r->save_ctx = p;
	return result < 0 ? result : JOB_DONE;
}

/* --- archives of this host's clusters */

struct archives {
	struct arena *arena;
	struct backup_figures figures;
	struct watched {
		struct str id;
		struct engine_source source;
		struct snapshot *snapshots;
		size_t snapshot_count;
		bool broken, behind, told, paused;
		bool unbegun; /* nobody has seen yet that its window has begun */
		bool begun;   /* somebody has now */
	} * list;
	size_t count, room;
};

/* When the newest snapshot was taken that the window could begin with; 0: there is none. */
static int64_t newest_of(const struct watched *one)
{
	int64_t newest = 0;
	for (size_t i = 0; i < one->snapshot_count; i++) {
		const struct snapshot *s = &one->snapshots[i];
		int64_t at = json_number(s->plan, "at");
		if (snapshot_is(s, "completed") && at > newest && at <= clock_now_ms() &&
		    str_is(json_field(s->plan, "incarnation"), one->source.incarnation))
			newest = at;
	}
	return newest;
}

static int visit_archive(struct tx *tx, void *ctx, const struct doc *d)
{
	struct archives *w = ctx;
	const struct backup_line line = {.doc = *d, .body = doc_json(w->arena, d->body)};
	const json_t *body = line.body;
	if (host_is_elsewhere(json_field(body, "host")))
		return 0;
	int r = backup_figures_add(tx, w->arena, &line, &w->figures);
	if (r < 0 || !json_flag(body, "archive"))
		return r;
	if (w->count == w->room) {
		w->room = w->room ? 2 * w->room : 64;
		w->list = arena_grow(w->arena, w->list, w->count, w->room, sizeof *w->list);
	}
	struct watched *one = &w->list[w->count++];
	*one = (struct watched){.id = arena_dup(w->arena, d->id),
	                        .source = backup_source(&line),
	                        .told = json_flag(body, "behind"),
	                        .paused = json_flag(body, "paused"),
	                        .unbegun = json_flag(body, "wanted") && !json_flag(body, "paused") &&
	                                   !str_eq(json_field(body, "begun"), json_field(body, "incarnation"))};
	return one->unbegun ? snapshots_of(tx, w->arena, d->id, &one->snapshots, &one->snapshot_count) : 0;
}

/* Snapshots of times that are still to come were taken by a clock that was ahead: the log behind them has those times
 * too, and when the clock shows them again, it is other log that they would begin. */
static int ahead_note(struct tx *tx, struct arena *a, struct str cluster_id)
{
	struct snapshot *list;
	size_t count = 0;
	int r = snapshots_of(tx, a, cluster_id, &list, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (json_number(list[i].plan, "at") <= clock_now_ms() || json_flag(list[i].plan, "ahead"))
			continue;
		json_put(list[i].plan, "ahead", json_true());
		r = snapshot_save(tx, a, &list[i]);
	}
	return r;
}

static int archives_save(struct tx *tx, struct job_run *r)
{
	const struct archives *w = r->save_ctx;
	int result = periods_note(tx, r->arena, ((const struct service *)r->ctx)->started_ms);
	for (size_t i = 0; result == 0 && i < w->count; i++) {
		bool behind = w->list[i].behind;
		struct backup_line line;
		if (behind == w->list[i].told && !w->list[i].broken && !w->list[i].begun)
			continue;
		result = backup_line_get(tx, r->arena, w->list[i].id, &line);
		if (result == 0 && behind != w->list[i].told) {
			json_put(line.body, "behind", json_boolean(behind));
			result = backup_event(tx, r->arena, behind ? "CPS_OPLOG_BEHIND" : "CPS_OPLOG_CAUGHT_UP",
			                      behind ? "WARNING" : NULL, &line, NULL, STR_NONE);
		}
		if (result == 0 && w->list[i].begun)
			json_put_str(line.body, "begun", str_of(w->list[i].source.incarnation));
		if (result == 0 && w->list[i].broken) { /* whatever was taken before does not reach over the gap */
			json_put(line.body, "since", json_integer(clock_now_ms()));
			json_put(line.body, "lostAt", json_integer(clock_now_ms()));
			json_object_del(line.body, "begun");
			result = ahead_note(tx, r->arena, w->list[i].id);
		}
		if (result == 0)
			result = backup_line_save(tx, r->arena, &line);
		if (result == 0 && w->list[i].broken)
			result = window_ensure(tx, r->arena, &line);
		result = result == -ENOENT ? 0 : result;
	}
	return result;
}

/* Whether a snapshot that could begin another window is on its way. */
static bool is_coming(struct job_run *r, struct str cluster_id)
{
	struct job job;
	tx_begin_read(r->reader);
	bool found = tx_job_find(r->reader, r->arena, SNAPSHOT_JOB, backup_subject(r->arena, cluster_id), &job) == 0 &&
	             !job.failed;
	tx_end_read(r->reader);
	tx_rest(r->reader);
	return found;
}

/* A snapshot begins the window only where the log goes on from it. One that was taken some milliseconds before the
 * log's first mark began nothing, though it was told as a success, and nobody tried again before the schedule did: so
 * what is offered is asked for here too. True: there is log, and no snapshot that it could be played on. */
static bool is_stranded(struct job_run *r, struct watched *one)
{
	const struct service *s = r->ctx;
	struct engine_window *list;
	size_t count = 0;
	int64_t newest = newest_of(one);
	if (!newest || s->engine_ops->backup->window(s->engine_state, &one->source, r->arena, &list, &count) < 0 ||
	    !count)
		return false;
	const struct engine_window *last = &list[count - 1];
	one->begun = has_base(one->snapshots, one->snapshot_count, &one->source, last);
	return !one->begun && newest < last->from_ms;
}

int archive_watch_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct archives *w = arena_new_of(r->arena, struct archives);
	*w = (struct archives){.arena = r->arena};
	if (!s->engine_ops->backup)
		return JOB_DONE;
	tx_begin_read(r->reader);
	int result = tx_walk_all(r->reader, LINE_KIND, visit_archive, w);
	tx_end_read(r->reader);
	tx_rest(r->reader);
	for (size_t i = 0; result == 0 && i < w->count; i++) {
		struct engine_archive archive;
		if (s->engine_ops->backup->archive(s->engine_state, arena_z(r->arena, w->list[i].id), r->arena,
		                                   &archive) < 0)
			continue;
		struct backup_figures *f = &w->figures;
		w->list[i].behind = archive.on && (archive.lag_ms > BEHIND_MS || archive.crowded || archive.broken);
		f->lag_ms = archive.on && archive.lag_ms > f->lag_ms ? archive.lag_ms : f->lag_ms;
		f->behind += archive.on && archive.lag_ms > BEHIND_MS;
		f->spool_bytes += archive.spool_bytes;
		bool stranded = archive.on && !archive.proving && w->list[i].unbegun && is_stranded(r, &w->list[i]);
		bool broken = archive.on && (archive.broken || stranded);
		w->list[i].behind |= stranded;
		f->broken += broken;
		/* Where the repository is away, a snapshot would only fail. One of a paused cluster is of its files,
		 * and begins no window: that waits until it goes on. */
		w->list[i].broken = broken && !w->list[i].paused && !archive.why && !is_coming(r, w->list[i].id);
	}
	if (result == 0)
		backup_figures_show(&w->figures);
	r->save = archives_save;
	r->save_ctx = w;
	return result < 0 ? result : JOB_DONE;
}

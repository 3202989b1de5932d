/* Backups: what is kept of clusters, when it is taken, how it comes back.
 *
 * The catalogue has, for each cluster that has or had backups, a line (kind "backup_line", with the cluster's id),
 * which outlives the cluster:
 *
 *   {"clusterName", "groupId", "provider", "region", "shards", "host", "gone": false, "incarnation",
 *    "made": what each set's data is, "ended": [{"id", "at": ms}], "looked": ms, "archive": true, "windowDays": 7,
 *    "begun": the incarnation whose window was seen to begin, "goneAt": ms, "lostAt": ms, when it was last seen to end,
 *    "copied": [regions that have or had copies], "logCopies": [regions that the log is copied to],
 *    "logged": its log was archived then, under a policy, "taken": ms, when the last snapshot was complete,
 *    "running": ms, since when the schedule is in force, "overdue": true, "proven": ms, when a drill last succeeded,
 *    "drill": {"asked": ms, "snapshot", "pending": true, "failed": true},
 *    "rebuilt": true, where the line was made from what lay in the repository}
 *
 * Below it lie the snapshots and the restore jobs. A snapshot's document is what the API shows; beside it, where
 * documents have what never leaves, is its plan:
 *
 *   {"groupId", "clusterName", "incarnation", "region", "at": ms, "bytes", "stored", "retention": ms,
 *    "sets": [{"set", "timeline", "lsn": "1A2B", "bytes", "stored"}],
 *    "copies": [{"region", "provider", "expires": ms}], "copying": [regions that a copy is being made in],
 *    "proven": ms, "proof": {"files", "bytes", "relations"},
 *    "unproven": {"at": ms, "why"} (of the last drill, if it failed), "began": ms, "ended": ms,
 *    "units": of its position within its second, "standby": true, "doNotDelete": true,
 *    "dataKey": the id of the project's key that it is sealed with, "": none}
 *
 * What the engine keeps is found by these ids alone. The incarnation names the data: it is the cluster's id at first,
 * and a new one after each restore into it. */
#ifndef STEWARD_API_BACKUPS_BACKUPS_H
#define STEWARD_API_BACKUPS_BACKUPS_H

#include "api/clusters/clusters.h"
#include "api/provider_access/provider_access.h"

#define LINE_KIND "backup_line"
#define SNAPSHOT_KIND "backup_snapshot"
#define RESTORE_KIND "backup_restore"
#define SCHEDULE_KIND "backup_schedule"
/* Of a project: floors of retention that nobody goes below. DataProtectionSettings20231001, with the project's id. */
#define COMPLIANCE_KIND "backup_compliance"

/* A place of export buckets (service.export_buckets): what tenants have, by their roles at the provider. */
#define EXPORTS_BY_ROLES "roles"

#define BACKUP_DAY_MS 86400000LL

extern const struct cluster_part backups_part;
extern const struct job_kinds backups_jobs;
extern const struct role_user export_buckets_role_user;

/* --- catalogue.c */

struct backup_line {
	struct doc doc;
	json_t *body;
};

/* The path's {clusterName}, or {name} of a flex cluster: a cluster of the project that has had backups, or one that is
 * gone. -ENOENT. */
struct str backup_path_name(const struct call *c);
bool backup_path_is_flex(const struct call *c);
must_check int backup_line_load(struct call *c, struct backup_line *ret_line);
/* -ENOENT for what the path's cluster should have: the cluster itself is missing, or this of its own. */
must_check int backup_missing(struct call *c, const struct resource *r, struct str id);
must_check int backup_line_get(struct tx *tx, struct arena *a, struct str cluster_id, struct backup_line *ret_line);
/* In a write: the line is as the cluster is, and made where its backups are wanted. -ENOENT: it has none. */
must_check int backup_line_follow(struct tx *tx, struct arena *a, const struct cluster *cluster,
                                  struct backup_line *ret_line);
must_check int backup_line_save(struct tx *tx, struct arena *a, struct backup_line *line);
/* Whether the cluster's backups are wanted: backupEnabled, or a flex cluster. */
bool backup_is_wanted(const struct cluster *cluster);
struct str cluster_incarnation(const struct cluster *cluster);
/* Which backups the engine is asked about: of the line's current data, in its own region. */
struct engine_source backup_source(const struct backup_line *line);
/* The subject of jobs that work on the cluster's backups, one after the other, beside its other jobs. */
struct str backup_subject(struct arena *a, struct str cluster_id);
/* An event of the service about the cluster of the line, with a detail unless `text` is empty. */
must_check int backup_event(struct tx *tx, struct arena *a, const char *type, const char *severity,
                            const struct backup_line *line, const char *name, struct str text);

/* --- snapshots.c */

struct snapshot {
	struct doc doc;
	json_t *body, *plan;
};

/* One of the path's cluster, or of the line; -ENOENT. */
must_check int snapshot_load(struct call *c, struct str id, struct snapshot *ret_snapshot);
must_check int snapshot_get(struct tx *tx, struct arena *a, struct str id, struct snapshot *ret_snapshot);
must_check int snapshot_save(struct tx *tx, struct arena *a, struct snapshot *s);
/* All of a line, oldest first. */
must_check int snapshots_of(struct tx *tx, struct arena *a, struct str cluster_id, struct snapshot **ret_list,
                            size_t *ret_count);
bool snapshot_is(const struct snapshot *s, const char *status);
int64_t snapshot_expires(const struct snapshot *s);
/* Where it lies: in its own region. */
struct engine_source snapshot_source(const struct snapshot *s);
/* Whether it lies in that region: its own, or one with a copy that is complete. */
bool snapshot_lies_in(const struct snapshot *s, struct str region);
/* Where it can be read from: its own region first, then its copies. */
size_t snapshot_sources(struct arena *a, const struct snapshot *s, struct engine_source **ret_list);
/* Whether what failed so with one source is worth a try with the next: it is away, or has lost it. */
bool source_is_bad(int result);
/* Whether a window of the source's begins with it, or goes on over it: a moment after it in that window is restored
 * from it. What is offered, and what is announced as lost, both come from here. */
bool snapshot_is_base(const struct snapshot *s, const struct engine_source *of, const struct engine_window *w);
/* In a read: the stores of all snapshots that are kept are expected to be there. */
must_check int snapshots_expect(struct tx *tx, struct arena *a, struct repositories *all);

/* A snapshot that shall be taken. */
struct snapshot_wish {
	const char *type;     /* "onDemand", "scheduled", "fallback" */
	int frequency;        /* enum frequency of times.h */
	int64_t retention_ms; /* before what the schedule adds, and the policy asks for */
	struct str description;
	const json_t *items; /* ids of the policy items that it serves; or NULL */
};
/* In a write: queued, with its job. */
must_check int snapshot_take(struct tx *tx, struct arena *a, struct backup_line *line, const struct snapshot_wish *wish,
                             struct snapshot *ret_snapshot);
/* In a write: its document goes, and the engine forgets it, with its copies. */
must_check int snapshot_delete(struct tx *tx, struct arena *a, const struct snapshot *s);
/* Takes the copy in that region away. */
must_check int snapshot_drop_copy(struct tx *tx, struct arena *a, struct snapshot *s, struct str region);
/* Whether a restore job that is not over, or a download that can still be fetched, needs it. */
must_check int snapshot_in_use(struct tx *tx, struct arena *a, const struct snapshot *s, bool *ret_used);
/* How long from its creation a snapshot of that frequency is kept at least, by the project's compliance policy; 0: as
 * long as its owner says. */
must_check int retention_floor(struct tx *tx, struct arena *a, struct str group_id, int frequency, int64_t *ret_ms);

/* --- adopt.c: from the repository back into the catalogue */

/* A snapshot that lies in a repository. */
struct found_snapshot {
	struct engine_source of;
	struct engine_snapshot made; /* by its manifests, where there is no record */
	const json_t *record;        /* or NULL: an earlier version wrote none */
};
/* What its record tells goes into `of`. */
void found_fill(struct found_snapshot *f);
/* In a write, for the operator's command: it comes back into the catalogue, for 30 days or longer, as it was meant to
 * be kept and the compliance policy asks for; as a copy, where the catalogue has it of another region. A line of its
 * cluster is made where there is none, if `makes_line`: as of a cluster that is gone. -ENOENT: there is none.
 * -EEXIST: the snapshot is there. */
must_check int snapshot_adopt(struct tx *tx, struct arena *a, const struct found_snapshot *f, bool makes_line);
/* In a write: the project of that id is there again, in that organization, under the name that a record of its backups
 * has (NULL: none). -EEXIST: it is there. */
must_check int project_adopt(struct tx *tx, struct arena *a, struct str org_id, struct str group_id,
                             const json_t *record, struct str *ret_name);

/* --- schedule.c */

/* The items by which snapshots of the line are taken; an empty list where there are none. */
must_check int schedule_of(struct tx *tx, struct arena *a, const struct backup_line *line, json_t **ret_schedule);
/* The schedule is looked at, at the latest then. In a write. */
must_check int schedule_look(struct tx *tx, struct arena *a, const struct backup_line *line, int64_t at_ms);

/* --- restores.c */

struct restore {
	struct doc doc;
	json_t *body, *plan;
};

must_check int restore_get(struct tx *tx, struct arena *a, struct str id, struct restore *ret_restore);
must_check int restore_save(struct tx *tx, struct arena *a, struct restore *r);
bool restore_is_over(const struct restore *r);
/* Where the job's data can be read from: as it was asked for, then wherever else its snapshot lies. */
must_check int restore_sources(struct tx *tx, struct arena *a, const struct restore *r, struct engine_source **ret_list,
                               size_t *ret_count);
/* What is to be brought back, and where to. */
struct restore_wish {
	const char *delivery; /* "automated", "pointInTime", "download" */
	struct engine_point point;
	struct engine_source from;
	const struct snapshot *snapshot; /* or NULL */
	struct cluster *target;          /* NULL: a download */
	unsigned hours, downloads;       /* how long and how often it can be fetched; 0: DOWNLOAD_HOURS, always */
};
/* In a write of a call: 409 and 400 for a target that cannot take it; the target is being updated from now on. The body
 * has what the API shows of it, as the caller asked for it. */
must_check int restore_begin(struct call *c, const struct backup_line *line, const struct restore_wish *wish,
                             json_t *body, struct restore *ret_restore);
/* The cluster that a restore goes to: of that project, in which the caller must hold one of the row's roles. 404, 403,
 * with the problem written. */
must_check int restore_target(struct call *c, struct str group_id, struct str name, struct cluster *ret_cluster);

/* --- protection.c: in a write, for the operator's command: the project's compliance policy may be disabled from now
 * on. Without `really` it is only looked at. -ENOENT: it has none. -EALREADY: that was said before. */
must_check int protection_approve(struct tx *tx, struct arena *a, struct str group_id, bool really,
                                  struct str *ret_email);

/* --- figures.c: a part of /metrics. In a read, when the service starts: what the last sweep of any host has found, so
 * that nobody is told of empty repositories until the next. */
must_check int backup_figures_load(struct tx *tx, struct arena *a);
/* From any thread; touches no store. */
void backup_figures_write(struct buf *b, const struct service *s);

/* --- drills.c: in a write, for the operator's command: has the snapshot, or (empty) the newest, of the cluster of that
 * name or id proven. -ENOENT: no such cluster. -EEXIST: several have the name. -ENODATA: it has no such snapshot that
 * is complete. -EALREADY: one is waiting for it. */
struct drill_asked {
	struct str cluster_id, snapshot_id;
};
must_check int drill_request(struct tx *tx, struct arena *a, struct str cluster, struct str snapshot_id,
                             struct drill_asked *ret_asked);

/* --- download.c: GET DOWNLOAD_PATH<token>, outside the catalog: the link is all that it needs, for some hours. */
#define DOWNLOAD_PATH "/downloads/"
#define DOWNLOAD_HOURS 4
/* The link of one set of a restore job's snapshot, until the job expires. */
struct str download_link(struct arena *a, const struct service *s, const struct restore *r, size_t set);
/* Whether the caller, who sees the job, may have its links: who could ask for one. */
bool download_is_shown(const struct call *c, const struct restore *r);
void download_serve(struct service *s, struct request *r);

#endif

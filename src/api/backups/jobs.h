/* The jobs of backups, for their own files. */
#ifndef STEWARD_API_BACKUPS_JOBS_H
#define STEWARD_API_BACKUPS_JOBS_H

#include "api/backups/backups.h"

#define SNAPSHOT_JOB "backup_snapshot" /* takes one; {"id"} */
#define COPY_JOB "backup_copy"         /* to another region; {"id", "region"} */
#define FORGET_JOB "backup_forget"     /* {"group", "cluster", "incarnation", "snapshot", "region"} */
#define CLOCK_JOB "backup_clock"       /* looks at one line: what is due, what is over */
#define SWEEP_JOB "backup_sweep"
#define WATCH_ARCHIVE_JOB "backup_archive"
#define RESTORE_JOB "backup_restore" /* {"id"} */
#define RESTORE_ATTEMPTS 3
#define EXPIRE_JOB "backup_expire" /* of a download; {"id"} */
#define DRILL_JOB "backup_drill"   /* {"id", "cluster"} */
#define JUDGE_JOB "backup_judge"
#define SWEEP_MS 3600000LL
#define WATCH_ARCHIVE_MS 15000LL
#define JUDGE_MS 60000LL
#define WINDOW_DAYS 7 /* of a new schedule */
/* Who waits for somebody else's work looks again then. */
#define LOOK_AGAIN_MS 2000

int snapshot_step(struct job_run *r);
int snapshot_failed(struct tx *tx, struct job_run *r);
int copy_step(struct job_run *r);
int copy_failed(struct tx *tx, struct job_run *r);
int forget_step(struct job_run *r);
int clock_step(struct job_run *r);
int sweep_step(struct job_run *r);
int archive_watch_step(struct job_run *r);
int backup_judge_step(struct job_run *r);
int restore_step(struct job_run *r);
int restore_failed(struct tx *tx, struct job_run *r);
int expire_save(struct tx *tx, struct job_run *r);
int drill_step(struct job_run *r);
int drill_failed(struct tx *tx, struct job_run *r);
/* drills.c: in a write: asks for a drill of the line, each so many days (0: none), when it is time; *next is not later
 * than the next time. */
must_check int drill_look(struct tx *tx, struct arena *a, struct backup_line *line, unsigned days, int64_t now,
                          int64_t *next);
/* In a write: asks for one of that snapshot, now. */
must_check int drill_ask(struct tx *tx, struct arena *a, struct backup_line *line, const struct snapshot *s);

/* snapshots.c: what the API shows of the shape of the line's cluster. */
void snapshot_shape(struct arena *a, const struct backup_line *line, json_t *body);
/* adopt.c: in a read: what the catalogue says of the snapshot, for its record. NUL-terminated. */
must_check int snapshot_record(struct tx *tx, struct arena *a, const struct backup_line *line, const struct snapshot *s,
                               struct str *ret_text);

/* In a write: adds a job on the line's host, after those of the cluster's backups that wait. */
must_check int backup_job_add(struct tx *tx, struct arena *a, const char *kind, const struct backup_line *line,
                              json_t *args);

/* Where copies were, a sweep looks also when the last of them is gone. Whether that is new. */
bool backup_region_note(struct backup_line *line, struct str region);

/* schedule.c: the copies that a snapshot shall have: [{"region", "provider", "expires"}], a new array. */
must_check int schedule_copies(struct tx *tx, struct arena *a, const struct backup_line *line, const struct snapshot *s,
                               json_t **ret_copies);
/* The schedule begins with the cluster's backups, and ends with them. */
must_check int schedule_ensure(struct tx *tx, struct arena *a, const struct cluster *cluster);
must_check int schedule_remove(struct tx *tx, struct str cluster_id);
/* The cluster may have other regions than before. In a write. */
must_check int schedule_follow(struct tx *tx, struct arena *a, const struct cluster *cluster);
/* Days that any moment of shall be restored; 0: none. */
int64_t schedule_window_days(const json_t *schedule);
/* jobs.c: the next time at which a snapshot is due; 0: none. */
int64_t schedule_next(const json_t *schedule, int64_t after_ms);
/* Whether the schedule is in force: a paused cluster has nothing new to take. */
bool backup_is_running(const struct backup_line *line);
/* What the schedule adds to the retention of that frequency. */
int64_t schedule_extra_ms(const json_t *schedule, int frequency);
/* What a snapshot's plan has of its positions. */
json_t *snapshot_sets_json(const struct engine_snapshot *made);
/* Links for a snapshot to its line: what the snapshot's frequency is. */
int snapshot_frequency(const struct snapshot *s);

/* catalogue.c: from {"group", "cluster", "incarnation", "snapshot", "region"}. */
struct engine_source source_of(const json_t *from);
/* catalogue.c: the line's schedule counts from now on: nothing of the past is due by it. */
void running_put(struct backup_line *line);
/* A snapshot begins the window of a cluster whose log is archived, where none has or will. In a write. */
must_check int window_ensure(struct tx *tx, struct arena *a, struct backup_line *line);
/* The one that should have begun it has failed: it is ensured once more later, by the line's clock. In a write. */
must_check int window_again(struct tx *tx, struct arena *a, struct backup_line *line, int64_t now);
must_check int window_look(struct tx *tx, struct arena *a, struct backup_line *line, int64_t now, int64_t *next);
/* For the older views of the same documents (legacy.c, flex.c). */
struct segment;
struct resource;
struct restore_wish;
struct restore restore_of(struct arena *a, const struct doc *d);
bool restore_is_download(const struct restore *r);
must_check int snapshot_find(struct call *c, const struct resource *r, struct doc *ret_doc);
must_check int snapshot_segments(struct call *c, struct segment **ret_list, size_t *ret_count);
must_check int snapshot_remove_check(struct call *c, const struct doc *d);
must_check int snapshot_drop(struct call *c, const struct doc *d);
/* 409 where somebody has set doNotDelete. */
must_check int snapshot_protected(struct call *c, const struct snapshot *s);
/* 400 where the compliance policy asks for more. */
must_check int retention_check(struct call *c, int64_t ms, int frequency, const char *field);
must_check int restore_find(struct call *c, const struct resource *r, struct doc *ret_doc);
must_check int restore_segments(struct call *c, struct segment **ret_list, size_t *ret_count);
/* Runs `find` with a reader, in a row's prepare. */
must_check int restore_prepare(struct call *c, int (*find)(struct call *c, struct tx *reader));
/* The body's snapshotId, and the point that was found before the write, into the wish and the document of the job. */
must_check int restore_from_snapshot(struct call *c, struct restore_wish *wish, struct snapshot *s, json_t *body);
must_check int restore_from_point(struct call *c, struct restore_wish *wish, struct snapshot *s, json_t *body);
/* The path's schedule, with its cluster; what is wrong with a changed one; and its writing. */
must_check int schedule_load(struct call *c, struct cluster *ret_cluster, struct doc *ret_doc);
struct faults;
must_check int schedule_check(struct call *c, const struct cluster *cluster, const json_t *old, json_t *body,
                              struct faults *faults);
must_check int schedule_save(struct call *c, const struct cluster *cluster, struct doc *d, const json_t *body);

/* What a project no longer has is swept for a while. */
#define RESIDUE_KIND "backup_residue"

/* --- metering.c: in writes. A snapshot is kept as its document says; it is gone ("": all of the cluster); it was
 * taken; an export of these tables was made. */
must_check int snapshot_metered(struct tx *tx, struct arena *a, const struct snapshot *s);
must_check int snapshot_meter_end(struct tx *tx, struct arena *a, struct str cluster_id, struct str snapshot_id);
must_check int snapshot_meter_taken(struct tx *tx, struct arena *a, const struct backup_line *line,
                                    const struct snapshot *s);
must_check int export_meter(struct tx *tx, struct arena *a, const struct backup_line *line, struct str export_id,
                            const json_t *tables);

#endif

/* The jobs of snapshots, and the clock of each line. */
#ifndef STEWARD_API_SNAPSHOTS_JOBS_H
#define STEWARD_API_SNAPSHOTS_JOBS_H

#include "api/snapshots/snapshot.h"

#define SNAPSHOT_JOB "backup_snapshot" /* takes one; {"id"} */
#define COPY_JOB "backup_copy"         /* to another region; {"id", "region"} */
#define FORGET_JOB "backup_forget"     /* {"group", "cluster", "incarnation", "snapshot", "region"} */
#define CLOCK_JOB "backup_clock"       /* looks at one line: what is due, what is over */

/* The schedule is looked at, at the latest then. In a write. */
must_check int schedule_look(struct tx *tx, struct arena *a, const struct backup_line *line, int64_t at_ms);
int snapshot_step(struct job_run *r);
int snapshot_failed(struct tx *tx, struct job_run *r);
int copy_step(struct job_run *r);
int copy_failed(struct tx *tx, struct job_run *r);
int forget_step(struct job_run *r);
int clock_step(struct job_run *r);
/* Where copies were, a sweep looks also when the last of them is gone. Whether that is new. */
bool backup_region_note(struct backup_line *line, struct str region);
/* The next time at which a snapshot is due; 0: none. */
int64_t schedule_next(const json_t *schedule, int64_t after_ms);
/* Whether the schedule is in force: a paused cluster has nothing new to take. */
bool backup_is_running(const struct backup_line *line);
/* What a snapshot's plan has of its positions. */
json_t *snapshot_sets_json(const struct engine_snapshot *made);

#endif

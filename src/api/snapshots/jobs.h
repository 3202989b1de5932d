/* The jobs of snapshots. */
#ifndef STEWARD_API_SNAPSHOTS_JOBS_H
#define STEWARD_API_SNAPSHOTS_JOBS_H

#include "api/snapshots/snapshot.h"

#define SNAPSHOT_JOB "backup_snapshot" /* takes one; {"id"} */
#define COPY_JOB "backup_copy"         /* to another region; {"id", "region"} */
#define FORGET_JOB "backup_forget"     /* {"group", "cluster", "incarnation", "snapshot", "region"} */

int snapshot_step(struct job_run *r);
int snapshot_failed(struct tx *tx, struct job_run *r);
int copy_step(struct job_run *r);
int copy_failed(struct tx *tx, struct job_run *r);
int forget_step(struct job_run *r);

#endif

/* What alert configurations ask about the ages of backups. */
#ifndef STEWARD_API_SNAPSHOTS_JUDGE_H
#define STEWARD_API_SNAPSHOTS_JUDGE_H

#include "jobs/jobs.h"

#define JUDGE_JOB "backup_judge"
#define JUDGE_MS 60000LL

int backup_judge_step(struct job_run *r);

#endif

/* The job of a restore. */
#ifndef STEWARD_API_RESTORES_JOB_H
#define STEWARD_API_RESTORES_JOB_H

#include "jobs/jobs.h"

#define RESTORE_JOB "backup_restore" /* {"id"} */
#define RESTORE_ATTEMPTS 3

int restore_step(struct job_run *r);
int restore_failed(struct tx *tx, struct job_run *r);
extern const struct job_kinds restores_jobs;

#endif

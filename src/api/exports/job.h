/* The job of an export. */
#ifndef STEWARD_API_EXPORTS_JOB_H
#define STEWARD_API_EXPORTS_JOB_H

#include "jobs/jobs.h"

#define EXPORT_JOB "backup_export" /* {"id"} */

int export_step(struct job_run *r);
int export_failed(struct tx *tx, struct job_run *r);
extern const struct job_kinds exports_jobs;

#endif

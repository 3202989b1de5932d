/* What the catalogue does not want any more is taken out of the repositories. */
#ifndef STEWARD_API_SNAPSHOTS_SWEEP_H
#define STEWARD_API_SNAPSHOTS_SWEEP_H

#include "jobs/jobs.h"

#define SWEEP_JOB "backup_sweep"
#define WATCH_ARCHIVE_JOB "backup_archive"
#define SWEEP_MS 3600000LL
#define WATCH_ARCHIVE_MS 15000LL

int sweep_step(struct job_run *r);
int archive_watch_step(struct job_run *r);

#endif

/* What /metrics tells of jobs: how many there are in the store, which is counted now and then, and what this process
 * has done. */
#ifndef STEWARD_JOBS_FIGURES_H
#define STEWARD_JOBS_FIGURES_H

#include "base/buf.h"
#include "jobs/jobs.h"

/* In a read: counts the jobs by kind and state, for the pages from now on. */
must_check int jobs_figures_count(struct tx *tx);
/* From any thread; touches no store. `j` may be NULL. */
void jobs_figures_write(struct buf *b, const struct jobs *j);

#endif

/* The clock of each line: what is due, and what is over. */
#ifndef STEWARD_API_SNAPSHOTS_CLOCK_H
#define STEWARD_API_SNAPSHOTS_CLOCK_H

#include "api/snapshots/line.h"

int clock_step(struct job_run *r);

#endif

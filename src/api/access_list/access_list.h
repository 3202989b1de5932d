/* Projects' IP access lists. */
#ifndef STEWARD_API_ACCESS_LIST_ACCESS_LIST_H
#define STEWARD_API_ACCESS_LIST_ACCESS_LIST_H

#include "jobs/jobs.h"

extern const struct job_kinds access_list_jobs;

#endif

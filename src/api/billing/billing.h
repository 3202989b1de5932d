/* Billing: what ran is metered here, and what it costs is told from there. */
#ifndef STEWARD_API_BILLING_BILLING_H
#define STEWARD_API_BILLING_BILLING_H

#include "api/clusters/clusters.h"
#include "jobs/jobs.h"

/* --- metering.c: what engines have, into the meter */

extern const struct cluster_part metering_part;
extern const struct job_kinds metering_jobs;
/* From now on this process watches its nodes; before any of its jobs. */
must_check int metering_start(struct store *store);
/* Looks at all nodes of this host, and sets its mark to the moment at which it began: once the engine runs, before any
 * job; and then on job threads, outside of a read. */
must_check int metering_mark_now(struct service *s, struct tx *reader, struct arena *a);

/* --- jobs.c: invoices, each hour */

extern const struct job_kinds invoices_jobs;

#endif

/* Billing: what ran is metered here, and what it costs is told from there. */
#ifndef STEWARD_API_BILLING_BILLING_H
#define STEWARD_API_BILLING_BILLING_H

#include "api/clusters/clusters.h"
#include "jobs/jobs.h"
#include "meter/meter.h"

/* --- metering.c: what engines have, into the meter */

extern const struct cluster_part metering_part;
extern const struct job_kinds metering_jobs;
/* From now on this process watches its nodes; before any of its jobs. */
must_check int metering_start(struct store *store);
/* Looks at all nodes of this host, and sets its mark to the moment at which it began: once the engine runs, before any
 * job; and then on job threads, outside of a read. */
must_check int metering_mark_now(struct service *s, struct tx *reader, struct arena *a);

/* -ENOENT: its project is gone. */
must_check int metering_subject(struct tx *tx, struct arena *a, const struct cluster *cluster,
                                struct meter_subject *ret_subject);
/* The sizes of shared hosts: what they need beside the node comes with it. */
bool metering_is_shared(const struct engine_node *n);

/* --- data_out.c: what databases have sent to clients, into the meter */

/* Whether something is to be noted, in a read; and noting it, in a write of its own. */
must_check int data_out_look(const struct service *s, struct tx *tx, struct arena *a, struct str cluster_id,
                             int64_t at_ms, bool *ret_due);
must_check int data_out_note(const struct service *s, struct str cluster_id);

/* --- jobs.c: invoices, each five minutes */

extern const struct job_kinds invoices_jobs;

#endif

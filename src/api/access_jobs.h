/* How users, roles and access lists reach the databases. A change asks, in its own transaction, for a job on each cluster
 * that it concerns; the call's answer is held until the jobs have run, or a few seconds have passed: then a change that takes
 * rights away is answered with 503, because they may still be had. The jobs are rows: what the answer did not wait for is
 * done nevertheless. */
#ifndef STEWARD_API_ACCESS_JOBS_H
#define STEWARD_API_ACCESS_JOBS_H

#include "gate/call.h"
#include "jobs/jobs.h"

#define ACCESS_JOB JOB_PASSES
#define ACCESS_ATTEMPTS 100000u /* a database that is out of reach today may be back tomorrow */

/* In a call's write: who may do what in the project's databases has changed. `users`: the documents of database users, as
 * they were and are, whose clusters alone are concerned; none: all clusters. */
must_check int access_changed(struct call *c, const json_t *const *users, size_t count);
/* The same outside a call: nobody waits. */
must_check int access_ask(struct tx *tx, struct arena *a, struct str group_id);

/* In a write that asks for the cluster's own job: one of ours that waits for another attempt does not keep it waiting. */
must_check int access_hurry(struct tx *tx, struct arena *a, struct str cluster_id);

enum access_state { ACCESS_ACTIVE, ACCESS_PENDING, ACCESS_FAILED };
/* Whether the project's running clusters have what was last asked for. */
must_check int access_state(struct tx *tx, struct arena *a, struct str group_id, enum access_state *ret_state);

/* Of the kind ACCESS_JOB, with the cluster as the subject. */
int access_step(struct job_run *r);

/* For whoever applies access to a cluster: the stamp from before it was read from the store, and word of it when it is in
 * force. */
uint64_t access_stamp(void);
void access_applied(struct str cluster_id, uint64_t stamp);
/* And word of what is not in force, for the answers that wait. */
void access_behind(struct str cluster_id, uint64_t stamp, const char *why);

/* The mark that no node of a cluster takes clients, so that changes need not wait for it. Whoever lets clients in takes it
 * away first, and reads what is to be applied then. */
must_check int access_is_shut(struct tx *tx, struct arena *a, struct str cluster_id, bool *ret_shut);
must_check int access_shut_set(struct tx *tx, struct str cluster_id, bool shut);

/* From the main thread, now and then: answers that have waited long enough are sent, and those whose jobs another process
 * has run. */
void access_wait_poll(struct tx *reader);
/* The service stops: nothing is held any more. */
void access_wait_close(void);

#endif

/* What runs after the answer: making clusters what their documents say. */
#ifndef STEWARD_API_CLUSTERS_JOBS_H
#define STEWARD_API_CLUSTERS_JOBS_H

#include "api/clusters/clusters.h"
#include "call/service.h"
#include "jobs/jobs.h"

/* outage.c: regions that shall be down (["AWS/US_EAST_1"], or NULL), and the step of the simulation that a
 * converge has completed. */
must_check int outage_regions(struct tx *tx, struct arena *a, struct str cluster_id, json_t **ret_regions);
must_check int outage_converged(struct tx *tx, struct arena *a, const struct cluster *cluster);
/* Adds a link to the cluster's simulation, where there is one, to the entity that was written last. */
void outage_link(struct call *c, const struct doc *cluster);
/* The cluster goes: no job of the simulation's end stays. */
must_check int outage_forget(struct tx *tx, struct arena *a, struct str cluster_id);
/* args.c: the engine's settings from the process arguments. */
must_check int process_params(struct tx *tx, struct arena *a, const struct cluster *cluster,
                              struct engine_param **ret_params, size_t *ret_count, bool *ret_quorum);
/* samples.c. The link: to the last load of the cluster, as outage_link() does. */
void sample_link(struct call *c, const struct doc *cluster);
int sample_step(struct job_run *r);
int sample_failed(struct tx *tx, struct job_run *r);
#define SAMPLE_JOB "sample_load"
/* actions.c: another primary for every shard. */
int restart_step(struct job_run *r);
int restart_failed(struct tx *tx, struct job_run *r);
#define RESTART_JOB "restart_primaries"
/* repair.c: a cluster whose job failed is tried again after a while; the caller saves it. Forgotten once it is
 * as wanted, or gone. */
must_check int repair_later(struct tx *tx, struct arena *a, struct cluster *cluster, const char *why, bool missing);
must_check int repair_forget(struct tx *tx, struct arena *a, struct cluster *cluster);
int repair_save(struct tx *tx, struct job_run *r);
#define ORPHANS_JOB "cluster_orphans"
#define ORPHANS_MS 60000
int orphans_step(struct job_run *r); /* orphans.c */
#define REPAIR_JOB "cluster_repair"
/* A write about a cluster that the engine asks for and nobody waits for; `lost`: what is missing should it fail. */
struct cluster_note {
	struct write write;
	const struct service *service;
	int (*run)(struct tx *tx, struct arena *a, const struct cluster_note *n);
	const char *lost;
	enum engine_full full;
	char id[25];
};
void cluster_note_write(const struct cluster_note *n, const char *cluster_id);
/* An outage simulation's time is over. */
int outage_end_save(struct tx *tx, struct job_run *r);
#define OUTAGE_END_JOB "outage_end"
/* lifetime.c: the hours of its life that the request gives a cluster; what is wrong with them; what its oldest form
 * shows of them. */
must_check int lifetime_set(struct call *c, struct cluster *cluster, bool is_new);
void lifetime_check(struct call *c, struct faults *faults);
void lifetime_show(struct arena *a, const struct doc *d, json_t *view);
int lifetime_save(struct tx *tx, struct job_run *r);
#define LIFETIME_JOB "cluster_end"

#endif

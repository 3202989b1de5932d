/* What befalls clusters by itself, from the engine to the project's events. */
#ifndef STEWARD_API_CLUSTERS_WATCH_H
#define STEWARD_API_CLUSTERS_WATCH_H

#include "api/clusters/cluster.h"

/* engine_options.changed, with the service. */
void watch_changed(void *service, const char *cluster_id);
/* In a write: the cluster's nodes are held against what was last told. Nothing where the engine has no real nodes. */
must_check int watch_ask(struct tx *tx, struct arena *a, const struct service *s, struct str cluster_id);
int watch_step(struct job_run *r);
#define WATCH_JOB "cluster_watch"
#define WATCH_KIND "cluster_watch"

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

#endif

/* A cluster in hand, and what belongs to one and is kept by other families. */
#ifndef STEWARD_API_CLUSTERS_CLUSTER_H
#define STEWARD_API_CLUSTERS_CLUSTER_H

#include "api/clusters/connection_strings.h"
#include "call/call.h"
#include "call/service.h"
#include "engine/engine.h"
#include "jobs/jobs.h"

#define CLUSTER_KIND "cluster"
#define FLEX_KIND "flex_cluster"          /* kept the same way, in a list of its own */
#define CLUSTER_LABEL_REF "cluster_label" /* from the label in host names to the cluster's id */
#define CLUSTER_JOB "cluster"             /* makes a cluster what its document says, or takes it away */

/* One cluster in hand; body and plan are freed with the arena. */
struct cluster {
	struct doc doc;
	json_t *body, *plan;
};

/* What belongs to a cluster and is kept by another family attaches here; edge/families.c lists the parts. Each hook may
 * be NULL; they return 0 or negative. */
struct cluster_want {
	struct engine_cluster engine;
	bool peered; /* clients in peered networks have connection strings of their own */
	const struct connection_endpoint *endpoints;
	size_t endpoint_count;
};
/* What the engine has of a cluster. */
struct cluster_sighting {
	const struct engine_node *nodes; /* as they were made; NULL: not known, a change is under way */
	size_t node_count;
	const struct cluster_status *status; /* without nodes: it is gone */
	int64_t at_ms;                       /* when it came to be so */
};
struct cluster_part {
	/* In the write that makes a cluster, that changes what is wanted of it, and that takes it away. */
	int (*created)(struct tx *tx, struct arena *a, const struct cluster *cluster);
	int (*changed)(struct tx *tx, struct arena *a, const struct cluster *cluster);
	int (*removed)(struct tx *tx, struct arena *a, const struct cluster *cluster);
	/* In a read, before the engine is told: what the part wants of the nodes, and who may connect to them. */
	int (*wanted)(struct tx *tx, struct arena *a, const struct cluster *cluster, struct cluster_want *want);
	int (*access)(struct tx *tx, struct arena *a, struct str group_id, struct str cluster_name,
	              struct engine_access *access);
	/* In the write that changes who may connect to the project's databases. */
	int (*access_asked)(struct tx *tx, struct arena *a, struct str group_id);
	/* On the cluster's host, outside of a transaction: when who may connect was told to the engine, and (reader
	 * NULL) when the cluster is gone. A failure is one of the job, which tries again: who was taken out may still
	 * get there. */
	int (*applied)(const struct service *s, struct tx *reader, struct arena *a, struct str cluster_id);
	/* In the write that notes what the engine has made. Maintained: it was asked to bring all up to date. */
	int (*converged)(struct tx *tx, struct arena *a, const struct cluster *cluster, bool maintained);
	/* In a write, whenever it was looked what there is of the nodes, whatever is wanted of them by now. */
	int (*observed)(struct tx *tx, struct arena *a, const struct service *s, const struct cluster *cluster,
	                const struct cluster_sighting *sighting);
	/* More links of a cluster that was just written alone, by entity_link_op(). */
	void (*links)(struct call *c, const struct doc *cluster);
	/* In a call: what the part does not allow a cluster to be, as faults. */
	int (*rules)(struct call *c, const json_t *cluster, struct faults *faults);
	/* In a read, before a log is read. */
	int (*log)(struct tx *tx, struct arena *a, struct str group_id, struct engine_log *log);
};
extern const struct cluster_part *const cluster_parts[];
extern const size_t cluster_part_count;

#endif

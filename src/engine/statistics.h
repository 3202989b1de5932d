/* Statistics: what is counted and measured, and what there is to measure. From any thread at any time. */
#ifndef STEWARD_ENGINE_STATISTICS_H
#define STEWARD_ENGINE_STATISTICS_H

#include "engine/core.h"

/* What runs on this host, for monitoring. */
struct engine_stats {
	unsigned nodes[NODE_KINDS][2][NODE_STATES]; /* by kind, whether it leads, and state */
	uint64_t failovers, switchovers, ends;      /* since the start */
	unsigned standbys, streaming;               /* that run; of them, those that follow their primary */
	uint64_t lag_bytes;                         /* of the standby that is furthest behind, as measured last */
	double lag_seconds;
};

/* What a node has sent to clients, by a counter that goes on when the node is restarted. One that was made anew has
 * another identity, and begins at nothing. */
struct engine_sent {
	const char *node;
	char counter[17]; /* its identity */
	int64_t bytes;
};

struct engine_statistics_ops {
	/* Of this host. Quick. */
	void (*host)(struct engine *e, struct engine_stats *ret_stats);
	/* Asks one node for the names of its databases, and finds those of the disk partitions that hold its data. May
	 * wait for the node a few seconds, so not for a loop. -ENOENT: no such node; -EAGAIN: it does not run, or does
	 * not answer. */
	int (*databases)(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
	                 struct str **ret_names, size_t *ret_count);
	int (*partitions)(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
	                  struct str **ret_names, size_t *ret_count);
	/* Which of these ("database.table") are tables of the node that its users can have made. As the others. */
	int (*tables)(struct engine *e, const char *cluster_id, const char *node, const struct str *names, size_t count,
	              bool *ret_there);
	/* Of the cluster's nodes on this host that clients come to and that count it. Quick. */
	int (*sent)(struct engine *e, const char *cluster_id, struct arena *a, struct engine_sent **ret_list,
	            size_t *ret_count);
};

#endif

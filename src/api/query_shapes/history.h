/* What shapes took by periods of time, kept in the store over restarts. */
#ifndef STEWARD_API_QUERY_SHAPES_HISTORY_H
#define STEWARD_API_QUERY_SHAPES_HISTORY_H

#include "api/clusters/clusters.h"
#include "api/query_shapes/shapes.h"

struct history_span {
	int64_t from_ms, to_ms;
};

/* In a write: adds what the nodes have counted since they were last asked. */
must_check int history_note(struct tx *tx, struct arena *a, struct str cluster_id, const struct shapes *live,
                            int64_t now_ms);
/* In a read: what the shapes took in the periods that the span touches, with what the nodes have told now (`live`), as
 * far as it was in these. ret_span: those periods, as far back as anything is kept. -ENOENT: nothing is kept of the
 * cluster. */
must_check int history_read(struct tx *tx, struct arena *a, struct str cluster_id, const struct shapes *live,
                            bool all_nodes, const struct history_span *span, int64_t now_ms, struct shapes *ret_shapes,
                            struct history_span *ret_span);
/* In the write that takes the cluster away. */
must_check int history_removed(struct tx *tx, struct arena *a, const struct cluster *cluster);

#endif

/* The path's process, for the other files of the family. */
#ifndef STEWARD_API_METRICS_PROCESSES_H
#define STEWARD_API_METRICS_PROCESSES_H

#include "api/metrics/metrics.h"

/* When the node was asked for; of one from before that was noted, when the cluster was. */
int64_t process_created_ms(const struct cluster *cluster, const struct node_status *n);
/* Whether the process has a database (or else a partition) of that name: 0 or -ENOENT. -EAGAIN: it does not answer. */
must_check int process_name_check(struct call *c, const struct cluster *cluster, const struct node_status *node,
                                  bool databases, struct str name);

/* session_end.c: DELETE {processId}:activity ends the session that the parameters name, or its statement, before the
 * write that notes it as an event. */
must_check int process_session_end_prepare(struct call *c);
must_check int process_session_end(struct call *c);
#endif

/* Drills: whether a snapshot comes back, tried before it is needed. */
#ifndef STEWARD_API_SNAPSHOTS_DRILLS_H
#define STEWARD_API_SNAPSHOTS_DRILLS_H

#include "api/snapshots/snapshot.h"

#define DRILL_JOB "backup_drill" /* {"id", "cluster"} */

/* In a write, for the operator's command: has the snapshot, or (empty) the newest, of the cluster of that
 * name or id proven. -ENOENT: no such cluster. -EEXIST: several have the name. -ENODATA: it has no such snapshot that
 * is complete. -EALREADY: one is waiting for it. */
struct drill_asked {
	struct str cluster_id, snapshot_id;
};

must_check int drill_request(struct tx *tx, struct arena *a, struct str cluster, struct str snapshot_id,
                             struct drill_asked *ret_asked);
int drill_step(struct job_run *r);
int drill_failed(struct tx *tx, struct job_run *r);
/* In a write: asks for a drill of the line, each so many days (0: none), when it is time; *next is not later
 * than the next time. */
must_check int drill_look(struct tx *tx, struct arena *a, struct backup_line *line, unsigned days, int64_t now,
                          int64_t *next);
/* In a write: asks for one of that snapshot, now. */
must_check int drill_ask(struct tx *tx, struct arena *a, struct backup_line *line, const struct snapshot *s);

#endif

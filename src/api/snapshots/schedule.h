/* Backup schedules. */
#ifndef STEWARD_API_SNAPSHOTS_SCHEDULE_H
#define STEWARD_API_SNAPSHOTS_SCHEDULE_H

#include "api/snapshots/timetable.h"

struct faults;

/* The schedule begins with the cluster's backups, and ends with them. */
must_check int schedule_ensure(struct tx *tx, struct arena *a, const struct cluster *cluster);
must_check int schedule_remove(struct tx *tx, struct str cluster_id);
/* The cluster may have other regions than before. In a write. */
must_check int schedule_follow(struct tx *tx, struct arena *a, const struct cluster *cluster);
/* The path's schedule, with its cluster; what is wrong with a changed one; and its writing. */
must_check int schedule_load(struct call *c, struct cluster *ret_cluster, struct doc *ret_doc);
must_check int schedule_check(struct call *c, const struct cluster *cluster, const json_t *old, json_t *body,
                              struct faults *faults);
must_check int schedule_save(struct call *c, const struct cluster *cluster, struct doc *d, const json_t *body);

#endif

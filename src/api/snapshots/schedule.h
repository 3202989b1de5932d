/* Backup schedules. */
#ifndef STEWARD_API_SNAPSHOTS_SCHEDULE_H
#define STEWARD_API_SNAPSHOTS_SCHEDULE_H

#include "api/snapshots/snapshot.h"

#define SCHEDULE_KIND "backup_schedule"
#define WINDOW_DAYS 7 /* of a new schedule */

struct faults;

/* The items by which snapshots of the line are taken; an empty list where there are none. */
must_check int schedule_of(struct tx *tx, struct arena *a, const struct backup_line *line, json_t **ret_schedule);
/* The copies that a snapshot shall have: [{"region", "provider", "expires"}], a new array. */
must_check int schedule_copies(struct tx *tx, struct arena *a, const struct backup_line *line, const struct snapshot *s,
                               json_t **ret_copies);
/* The schedule begins with the cluster's backups, and ends with them. */
must_check int schedule_ensure(struct tx *tx, struct arena *a, const struct cluster *cluster);
must_check int schedule_remove(struct tx *tx, struct str cluster_id);
/* The cluster may have other regions than before. In a write. */
must_check int schedule_follow(struct tx *tx, struct arena *a, const struct cluster *cluster);
/* Days that any moment of shall be restored; 0: none. */
int64_t schedule_window_days(const json_t *schedule);
/* What the schedule adds to the retention of that frequency. */
int64_t schedule_extra_ms(const json_t *schedule, int frequency);
/* The path's schedule, with its cluster; what is wrong with a changed one; and its writing. */
must_check int schedule_load(struct call *c, struct cluster *ret_cluster, struct doc *ret_doc);
must_check int schedule_check(struct call *c, const struct cluster *cluster, const json_t *old, json_t *body,
                              struct faults *faults);
must_check int schedule_save(struct call *c, const struct cluster *cluster, struct doc *d, const json_t *body);

#endif

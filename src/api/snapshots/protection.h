/* The backup compliance policy of a project, and what it holds everybody to. */
#ifndef STEWARD_API_SNAPSHOTS_PROTECTION_H
#define STEWARD_API_SNAPSHOTS_PROTECTION_H

#include "api/snapshots/snapshot.h"
#include "catalog/schema.h"

/* Of a project: floors of retention that nobody goes below. DataProtectionSettings20231001, with the project's id. */
#define COMPLIANCE_KIND "backup_compliance"

/* NULL: the project has none. */
must_check int protection_load(struct tx *tx, struct arena *a, struct str group_id, json_t **ret_policy);
/* In a call: what a cluster's schedule lacks of the policy. */
must_check int protection_schedule_check(struct call *c, const json_t *schedule, struct faults *faults);
/* Makes a schedule what the project's policy asks for; whether it had to. */
must_check int protection_schedule_raise(struct tx *tx, struct arena *a, struct str group_id, json_t *schedule,
                                         bool *ret_raised);
/* The line has the window of the schedule from now on. */
must_check int protection_window_follow(struct tx *tx, struct arena *a, struct str cluster_id, const json_t *schedule);
/* How long from its creation a snapshot's copies are kept at least: as the snapshot where the policy protects copies;
 * else 0. */
must_check int protection_copies(struct tx *tx, struct arena *a, const struct snapshot *s, int64_t *ret_ms);
/* How far back any moment of the line shall be restored, in milliseconds; 0: its log is not wanted. Of a cluster that
 * is gone, as long as the policy says. */
must_check int protection_log(struct tx *tx, struct arena *a, const struct backup_line *line, int64_t *ret_ms);
/* When the data of that incarnation ended; 0: it is the cluster's. -ENOENT: nobody knows it any more. */
must_check int incarnation_end(const struct backup_line *line, struct str incarnation, int64_t *ret_ms);
/* Whether the window that the policy asks for begins with the snapshot, one of the line's `list`. */
must_check int protection_window(struct tx *tx, struct arena *a, const struct backup_line *line,
                                 const struct snapshot *list, size_t count, const struct snapshot *s, bool *ret_held);
/* cluster_part.rules: backups that the policy asks for stay on. */
int protection_cluster_rules(struct call *c, const json_t *cluster, struct faults *faults);
/* In a write, for the operator's command: the project's compliance policy may be disabled from now
 * on. Without `really` it is only looked at. -ENOENT: it has none. -EALREADY: that was said before. */
must_check int protection_approve(struct tx *tx, struct arena *a, struct str group_id, bool really,
                                  struct str *ret_email);

#endif

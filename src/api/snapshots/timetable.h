/* What backup schedules say. */
#ifndef STEWARD_API_SNAPSHOTS_TIMETABLE_H
#define STEWARD_API_SNAPSHOTS_TIMETABLE_H

#include "api/snapshots/snapshot.h"
#include "api/snapshots/times.h"

#define SCHEDULE_KIND "backup_schedule"

/* The items by which snapshots of the line are taken; an empty list where there are none. */
must_check int schedule_of(struct tx *tx, struct arena *a, const struct backup_line *line, json_t **ret_schedule);
/* The copies that a snapshot shall have: [{"region", "provider", "expires"}], a new array. */
must_check int schedule_copies(struct tx *tx, struct arena *a, const struct backup_line *line, const struct snapshot *s,
                               json_t **ret_copies);
/* The copy's end by the setting of its region; 0: with the snapshot. */
int64_t schedule_copy_expires(const json_t *schedule, const json_t *setting, const struct snapshot *s);
/* Days that any moment of shall be restored; 0: none. */
int64_t schedule_window_days(const json_t *schedule);
/* What the schedule adds to the retention of that frequency. */
int64_t schedule_extra_ms(const json_t *schedule, int frequency);
/* The next time at which a snapshot is due; 0: none. */
int64_t schedule_next(const json_t *schedule, int64_t after_ms);
/* Its items, each of them, and the time of day that they go by. */
const json_t *schedule_items(const json_t *schedule);
struct timed_item schedule_item(const json_t *item);
struct reference schedule_reference(const json_t *schedule);

#endif

/* When an archive's rows may move: the field "schedule" of the API, in UTC. Pure code. */
#ifndef STEWARD_API_ARCHIVES_SCHEDULE_H
#define STEWARD_API_ARCHIVES_SCHEDULE_H

#include "catalog/schema.h"

/* A window of time: [from, to). */
struct archive_window {
	int64_t from_ms, to_ms;
};

/* What a schedule that the schema has let pass lacks. */
void archive_schedule_check(const json_t *schedule, struct arena *a, struct faults *faults);
/* The window that the moment is in, or else the next one. False: the schedule has no windows; rows may move at any
 * time. */
bool archive_schedule_window(const json_t *schedule, int64_t at_ms, struct archive_window *ret_window);

#endif

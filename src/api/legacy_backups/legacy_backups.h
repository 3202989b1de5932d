/* What the older views of backups share. */
#ifndef STEWARD_API_LEGACY_BACKUPS_LEGACY_BACKUPS_H
#define STEWARD_API_LEGACY_BACKUPS_LEGACY_BACKUPS_H

#include "api/snapshots/snapshots.h"

#define CHECKPOINT_MINUTES 15 /* between two that are listed, unless the schedule says otherwise */

/* {"date", "increment"}; units 0: without the latter. */
json_t *timestamp_make(int64_t ms, int64_t units);
int64_t checkpoint_minutes(const struct backup_line *line);
/* The moment of a checkpoint of the path's cluster; -ENOENT. On a thread that may wait, in a read of c->tx. */
must_check int checkpoint_time(struct call *c, struct str id, int64_t *ret_ms);

#endif

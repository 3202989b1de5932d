/* Backups that the store cannot know of: it is an older copy, and they were made after it was. A sweep leaves them, and
 * names them; once, a service that was started on an older store deleted all newer snapshots within an hour.
 *
 * The store has the periods in which a service ran on it (meta BACKUP_PERIODS: [[from, to], ...], ms). What was made in
 * one of them, by the time in its id, and is not in the catalogue, was deleted. What was made in no period is a
 * stranger. */
#ifndef STEWARD_API_SNAPSHOTS_STRANGERS_H
#define STEWARD_API_SNAPSHOTS_STRANGERS_H

#include "store/store.h"

#define BACKUP_PERIODS "backup_periods"

/* In a write: the service that was started then runs on this store now. */
must_check int periods_note(struct tx *tx, struct arena *a, int64_t started_ms);

struct strangers;
/* In a read; in the arena. */
must_check int strangers_new(struct tx *tx, struct arena *a, struct strangers **ret_strangers);
/* The catalogue has it, whatever its state is. Borrowed. */
void strangers_know(struct strangers *s, struct str id);
/* After all that are known: whether the store cannot know of what has that id. */
bool strangers_is(void *ctx, struct str id);
/* For the log: counts a snapshot, "CLUSTER/SNAPSHOT". */
void strangers_tell(void *ctx, struct str name);
/* How many were told, and the names of the first of them. */
size_t strangers_told(struct strangers *s, struct str *ret_names);

#endif

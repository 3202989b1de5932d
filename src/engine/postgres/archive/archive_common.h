/* Points that all sets of a cluster share. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_COMMON_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_COMMON_H

#include "engine/postgres/model/model.h"

struct pg_archive;
struct pg_common;

/* One point that all sets share is in the log of each. Of a cluster with one set, its position. */
int pg_checkpoint_make(struct pg_cluster *c, struct arena *a, struct engine_checkpoint *ret_checkpoint,
                       const char **ret_why);
void pg_common_tick(struct pg_cluster *c, struct pg_archive *a); /* a point of all sets, when it is time */
int pg_common_store(struct pg_cluster *c, struct pg_archive *a);
/* Takes back the points of times that are still to come: the clock was put back. */
int pg_common_take_back(struct pg_cluster *c, struct pg_archive *a, int64_t now_ms);
void pg_common_tell(const struct pg_common *m, struct arena *a, struct engine_checkpoint *ret_checkpoint);

#endif

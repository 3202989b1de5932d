/* The marks of a set, and the index that they stand in. For the archive's worker alone, without a lock. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_MARKS_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_MARKS_H

#include "engine/postgres/model/model.h"

struct pg_archive;
struct pg_archive_set;
struct pg_mark;

/* Puts what was added to the index when it is time, or now. */
int pg_archive_index(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, bool now);
int pg_archive_index_put(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s); /* the list of hours */
int pg_archive_marks_put(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s); /* the hour's marks */
/* The hour's marks replace those that are held. An hour that is not there has none. */
int pg_archive_hour_load(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, int64_t hour);
/* All log up to the mark is stored. */
int pg_archive_mark_add(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, const struct pg_mark *m);
/* The log had not moved since the last mark when it was looked at, after `now`. */
void pg_archive_mark_extend(struct pg_archive *a, struct pg_archive_set *s, int64_t now);

#endif

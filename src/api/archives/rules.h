/* What an archive may be, beyond what schemas say. Pure code. */
#ifndef STEWARD_API_ARCHIVES_RULES_H
#define STEWARD_API_ARCHIVES_RULES_H

#include "catalog/schema.h"

/* Faults of an archive as a whole, by the paths of the API's fields. */
void archive_rules_check(const json_t *archive, struct arena *a, struct faults *faults);
/* Sets what the caller has left out: the schedule, the form of dates, the partition fields. */
void archive_rules_complete(json_t *archive);
/* A change of an archive: objects in it are merged, but one of another type replaces what was there, and so does an
 * expiration rule, because an empty one ends it. */
void archive_rules_merge(json_t *archive, const json_t *change);

#endif

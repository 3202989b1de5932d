/* Filters of the audit log: which actions of which users are recorded. */
#ifndef STEWARD_API_MAINTENANCE_AUDIT_FILTER_H
#define STEWARD_API_MAINTENANCE_AUDIT_FILTER_H

#include "filter/filter.h"

/* What a user's actions leave in the log: classes as in engine_audit ("read, write"; "" for none). user NULL: somebody
 * whom the filter does not name. successes: also reads and writes that were allowed. */
struct str audit_filter_classes(const json_t *filter, const char *user, bool successes, struct arena *a);
/* Whether logins, and refusals for want of a right, are recorded. */
bool audit_filter_has_logins(const json_t *filter);
bool audit_filter_has_denials(const json_t *filter);

#endif

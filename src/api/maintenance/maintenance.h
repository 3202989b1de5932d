/* Maintenance and the audit log of a project's databases, as far as others need them. */
#ifndef STEWARD_API_MAINTENANCE_MAINTENANCE_H
#define STEWARD_API_MAINTENANCE_MAINTENANCE_H

#include "call/call.h"
#include "engine/engine.h"

/* What they record of these users, where that is something else. */
must_check int audit_users_join(struct tx *tx, struct arena *a, struct str group_id, struct engine_user *users,
                                size_t count);

extern const struct cluster_part maintenance_part, audit_log_part;
extern const struct job_kinds maintenance_jobs;

#endif

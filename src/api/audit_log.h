/* The audit log of a project's databases, as far as others need it. */
#ifndef STEWARD_API_AUDIT_LOG_H
#define STEWARD_API_AUDIT_LOG_H

#include "engine/engine.h"
#include "gate/call.h"

/* What a project's databases record of everybody. */
must_check int audit_log_load(struct tx *tx, struct arena *a, struct str group_id, struct engine_audit *ret_audit);
/* What they record of these users, where that is something else. */
must_check int audit_users_join(struct tx *tx, struct arena *a, struct str group_id, struct engine_user *users,
                                size_t count);
/* Since when logins and refusals belong to it: sets the two fields of a log that is about to be read. */
must_check int audit_log_lines(struct tx *tx, struct arena *a, struct str group_id, struct engine_log *log);

#endif

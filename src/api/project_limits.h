/* Limits of a project, for the families whose resources they count. */
#ifndef STEWARD_API_PROJECT_LIMITS_H
#define STEWARD_API_PROJECT_LIMITS_H

#include "gate/call.h"

/* In a write, before the inserts: 400 PROJECT_LIMIT_EXCEEDED, with the limit's name, the usage and the limit as
 * parameters, when the call's project may not have that many more of what the limit counts. The name is one of
 * api/projects.json that counts documents. */
must_check int limit_enforce(struct call *c, const char *limit_name, int64_t more);

#endif

/* What a database user may be. */
#ifndef STEWARD_API_DATABASE_USERS_RULES_H
#define STEWARD_API_DATABASE_USERS_RULES_H

#include "call/call.h"

/* In a write: a new user's document (old NULL), or one with the call's changes, against the rules. 0, or negative after
 * the faults are written. */
must_check int database_user_check(struct call *c, const json_t *document, const json_t *old);

#endif

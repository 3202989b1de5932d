/* The operator's limits, from the configuration file and from the store, as rules for the limiter. */
#ifndef STEWARD_GATE_RULES_H
#define STEWARD_GATE_RULES_H

#include "base/config.h"
#include "limit/limit.h"
#include "store/store.h"

/* The set of that id, ignoring case; NULL when there is none. */
const struct bucket_set *rules_find_set(struct str id);

/* False, after a message on stderr that names file and line, when a limit names a set that does not exist. */
must_check bool rules_check(const struct config_limit *limits, size_t count);

/* For limiter_set_rules(). When both have a limit for the same set and scope, the store (`steward limits set`) wins
 * over the file. Limits of unknown sets are left out. Everything lives in the arena. Returns 0 or the store's error. */
must_check int rules_make(struct arena *a, const struct config_limit *limits, size_t count, struct tx *reader,
                          struct limit_rule **ret_rules, size_t *ret_count);

#endif

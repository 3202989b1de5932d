/* Contexts of policies from the API's documents: src/policy/schema.c says what is in them. */
#ifndef STEWARD_API_POLICY_CONTEXT_H
#define STEWARD_API_POLICY_CONTEXT_H

#include "api/policy_enforce.h"

/* Owned by the arena. */
json_t *policy_link_context(struct arena *a, const char *action, const struct policy_link *link);

#endif

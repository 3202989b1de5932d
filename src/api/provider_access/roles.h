/* For the family's own files. */
#ifndef STEWARD_API_PROVIDER_ACCESS_ROLES_H
#define STEWARD_API_PROVIDER_ACCESS_ROLES_H

#include "api/provider_access/provider_access.h"

#include <jansson.h>

enum provider role_provider(const json_t *role);
/* What the provider has to know. Borrowed from the document. */
struct provider_role role_facts(const json_t *role);

/* accounts.c: the accounts of roles at Google. In a write. */
must_check int role_account_begin(struct tx *tx, struct arena *a, const struct doc *role);
must_check int role_account_end(struct tx *tx, struct arena *a, const struct doc *role);

/* uses.c */
struct role_use {
	const char *feature;
	struct str role_id, what;
};
struct role_uses {
	struct arena *arena;
	const char *feature; /* of what is being added */
	struct role_use *list;
	size_t count, room;
};
must_check int role_uses_load(struct tx *tx, struct arena *a, struct str group_id, struct role_uses **ret_uses);
/* The first use of the role from index `at` on; NULL: none. */
const struct role_use *role_uses_next(const struct role_uses *uses, struct str role_id, size_t *at);

#endif

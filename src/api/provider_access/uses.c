/* What uses the roles of a project: each family that has something to tell does so itself. */
#include "api/provider_access/roles.h"

void role_use_add(struct role_uses *uses, struct str role_id, struct str what)
{
	ARENA_FIT(uses->arena, uses->list, uses->count, uses->room);
	uses->list[uses->count++] = (struct role_use){.feature = uses->feature, .role_id = role_id, .what = what};
}

int role_uses_load(struct tx *tx, struct arena *a, struct str group_id, struct role_uses **ret_uses)
{
	struct role_uses *uses = arena_new_of(a, struct role_uses);
	int r = 0;
	uses->arena = a;
	for (size_t i = 0; r == 0 && i < role_user_count; i++) {
		uses->feature = role_users[i]->feature;
		r = role_users[i]->list(tx, a, group_id, uses);
	}
	if (r == 0)
		*ret_uses = uses;
	return r;
}

const struct role_use *role_uses_next(const struct role_uses *uses, struct str role_id, size_t *at)
{
	for (; *at < uses->count; (*at)++)
		if (str_eq(uses->list[*at].role_id, role_id))
			return &uses->list[(*at)++];
	return NULL;
}

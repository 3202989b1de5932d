/* Questions to the snapshot of a caller; identity/principal_load.c makes the snapshots. */
#include "call/principal.h"

#include "base/id.h"

#include <stdatomic.h>
#include <stdlib.h>

struct principal *principal_ref(struct principal *p)
{
	atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

void principal_unref(struct principal *p)
{
	if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
		return;
	free(p->grants);
	free(p->access_list);
	free(p);
}

static struct grant *grant_find(const struct principal *p, struct str scope)
{
	size_t low = 0, high = p->grant_count;
	if (scope.n != ID_LEN)
		return NULL;
	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = memcmp(p->grants[middle].scope.z, scope.p, ID_LEN);
		if (order == 0)
			return &p->grants[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

role_mask principal_org_roles(const struct principal *p, struct str org_id)
{
	const struct grant *g = grant_find(p, org_id);
	return g ? g->roles & role_org_mask : 0;
}

bool principal_is_shut_out(const struct principal *p, struct str org_id)
{
	const struct grant *g = grant_find(p, org_id);
	return g && g->shut;
}

role_mask principal_group_roles(const struct principal *p, struct str org_id, struct str group_id)
{
	const struct grant *g = grant_find(p, group_id);
	role_mask roles = g ? g->roles & ~role_org_mask : 0;
	for (role_mask of_org = principal_org_roles(p, org_id); of_org; of_org &= of_org - 1)
		roles |= role_in_project[__builtin_ctzll(of_org)];
	return roles;
}

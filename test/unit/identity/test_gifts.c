/* Who may give which role: every role against every other, to others and to itself. */
#include "identity/gifts.h"

#include "check.h"

static role_mask held_by(unsigned role, bool in_org)
{
	role_mask held = 0;
	for (role_mask rest = role_closure[role]; rest; rest &= rest - 1)
		held |= in_org ? rest & -rest : role_in_project[__builtin_ctzll(rest)];
	return in_org ? held : held | (role_closure[role] & ~role_org_mask);
}

static void test_pairs(void)
{
	unsigned allowed = 0, asked = 0;
	for (unsigned giver = 0; giver < role_count; giver++)
		for (unsigned given = 0; given < role_count; given++)
			for (int self = 0; self < 2; self++) {
				bool in_org = role_org_mask >> given & 1;
				role_mask held = held_by(giver, in_org), one = (role_mask)1 << given;
				bool owner = held & role_owner_mask, manager = held & role_manager_mask;
				bool may = owner || (!(one & role_owner_mask) && (held & one || (manager && !self)));
				CHECK(!gift_refused(held, 0, one, self) == may);
				/* Keeping a role is not a gift. */
				CHECK(!gift_refused(held, one, one, self));
				/* Only owners take away owners' roles. */
				CHECK(!gift_refused(held, one, 0, self) == (owner || !(one & role_owner_mask)));
				allowed += may;
				asked++;
			}
	CHECK(asked == 2 * role_count * role_count && allowed > role_count && allowed < asked / 2);
}

static void test_masks(void)
{
	CHECK(role_owner_mask && role_manager_mask && role_base_mask);
	CHECK(!(role_owner_mask & role_manager_mask) && !(role_owner_mask & role_base_mask));
	CHECK(!(role_base_mask & ~role_org_mask));
	/* Several roles at once: each refused role is named. */
	role_mask held = role_closure[role_find(STR("GROUP_ACCESS_MANAGER"))];
	role_mask two = role_closure[role_find(STR("GROUP_CLUSTER_MANAGER"))] & ~held;
	CHECK(two & (two - 1));
	CHECK(gift_refused(held, 0, two | held, true) == two);
	CHECK(gift_refused(held, 0, two | held, false) == 0);
}

int main(void)
{
	test_pairs();
	test_masks();
	return CHECK_DONE();
}

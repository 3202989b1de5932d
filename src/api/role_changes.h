/* Roles of one member in one place, an organization or a project: one more, one less, or a new set of them. The three
 * operations are the same in both places; each place says how it finds, changes and writes its people. */
#ifndef STEWARD_API_ROLE_CHANGES_H
#define STEWARD_API_ROLE_CHANGES_H

#include "api/members.h"

struct role_place {
	bool in_org;
	const char *one, *many; /* the body's fields: "orgRole", "orgRoles" */
	/* The member of the path and the roles that it has there of its own. -ENOENT. */
	int (*load)(struct call *c, struct member *ret_member, role_mask *ret_roles);
	int (*set)(struct call *c, struct member *m, role_mask roles);
	void (*write)(struct call *c, const struct member *m, role_mask roles);
};

must_check int role_add(struct call *c, const struct role_place *p);
must_check int role_remove(struct call *c, const struct role_place *p);
must_check int roles_replace(struct call *c, const struct role_place *p);

#endif

/* Role names in bodies: of keys, service accounts, users and teams. */
#ifndef STEWARD_API_ROLE_LISTS_H
#define STEWARD_API_ROLE_LISTS_H

#include "gate/call.h"
#include "gate/grants.h"

/* The roles that a list of names gives, in an organization or in a project. 400, naming each by its path (`path[i]`),
 * for what is no role of that kind, and for a list that names none. Whether the caller may give them is decided once it
 * is known to whom: gate/gifts.h. Nulls in the list count for nothing. */
must_check int role_list_read(struct call *c, const json_t *names, const char *path, bool in_org, role_mask *ret_roles);

/* Which roles the call's event is about. */
void audit_roles(struct call *c, role_mask roles);

#endif

/* Some operations name their organization in the body instead of the path. The same rules apply: it must exist, the
 * caller must be a member, and hold one of the row's roles there. */
#include "gate/authenticate.h"
#include "gate/gate.h"
#include "identity/identity.h"

#include <errno.h>

int gate_body_scope(struct call *c)
{
	if (!c->op->body_org_field)
		return 0;
	const json_t *value = json_object_get(c->body, c->op->body_org_field);
	struct str org_id = {json_string_value(value), json_string_length(value)};
	int result = gate_get(c, "org", org_id, &c->org);
	if (result == -ENOENT) {
		call_fail(c, 404, "ORG_NOT_FOUND", "%s: no organization has the id %.*s.", c->op->body_org_field,
		          STR_ARG(org_id));
		return call_fail_param(c, org_id);
	}
	if (result < 0)
		return call_fail_store(c, result, c->op->id);
	role_mask roles = principal_org_roles(c->caller, org_id);
	if (!roles && principal_is_shut_out(c->caller, org_id))
		return access_list_refuse(c);
	if (!roles) {
		authenticate_challenge(c, false, false);
		return call_fail(c, 401, "USER_UNAUTHORIZED", "The caller is not a member of this organization.");
	}
	c->roles = roles;
	if (roles & c->op->body_roles)
		return 0;
	call_fail(c, 403, "INSUFFICIENT_ROLE", "%s: the caller's roles in this organization do not permit %s.",
	          c->op->body_org_field, c->op->id);
	for (unsigned i = 0; i < role_count; i++)
		if (c->op->body_roles >> i & 1)
			call_fail_param(c, str_of(role_names[i]));
	return -403;
}

/* Does the caller hold a role that permits the operation? The caller's roles are closed (each includes the roles it
 * implies), so one intersection answers. */
#include "gate/gate.h"

int gate_roles(struct call *c)
{
	if (c->op->open_to_all || c->op->tenant == TENANT_PUBLIC || (c->roles & c->op->roles))
		return 0;
	struct buf names = {0};
	const char *separator = "";
	buf_z(&names, "This needs ");
	buf_z(&names, c->op->roles & (c->op->roles - 1) ? "one of the roles " : "the role ");
	for (unsigned i = 0; i < role_count; i++) {
		if (!(c->op->roles >> i & 1))
			continue;
		buf_z(&names, separator);
		buf_z(&names, role_names[i]);
		separator = ", ";
	}
	int r = call_fail(c, 403, "INSUFFICIENT_ROLE", "%.*s, or one that includes it.", STR_ARG(buf_view(&names)));
	buf_free(&names);
	for (unsigned i = 0; i < role_count; i++)
		if (c->op->roles >> i & 1)
			call_fail_param(c, str_of(role_names[i]));
	return r;
}

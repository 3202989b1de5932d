/* Role names in bodies. The schemas leave names of project roles open, so they are checked here, against the table. */
#include "api/users/users.h"

#include "trail/events.h"

static void fault_role(struct call *c, struct faults *faults, struct str path, bool in_org)
{
	struct buf names = {0};
	for (unsigned i = 0; i < role_count; i++)
		if ((role_org_mask >> i & 1) == in_org)
			buf_printf(&names, "%s%s", names.n ? ", " : "", role_names[i]);
	faults_add(faults, c->arena, path, "must be one of %.*s", STR_ARG(buf_view(&names)));
	buf_free(&names);
}

int role_list_read(struct call *c, const json_t *names, const char *path, bool in_org, role_mask *ret_roles)
{
	struct faults faults = {.count = 0};
	role_mask roles = 0;
	for (size_t i = 0; i < json_array_size(names); i++) {
		const json_t *name = json_array_get(names, i);
		if (json_is_null(name))
			continue;
		int role = role_find((struct str){json_string_value(name), json_string_length(name)});
		if (role < 0 || (role_org_mask >> role & 1) != in_org)
			fault_role(c, &faults, arena_printf(c->arena, "%s[%zu]", path, i), in_org);
		else
			roles |= (role_mask)1 << role;
	}
	if (!roles && !faults.count)
		faults_add(&faults, c->arena, str_of(path), "must name at least one role");
	if (faults.count)
		return call_fail_faults(c, &faults);
	*ret_roles = roles;
	return 0;
}

void event_roles(struct call *c, role_mask roles)
{
	struct buf names = {0};
	for (; roles; roles &= roles - 1)
		buf_printf(&names, "%s%s", names.n ? ", " : "", role_names[__builtin_ctzll(roles)]);
	event_field(c, "roles", arena_dup(c->arena, buf_view(&names)));
	buf_free(&names);
}

/* Role names in bodies. The schemas leave names of project roles open, so they are checked here, against the table. */
#include "api/kit/verbs.h"

#include "trail/events.h"

struct str roles_text(struct arena *a, role_mask roles)
{
	struct buf names = {0};
	for (; roles; roles &= roles - 1)
		buf_printf(&names, "%s%s", names.n ? ", " : "", role_names[__builtin_ctzll(roles)]);
	return buf_keep(&names, a);
}

int role_list_read(struct call *c, const json_t *names, const char *path, bool in_org, role_mask *ret_roles)
{
	const role_mask of_scope = in_org ? role_org_mask : (((role_mask)1 << role_count) - 1) & ~role_org_mask;
	struct faults faults = {.count = 0};
	role_mask roles = 0;
	for (size_t i = 0; i < json_array_size(names); i++) {
		if (json_is_null(json_array_get(names, i)))
			continue;
		int role = role_find(json_item(names, i));
		if (role >= 0 && of_scope >> role & 1) {
			roles |= (role_mask)1 << role;
			continue;
		}
		struct str right = roles_text(c->arena, of_scope);
		faults_add(&faults, c->arena, arena_printf(c->arena, "%s[%zu]", path, i), "must be one of %.*s",
		           STR_ARG(right));
	}
	if (!roles && !faults.count)
		faults_add(&faults, c->arena, str_of(path), "must name at least one role");
	if (faults.count)
		return call_fail_faults(c, &faults);
	*ret_roles = roles;
	return 0;
}

int role_field_read(struct call *c, const char *field, role_mask *ret_roles)
{
	return role_list_read(c, json_object_get(c->body, field), field, !in_project(c), ret_roles);
}

void event_roles(struct call *c, role_mask roles)
{
	event_field(c, "roles", roles_text(c->arena, roles));
}

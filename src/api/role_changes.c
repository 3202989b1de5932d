/* What adding, removing and setting roles have in common, wherever it is. */
#include "api/role_changes.h"

#include "api/role_lists.h"
#include "api/verbs.h"

static int role_read(struct call *c, const struct role_place *p, role_mask *ret_role)
{
	int role = role_find(json_field(c->body, p->one));
	if (role < 0 || !(role_org_mask >> role & 1) == p->in_org) {
		call_fail(c, 400, "INVALID_ROLE", "%s: must be %s.", p->one,
		          p->in_org ? "an organization role, such as ORG_MEMBER"
		                    : "a project role, such as GROUP_READ_ONLY");
		return call_fail_param(c, str_of(p->one));
	}
	*ret_role = (role_mask)1 << role;
	return 0;
}

/* 409: the role is held already. */
static int add_check(struct call *c, const struct member *m, role_mask held, role_mask role)
{
	if (!(held & role))
		return 0;
	const char *name = role_names[__builtin_ctzll(role)];
	call_fail(c, 409, "ROLE_ALREADY_HELD", "%.*s has %s already.", STR_ARG(m->username), name);
	return call_fail_param(c, str_of(name));
}

/* 409: the role is not held, or is the only one. */
static int remove_check(struct call *c, const struct member *m, role_mask held, role_mask role)
{
	const char *name = role_names[__builtin_ctzll(role)];
	if (!(held & role))
		call_fail(c, 409, "ROLE_NOT_HELD", "%.*s does not have %s.", STR_ARG(m->username), name);
	else if (held == role)
		call_fail(c, 409, "LAST_ROLE", "%s is the only role that %.*s has here. Remove the user instead.", name,
		          STR_ARG(m->username));
	else
		return 0;
	return call_fail_param(c, str_of(name));
}

static int change(struct call *c, const struct role_place *p, bool adds)
{
	struct member m = {.active = false};
	role_mask held = 0, role = 0;
	int result = role_read(c, p, &role);
	if (result == 0)
		result = p->load(c, &m, &held);
	if (result == 0)
		result = adds ? add_check(c, &m, held, role) : remove_check(c, &m, held, role);
	role_mask roles = adds ? held | role : held & ~role;
	if (result == 0)
		result = p->set(c, &m, roles);
	if (result < 0)
		return result;
	audit_roles(c, roles);
	p->write(c, &m, roles);
	return 0;
}

int role_add(struct call *c, const struct role_place *p)
{
	return change(c, p, true);
}

int role_remove(struct call *c, const struct role_place *p)
{
	return change(c, p, false);
}

int roles_replace(struct call *c, const struct role_place *p)
{
	struct member m = {.active = false};
	role_mask held = 0, roles = 0;
	int result = role_list_read(c, json_object_get(c->body, p->many), p->many, p->in_org, &roles);
	if (result == 0)
		result = p->load(c, &m, &held);
	if (result == 0)
		result = p->set(c, &m, roles);
	if (result < 0)
		return result;
	audit_roles(c, roles);
	json_t *json = doc_json(c->arena, STR("{}"));
	json_object_set_new(json, p->many, roles_json(roles));
	entity_write(c, &c->out, json_text(c->arena, json), c->op, NULL, STR_NONE, true);
	return 0;
}

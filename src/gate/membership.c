/* Does the scope in the path exist, and is the caller a member of it? Strangers learn only whether it exists: their 401
 * names nothing. The project and organization that are read here are kept in the call for the handler. */
#include "gate/authenticate.h"
#include "gate/gate.h"
#include "identity/identity.h"

#include <errno.h>
#include <jansson.h>

static int stranger(struct call *c)
{
	if (principal_is_shut_out(c->caller, c->org.id))
		return access_list_refuse(c);
	authenticate_challenge(c, false, false);
	return call_fail(c, 401, "USER_UNAUTHORIZED", "The caller is not authorized to access this resource.");
}

/* The document that a path parameter names; 404 when there is none. */
static int scope_get(struct call *c, const char *kind, const char *param, struct doc *ret_doc)
{
	struct str id = call_path(c, param);
	int r = id_is_valid(id) ? gate_get(c, kind, id, ret_doc) : -ENOENT;
	if (r == -ENOENT)
		return call_param_not_found(c, param);
	return r < 0 ? call_fail_store(c, r, kind) : 0;
}

static int member_of_group(struct call *c)
{
	int r = scope_get(c, "project", "groupId", &c->group);
	if (r < 0)
		return r;
	c->org.id = c->group.parent;
	c->roles = principal_org_roles(c->caller, c->org.id) | principal_group_roles(c->caller, c->org.id, c->group.id);
	return c->roles ? 0 : stranger(c);
}

static int member_of_org(struct call *c)
{
	int r = scope_get(c, "org", "orgId", &c->org);
	if (r < 0)
		return r;
	c->roles = principal_org_roles(c->caller, c->org.id);
	return c->roles ? 0 : stranger(c);
}

/* The caller's roles over the federation's organizations, or over `only` one of them. */
static bool federation_roles(struct call *c, const json_t *org_ids, struct str only, role_mask *ret_roles)
{
	bool found = only.n == 0;
	role_mask roles = 0;
	for (size_t i = 0; i < json_array_size(org_ids); i++) {
		const json_t *entry = json_array_get(org_ids, i);
		struct str id = {json_string_value(entry), json_string_length(entry)};
		if (only.n && !str_eq(id, only))
			continue;
		found = true;
		roles |= principal_org_roles(c->caller, id);
	}
	*ret_roles = roles;
	return found;
}

static int member_of_federation(struct call *c)
{
	struct doc federation = {0};
	role_mask any, here;
	int r = scope_get(c, "federation", "federationSettingsId", &federation);
	if (r < 0)
		return r;
	struct str org_id = call_path(c, "orgId");
	if (org_id.p && (r = scope_get(c, "org", "orgId", &c->org)) < 0)
		return r;
	json_t *body = json_loadb(federation.body.p, federation.body.n, 0, NULL);
	const json_t *org_ids = json_object_get(body, "orgIds");
	bool connected = federation_roles(c, org_ids, org_id, &here);
	federation_roles(c, org_ids, STR_NONE, &any);
	json_decref(body);
	if (!any)
		return stranger(c);
	if (!connected)
		return call_param_not_found(c, "orgId");
	c->roles = here;
	return here ? 0 : stranger(c);
}

static int member_of_nothing(struct call *c)
{
	for (size_t i = 0; i < c->caller->grant_count; i++)
		c->roles |= c->caller->grants[i].roles;
	return 0;
}

int gate_membership(struct call *c)
{
	if (!c->caller)
		return 0;
	switch (c->op->tenant) {
	case TENANT_GROUP: return member_of_group(c);
	case TENANT_ORG: return member_of_org(c);
	case TENANT_FEDERATION: return member_of_federation(c);
	case TENANT_NONE:
	case TENANT_PUBLIC: break;
	}
	return member_of_nothing(c);
}

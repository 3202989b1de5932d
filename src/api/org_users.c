/* Users of an organization: active ones come from its grants, invited ones from its invitations, in that order. A page costs
 * what its own users cost; only a filter by status has to look at every invitation. */
#include "api/member_lists.h"
#include "api/members.h"
#include "api/role_changes.h"
#include "api/role_lists.h"
#include "api/verbs.h"

#include "gate/audit.h"

#include <errno.h>

int users_list_org(struct call *c);
int users_invite(struct call *c);
int users_get_org(struct call *c);
int users_update_org(struct call *c);
int users_remove_org(struct call *c);
int users_add_org_role(struct call *c);
int users_remove_org_role(struct call *c);
int users_set_org_roles(struct call *c);

extern const struct resource resource_user;

static void member_write(struct call *c, const struct member *m, bool in_list)
{
	static const struct op *_Atomic found;
	const struct op *self = found;
	if (!self)
		found = self = catalog_op("getOrgUser");
	entity_write(c, &c->out, json_text(c->arena, member_org_json(c->arena, m)), self, "userId", m->user_id,
	             in_list);
	if (!in_list && m->active)
		entity_link(c, &c->out, "user", link_href(c, resource_user.self, "userId", m->user_id));
}

/* The list. */

static int item_write(struct call *c, const struct member *m)
{
	if (!list_is_old(c)) {
		member_write(c, m, true);
		return 0;
	}
	return list_write_account(c, &m->user);
}

static int active_page(struct call *c, struct member_page *p)
{
	struct grant_row *rows;
	struct member m = {.active = false};
	int64_t count, offset, limit;
	size_t got = 0;
	int result = tx_count(c->tx, grant_kind(GRANTEE_USER, true), c->org.id, &count);
	if (result < 0 || !page_cut(p, count, &offset, &limit))
		return result;
	result = grants_in(c->tx, c->arena, GRANTEE_USER, true, c->org.id, offset, limit, &rows, &got);
	for (size_t i = 0; result == 0 && i < got; i++) {
		result = member_load(c->tx, c->arena, c->org.id, rows[i].id, &m);
		if (result == 0)
			result = item_write(c, &m);
	}
	return result;
}

static int one_page(struct call *c, const struct member_filter *f, struct member_page *p)
{
	struct member m = {.active = false};
	struct str id;
	int result = user_id_of(c->tx, c->arena, f->username, &id);
	if (result == 0)
		result = member_load(c->tx, c->arena, c->org.id, id, &m);
	if (result == -ENOENT)
		return 0;
	if (result < 0 || !filter_takes(f, member_status(&m)) || (m.active && !m.roles))
		return result;
	return page_takes(p) ? item_write(c, &m) : 0;
}

int users_list_org(struct call *c)
{
	static const struct member_place people = {
	        .in_org = true, .active = active_page, .one = one_page, .write = item_write};
	return members_list(c, &people);
}

/* One. */

static int load(struct call *c, struct member *ret_member)
{
	int result = member_load(c->tx, c->arena, c->org.id, call_path(c, "userId"), ret_member);
	if (result == 0)
		audit_field(c, "targetUsername", ret_member->username);
	return result;
}

int users_get_org(struct call *c)
{
	struct member_filter f = {.statuses = 0};
	struct member m = {.active = false};
	int result = filter_read(c, &f);
	if (result == 0)
		result = load(c, &m);
	if (result < 0)
		return result;
	if (!filter_takes(&f, member_status(&m)))
		return -ENOENT;
	member_write(c, &m, false);
	return 0;
}

int users_invite(struct call *c)
{
	const json_t *roles = json_object_get(c->body, "roles");
	struct invitation i = {.org_id = c->org.id,
	                       .username = user_name_of(c->arena, json_field(c->body, "username"))};
	struct member m = {.active = false}, nobody = {.active = false};
	int result = role_list_read(c, json_object_get(roles, "orgRoles"), "roles.orgRoles", true, &i.roles);
	if (result == 0)
		result = body_assignments(c, json_object_get(roles, "groupRoleAssignments"),
		                          "roles.groupRoleAssignments", "groupRoles", c->org.id, &i.groups,
		                          &i.group_count);
	if (result == 0)
		result = body_teams(c, json_object_get(c->body, "teamIds"), "teamIds", c->org.id, NULL, 0, &i.teams,
		                    &i.team_count);
	if (result == 0)
		result = member_invite(c, &i);
	if (result < 0)
		return result;
	member_of_invitation(&i, &m);
	result = member_tell(c, &nobody, &m, c->org.id);
	if (result < 0)
		return result;
	audit_roles(c, m.roles);
	audit_field(c, "targetUsername", m.username);
	c->location = link_href(c, catalog_op("getOrgUser"), "userId", m.user_id);
	member_write(c, &m, false);
	return 0;
}

int users_update_org(struct call *c)
{
	const json_t *roles = json_object_get(c->body, "roles"),
	             *groups = json_object_get(roles, "groupRoleAssignments");
	const json_t *team_ids = json_object_get(c->body, "teamIds");
	struct member m = {.active = false}, before = {.active = false};
	struct grant_row *rows = NULL;
	struct str *teams = NULL;
	size_t row_count = 0, team_count = 0;
	role_mask org_roles = 0;
	int result = load(c, &m);
	if (result == 0 && roles)
		result = role_list_read(c, json_object_get(roles, "orgRoles"), "roles.orgRoles", true, &org_roles);
	if (result == 0 && groups)
		result = body_assignments(c, groups, "roles.groupRoleAssignments", "groupRoles", c->org.id, &rows,
		                          &row_count);
	if (result == 0 && team_ids)
		result = body_teams(c, team_ids, "teamIds", c->org.id, m.teams, m.team_count, &teams, &team_count);
	before = m;
	if (result == 0 && roles)
		result = member_set_org_roles(c, &m, c->org.id, org_roles);
	if (result == 0 && groups)
		result = member_set_groups(c, &m, rows, row_count);
	if (result == 0 && team_ids)
		result = member_set_teams(c, &m, teams, team_count);
	if (result == 0)
		result = member_tell(c, &before, &m, c->org.id);
	if (result < 0)
		return result;
	/* The row's event is about the organization's roles. */
	if (m.roles == before.roles)
		audit_type(c, NULL);
	audit_roles(c, m.roles);
	member_write(c, &m, false);
	return 0;
}

int users_remove_org(struct call *c)
{
	struct member m = {.active = false};
	int result = load(c, &m);
	if (result < 0)
		return result;
	if (!m.active)
		audit_type(c, "ORG_INVITATION_DELETED");
	struct member before = m;
	result = member_remove(c, &m, c->org.id);
	m.group_count = m.team_count = 0;
	return result < 0 ? result : member_tell(c, &before, &m, c->org.id);
}

/* Roles. */

static int role_load(struct call *c, struct member *ret_member, role_mask *ret_roles)
{
	int result = load(c, ret_member);
	if (result == 0)
		*ret_roles = ret_member->roles;
	return result;
}

static int role_set(struct call *c, struct member *m, role_mask roles)
{
	return member_set_org_roles(c, m, c->org.id, roles);
}

static void role_write(struct call *c, const struct member *m, role_mask roles)
{
	member_write(c, m, false);
}

static const struct role_place place = {
        .in_org = true, .one = "orgRole", .many = "orgRoles", .load = role_load, .set = role_set, .write = role_write};

int users_add_org_role(struct call *c)
{
	return role_add(c, &place);
}

int users_remove_org_role(struct call *c)
{
	return role_remove(c, &place);
}

int users_set_org_roles(struct call *c)
{
	return roles_replace(c, &place);
}

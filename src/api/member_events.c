/* What a change of a membership means to projects and teams. Their owners look into their own log, so that it tells who
 * came, who left and whose roles are others, whichever operation did it. */
#include "api/members.h"
#include "api/role_lists.h"

#include "gate/audit.h"

static int tell(struct call *c, const struct member *m, const char *type, struct str org_id, struct str group_id)
{
	audit_type(c, type);
	audit_scope(c, org_id, group_id);
	audit_field(c, "targetUsername", m->username);
	return audit_next(c);
}

static int group_tell(struct call *c, const struct member *m, struct str org_id, struct str group_id, role_mask was,
                      role_mask is)
{
	if (was == is)
		return 0;
	if (is)
		audit_roles(c, is);
	if (was && is)
		return tell(c, m, "USER_ROLES_CHANGED_AUDIT", org_id, group_id);
	if (is)
		return tell(c, m, m->active ? "JOINED_GROUP" : "INVITED_TO_GROUP", org_id, group_id);
	return tell(c, m, m->active ? "REMOVED_FROM_GROUP" : "GROUP_INVITATION_DELETED", org_id, group_id);
}

static bool in_team(const struct member *m, struct str team_id)
{
	for (size_t i = 0; i < m->team_count; i++)
		if (str_eq(m->teams[i], team_id))
			return true;
	return false;
}

/* The teams of one that the other is not in. */
static int teams_tell(struct call *c, const struct member *of, const struct member *other, const char *type,
                      struct str org_id)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < of->team_count; i++) {
		if (in_team(other, of->teams[i]))
			continue;
		audit_field(c, "teamId", of->teams[i]);
		result = tell(c, of, type, org_id, STR_NONE);
	}
	return result;
}

int member_tell(struct call *c, const struct member *before, const struct member *after, struct str org_id)
{
	const struct call_event own = c->event;
	int result = 0;
	c->event = (struct call_event){0};
	for (size_t i = 0; result == 0 && i < before->group_count; i++)
		result = group_tell(c, after, org_id, before->groups[i].id, before->groups[i].roles,
		                    member_group_roles(after, before->groups[i].id));
	for (size_t i = 0; result == 0 && i < after->group_count; i++)
		if (!member_group_roles(before, after->groups[i].id))
			result = group_tell(c, after, org_id, after->groups[i].id, 0, after->groups[i].roles);
	if (result == 0)
		result = teams_tell(c, before, after, "REMOVED_FROM_TEAM", org_id);
	if (result == 0)
		result = teams_tell(c, after, before, after->active ? "JOINED_TEAM" : "INVITED_TO_TEAM", org_id);
	c->event = own;
	return result;
}

/* What a change of a membership means to projects and teams. Their owners look into their own log, so that it tells who
 * came, who left and whose roles are others, whichever operation did it. */
#include "api/users/users.h"

#include "trail/events.h"

static int tell(struct call *c, const struct member *m, const char *type, struct str group_id)
{
	event_set_type(c, type);
	event_scope(c, m->org_id, group_id);
	event_field(c, "targetUsername", m->username);
	return event_next(c);
}

static int group_tell(struct call *c, const struct member *m, struct str group_id, role_mask was, role_mask is)
{
	if (was == is)
		return 0;
	if (is)
		event_roles(c, is);
	if (was && is)
		return tell(c, m, "USER_ROLES_CHANGED_AUDIT", group_id);
	if (is)
		return tell(c, m, m->active ? "JOINED_GROUP" : "INVITED_TO_GROUP", group_id);
	return tell(c, m, m->active ? "REMOVED_FROM_GROUP" : "GROUP_INVITATION_DELETED", group_id);
}

/* The teams of one that the other is not in. */
static int teams_tell(struct call *c, const struct member *of, const struct member *other, const char *type)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < of->team_count; i++) {
		if (member_in_team(other, of->teams[i]))
			continue;
		event_field(c, "teamId", of->teams[i]);
		result = tell(c, of, type, STR_NONE);
	}
	return result;
}

int member_tell(struct call *c, const struct member *before, const struct member *after)
{
	const struct call_event own = c->event;
	int result = 0;
	c->event = (struct call_event){0};
	for (size_t i = 0; result == 0 && i < before->group_count; i++)
		result = group_tell(c, after, before->groups[i].id, before->groups[i].roles,
		                    member_group_roles(after, before->groups[i].id));
	for (size_t i = 0; result == 0 && i < after->group_count; i++)
		if (!member_group_roles(before, after->groups[i].id))
			result = group_tell(c, after, after->groups[i].id, 0, after->groups[i].roles);
	if (result == 0)
		result = teams_tell(c, before, after, "REMOVED_FROM_TEAM");
	if (result == 0)
		result = teams_tell(c, after, before, after->active ? "JOINED_TEAM" : "INVITED_TO_TEAM");
	c->event = own;
	return result;
}

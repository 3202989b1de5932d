/* The invitation operations of organizations and projects. What they show and change are the pending memberships that the
 * users' operations show too; a project shows its part of an organization's invitation under the same id, and has invitations
 * of its own only for people who are members of the organization already. */
#include "api/member_lists.h"
#include "api/members.h"
#include "api/role_lists.h"
#include "api/verbs.h"

#include "gate/audit.h"

#include <errno.h>

#define BATCH 500

int invites_list_org(struct call *c);
int invites_get_org(struct call *c);
int invites_create_org(struct call *c);
int invites_update_org(struct call *c);
int invites_update_org_named(struct call *c);
int invites_delete_org(struct call *c);
int invites_list_group(struct call *c);
int invites_get_group(struct call *c);
int invites_create_group(struct call *c);
int invites_update_group(struct call *c);
int invites_update_group_named(struct call *c);
int invites_delete_group(struct call *c);
int invites_add_user(struct call *c);

extern const struct resource resource_invitation, resource_group_invitation;

static int org_write(struct call *c, const struct invitation *i, bool in_list)
{
	json_t *json;
	int result = invitation_org_json(c->tx, c->arena, i, &json);
	if (result == 0)
		entity_write(c, &c->out, json_text(c->arena, json), resource_invitation.self, "invitationId", i->id,
		             in_list);
	return result;
}

static int group_write(struct call *c, const struct invitation *i, bool in_list)
{
	json_t *json;
	int result = invitation_group_json(c->tx, c->arena, i, &c->group, &json);
	if (result == 0)
		entity_write(c, &c->out, json_text(c->arena, json), resource_group_invitation.self, "invitationId",
		             i->id, in_list);
	return result;
}

/* Bodies: the schemas require nothing, but an invitation without a name or a role is none. */
static int username_read(struct call *c, struct str *ret_username)
{
	struct str given = json_field(c->body, "username");
	if (!given.n) {
		call_fail(c, 400, "VALIDATION_ERROR", "username: is required.");
		return call_fail_param(c, STR("username"));
	}
	*ret_username = user_name_of(c->arena, given);
	audit_field(c, "targetUsername", *ret_username);
	return 0;
}

static int in_force(struct call *c, const struct invitation *i)
{
	return invitation_in_force(c->tx, c->arena, i);
}

static int list_write(struct call *c, const char *kind, struct str parent, struct str username,
                      int (*write)(struct call *c, const struct invitation *i, bool in_list))
{
	size_t got = BATCH;
	int result = 0;
	for (int64_t at = 0; result == 0 && got == BATCH; at += BATCH) {
		struct doc *docs;
		result = tx_list(c->tx, c->arena, kind, parent, at, BATCH, &docs, &got);
		for (size_t k = 0; result == 0 && k < got; k++) {
			struct invitation i = {.rev = 0};
			if (str_is(docs[k].kind, "group_pending"))
				result = invitation_get(c->tx, c->arena, true,
				                        json_field(doc_json(c->arena, docs[k].body), "invitationId"),
				                        &i);
			else
				result = invitation_of_doc(c->tx, c->arena, &docs[k], &i);
			if (result == 0)
				result = in_force(c, &i);
			if (result == 0 && (!username.n || str_eq(username, i.username)))
				result = write(c, &i, true);
			if (result == -ENOENT)
				result = 0;
		}
	}
	return result;
}

/* Organizations. */

int invites_list_org(struct call *c)
{
	struct str username = user_name_of(c->arena, call_query(c, "username"));
	json_open(&c->out, '[');
	int result = list_write(c, "invitation", c->org.id, username, org_write);
	json_close(&c->out, ']');
	return result;
}

static int org_load(struct call *c, struct invitation *ret_invitation)
{
	struct invitation i = {.rev = 0};
	int result = invitation_get(c->tx, c->arena, true, call_path(c, "invitationId"), &i);
	if (result == 0 && !str_eq(i.org_id, c->org.id))
		result = -ENOENT;
	if (result < 0)
		return result;
	audit_field(c, "targetUsername", i.username);
	*ret_invitation = i;
	return 0;
}

int invites_get_org(struct call *c)
{
	struct invitation i = {.rev = 0};
	int result = org_load(c, &i);
	if (result == 0)
		result = in_force(c, &i);
	if (result < 0)
		return result;
	c->etag = i.rev;
	return org_write(c, &i, false);
}

/* What the body gives replaces what is there. */
static int org_body(struct call *c, struct invitation *i)
{
	const json_t *roles = json_object_get(c->body, "roles"), *teams = json_object_get(c->body, "teamIds");
	const json_t *groups = json_object_get(c->body, "groupRoleAssignments");
	int result = 0;
	if (roles || !i->roles)
		result = role_list_read(c, roles, "roles", true, &i->roles);
	if (result == 0 && groups)
		result = body_assignments(c, groups, "groupRoleAssignments", "roles", c->org.id, &i->groups,
		                          &i->group_count);
	if (result == 0 && teams)
		result = body_teams(c, teams, "teamIds", c->org.id, i->teams, i->team_count, &i->teams, &i->team_count);
	return result;
}

/* Either may be none. */
static int org_tell(struct call *c, const struct invitation *old, const struct invitation *now)
{
	struct member before = {.active = false}, after = {.active = false};
	if (old)
		member_of_invitation(old, &before);
	member_of_invitation(now ? now : old, &after);
	if (!now)
		after.group_count = after.team_count = 0;
	audit_roles(c, after.roles);
	return member_tell(c, &before, &after, c->org.id);
}

int invites_create_org(struct call *c)
{
	struct invitation i = {.org_id = c->org.id};
	int result = username_read(c, &i.username);
	if (result == 0)
		result = org_body(c, &i);
	if (result == 0)
		result = member_invite(c, &i);
	if (result == 0)
		result = org_tell(c, NULL, &i);
	if (result < 0)
		return result;
	c->etag = i.rev;
	return org_write(c, &i, false);
}

static int org_change(struct call *c, struct invitation *i)
{
	const struct invitation old = *i;
	int result = in_force(c, i);
	if (result == 0)
		result = if_match(c, i->rev);
	if (result == 0)
		result = org_body(c, i);
	i->via_project = false;
	if (result == 0)
		result = invitation_update(c->tx, c->arena, i);
	if (result == 0)
		result = org_tell(c, &old, i);
	if (result < 0)
		return result;
	c->etag = i->rev + 1;
	return org_write(c, i, false);
}

int invites_update_org(struct call *c)
{
	struct invitation i = {.rev = 0};
	int result = org_load(c, &i);
	return result < 0 ? result : org_change(c, &i);
}

int invites_update_org_named(struct call *c)
{
	struct invitation i = {.rev = 0};
	struct str username = STR_NONE, user_id = STR_NONE;
	int result = username_read(c, &username);
	if (result == 0)
		result = user_id_of(c->tx, c->arena, username, &user_id);
	if (result == 0)
		result = invitation_find(c->tx, c->arena, true, c->org.id, user_id, &i);
	return result < 0 ? result : org_change(c, &i);
}

int invites_delete_org(struct call *c)
{
	struct invitation i = {.rev = 0};
	int result = org_load(c, &i);
	if (result == 0)
		result = if_match(c, i.rev);
	if (result == 0)
		result = invitation_delete(c->tx, c->arena, &i);
	return result < 0 ? result : org_tell(c, &i, NULL);
}

/* Projects. */

int invites_list_group(struct call *c)
{
	struct str username = user_name_of(c->arena, call_query(c, "username"));
	json_open(&c->out, '[');
	int result = list_write(c, "group_pending", c->group.id, username, group_write);
	if (result == 0)
		result = list_write(c, "group_invitation", c->group.id, username, group_write);
	json_close(&c->out, ']');
	return result;
}

/* Either kind, when it is about this project. */
static int group_accept(struct call *c, int result, const struct invitation *i, struct invitation *ret_invitation)
{
	if (result < 0)
		return result;
	bool ours = i->org_id.n ? str_eq(i->org_id, c->org.id) && invitation_group_roles(i, c->group.id)
	                        : str_eq(i->group_id, c->group.id);
	if (!ours)
		return -ENOENT;
	audit_field(c, "targetUsername", i->username);
	*ret_invitation = *i;
	return 0;
}

static int group_load(struct call *c, struct invitation *ret_invitation)
{
	struct invitation i = {.rev = 0};
	struct str id = call_path(c, "invitationId");
	int result = invitation_get(c->tx, c->arena, false, id, &i);
	if (result == -ENOENT)
		result = invitation_get(c->tx, c->arena, true, id, &i);
	return group_accept(c, result, &i, ret_invitation);
}

int invites_get_group(struct call *c)
{
	struct invitation i = {.rev = 0};
	int result = group_load(c, &i);
	if (result == 0)
		result = in_force(c, &i);
	if (result < 0)
		return result;
	c->etag = i.rev;
	return group_write(c, &i, false);
}

static int taken(struct call *c, struct str username)
{
	call_fail(c, 409, "USER_ALREADY_IN_GROUP", "username: %.*s is in the project already, or invited to it.",
	          STR_ARG(username));
	return call_fail_param(c, username);
}

/* A member is asked; the roles come with the answer. */
static int invite_member(struct call *c, const struct member *m, role_mask roles, struct invitation *ret_invitation)
{
	struct invitation i = {.rev = 0}, fresh = {.group_id = c->group.id,
	                                           .user_id = m->user_id,
	                                           .username = m->username,
	                                           .roles = roles};
	int result = invitation_find(c->tx, c->arena, false, c->group.id, m->user_id, &i);
	if (result == 0)
		result = in_force(c, &i);
	if (result == 0 || member_group_roles(m, c->group.id))
		return taken(c, m->username);
	if (result == -ENOENT)
		result = grant_id(c->tx, c->arena, m->user_id, c->org.id, &fresh.membership);
	if (result == 0)
		result = invitation_add(c, &fresh);
	if (result == 0)
		*ret_invitation = fresh;
	return result;
}

int invites_create_group(struct call *c)
{
	struct invitation i = {.rev = 0};
	struct member m = {.active = false};
	struct str username = STR_NONE, user_id = STR_NONE;
	role_mask roles = 0;
	int result = username_read(c, &username);
	if (result == 0)
		result = role_list_read(c, json_object_get(c->body, "roles"), "roles", false, &roles);
	if (result == 0)
		result = user_id_of(c->tx, c->arena, username, &user_id);
	if (result < 0)
		return result;
	result = member_load(c->tx, c->arena, c->org.id, user_id, &m);
	if (result == 0 && m.active) {
		result = invite_member(c, &m, roles, &i);
	} else if (result == 0 || result == -ENOENT) {
		result = member_add_group(c, username, roles, &m);
		i = m.invitation;
	}
	if (result < 0)
		return result;
	c->etag = i.rev;
	return group_write(c, &i, false);
}

static int group_change(struct call *c, struct invitation *i)
{
	role_mask roles = 0;
	int result = in_force(c, i);
	if (result == 0)
		result = if_match(c, i->rev);
	if (result == 0)
		result = role_list_read(c, json_object_get(c->body, "roles"), "roles", false, &roles);
	if (result < 0)
		return result;
	if (i->org_id.n)
		invitation_set_group(c->arena, i, c->group.id, roles);
	else
		i->roles = roles;
	result = invitation_update(c->tx, c->arena, i);
	if (result < 0)
		return result;
	c->etag = i->rev + 1;
	return group_write(c, i, false);
}

int invites_update_group(struct call *c)
{
	struct invitation i = {.rev = 0};
	int result = group_load(c, &i);
	return result < 0 ? result : group_change(c, &i);
}

int invites_update_group_named(struct call *c)
{
	struct invitation i = {.rev = 0}, mine = {.rev = 0};
	struct str username = STR_NONE, user_id = STR_NONE;
	int result = username_read(c, &username);
	if (result == 0)
		result = user_id_of(c->tx, c->arena, username, &user_id);
	if (result < 0)
		return result;
	result = invitation_find(c->tx, c->arena, false, c->group.id, user_id, &i);
	if (result == -ENOENT)
		result = invitation_find(c->tx, c->arena, true, c->org.id, user_id, &i);
	result = group_accept(c, result, &i, &mine);
	return result < 0 ? result : group_change(c, &mine);
}

int invites_delete_group(struct call *c)
{
	struct invitation i = {.rev = 0};
	int result = group_load(c, &i);
	if (result == 0)
		result = if_match(c, i.rev);
	if (result < 0)
		return result;
	return i.org_id.n ? invitation_drop_group(c->tx, c->arena, &i, c->group.id)
	                  : invitation_delete(c->tx, c->arena, &i);
}

/* POST /groups/{groupId}/access: a member is in at once, which has no body; others are invited. */
int invites_add_user(struct call *c)
{
	struct member m = {.active = false};
	struct str username = STR_NONE;
	role_mask roles = 0;
	int result = username_read(c, &username);
	if (result == 0)
		result = role_list_read(c, json_object_get(c->body, "roles"), "roles", false, &roles);
	if (result == 0)
		result = member_add_group(c, username, roles, &m);
	if (result < 0)
		return result;
	if (m.active) {
		audit_type(c, "JOINED_GROUP");
		c->status = c->op->other_success;
		return 0;
	}
	/* Of the invitation to the organization, only what concerns the project is its owners' to know. */
	struct invitation part = m.invitation;
	json_t *json;
	part.group_count = part.team_count = 0;
	invitation_set_group(c->arena, &part, c->group.id, roles);
	result = invitation_org_json(c->tx, c->arena, &part, &json);
	if (result == 0)
		entity_write(c, &c->out, json_text(c->arena, json), resource_group_invitation.self, "invitationId",
		             part.id, true);
	return result;
}

/* The invitations of organizations and projects as resources. What they show and change are the pending memberships
 * that the users' operations show too; a project shows its part of an organization's invitation under the same id, and
 * has invitations of its own only for people who are members of the organization already. */
#include "api/users/users.h"

#include "trail/events.h"

#include <errno.h>

static bool in_project(const struct call *c)
{
	return c->group.id.n;
}

/* The schemas require nothing, but an invitation without a name is none. */
static int username_read(struct call *c, struct str *ret_username)
{
	struct str given = json_field(c->body, "username");
	if (!given.n)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "username", "is required.");
	*ret_username = user_name_of(c->arena, given);
	return 0;
}

/* By its id, or where the path has none by the person. */
static int find_in(struct call *c, const char *kind, struct str scope, struct str id, struct str user_id,
                   struct doc *ret_doc)
{
	int result = id.p ? tx_get(c->tx, c->arena, kind, id, ret_doc)
	                  : tx_get_by_name(c->tx, c->arena, kind, scope, user_id, ret_doc);
	return result == 0 && !str_eq(ret_doc->parent, scope) ? -ENOENT : result;
}

static int invite_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str id = call_path(c, r->key_param), username = STR_NONE, user_id = STR_NONE;
	struct member *m = arena_new_of(c->arena, struct member);
	int result = id.p ? 0 : username_read(c, &username);
	if (result == 0 && !id.p)
		result = user_id_of(c->tx, c->arena, username, &user_id);
	if (result < 0)
		return result;
	result = in_project(c) ? find_in(c, "group_invitation", c->group.id, id, user_id, ret_doc) : -ENOENT;
	if (result == -ENOENT)
		result = find_in(c, "invitation", c->org.id, id, user_id, ret_doc);
	if (result == 0)
		result = invitation_of_doc(c->tx, c->arena, ret_doc, m);
	if (result == 0 && in_project(c) && m->org_id.n && !member_group_roles(m, c->group.id))
		result = -ENOENT;
	if (result == 0 && c->op->method != METHOD_DELETE)
		result = invitation_in_force(c->tx, c->arena, m);
	event_field(c, "targetUsername", m->username);
	c->noted = m;
	return result;
}

static int invite_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct segment *list = arena_new_array(c->arena, struct segment, 2);
	list[0] = (struct segment){.kind = "group_pending", .parent = c->group.id};
	list[1] = (struct segment){.kind = "group_invitation", .parent = c->group.id};
	if (!in_project(c))
		list[0] = (struct segment){.kind = "invitation", .parent = c->org.id};
	*ret_list = list;
	*ret_count = in_project(c) ? 2 : 1;
	return 0;
}

/* A project's part of an organization's invitation is that invitation. */
static int invite_stand_in(struct call *c, const struct resource **r, struct doc *d)
{
	return str_is(d->kind, "group_pending") ? invitation_behind(c->tx, c->arena, d, d) : 0;
}

/* What fails here fails again where it is written. */
static bool invite_takes(struct call *c, const struct doc *d)
{
	struct str username = user_name_of(c->arena, call_query(c, "username"));
	struct doc shown = *d;
	struct member m = {.active = false};
	int result = invite_stand_in(c, NULL, &shown);
	if (result == 0)
		result = invitation_of_doc(c->tx, c->arena, &shown, &m);
	if (result == 0)
		result = invitation_in_force(c->tx, c->arena, &m);
	return result != -ENOENT && (!username.n || str_eq(username, m.username));
}

static int invite_view(struct call *c, const struct doc *d, json_t *json)
{
	struct member m;
	int result = invitation_of_doc(c->tx, c->arena, d, &m);
	json_object_clear(json);
	return result < 0 ? result : invitation_view(c->tx, c->arena, &m, in_project(c) ? &c->group : NULL, json);
}

/* A member is asked; the roles come with the answer. */
static int member_ask(struct call *c, struct member *m, role_mask roles)
{
	struct member i = {.active = false};
	struct member fresh = {.group_id = c->group.id, .user_id = m->user_id, .username = m->username, .roles = roles};
	int result = invitation_find(c->tx, c->arena, false, c->group.id, m->user_id, &i);
	if (result == 0)
		result = invitation_in_force(c->tx, c->arena, &i);
	if (result == 0 || member_group_roles(m, c->group.id))
		return member_is_taken(c, m->username);
	if (result == -ENOENT)
		result = grant_id(c->tx, c->arena, m->user_id, c->org.id, &fresh.membership);
	if (result == 0)
		result = invitation_add(c, &fresh);
	*m = fresh;
	return result;
}

static int group_save(struct call *c, const struct member *before, struct member *m)
{
	struct str username = m->username, user_id;
	role_mask roles = 0;
	int result = role_list_read(c, json_object_get(c->body, "roles"), "roles", false, &roles);
	if (result < 0)
		return result;
	if (before) {
		if (m->org_id.n)
			member_put_group(c->arena, m, c->group.id, roles);
		else
			m->roles = roles;
		return invitation_update(c->tx, c->arena, before, m);
	}
	result = user_id_of(c->tx, c->arena, username, &user_id);
	if (result == 0)
		result = member_load(c->tx, c->arena, c->org.id, user_id, m);
	if (result == 0 && m->active)
		return member_ask(c, m, roles);
	return result == 0 || result == -ENOENT ? member_add_group(c, username, roles, m) : result;
}

static int invite_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	const struct member *before = old ? c->noted : NULL;
	struct member m = {.active = false};
	int result = 0;
	if (before)
		m = *before;
	else
		result = username_read(c, &m.username);
	if (result == 0 && !before)
		event_field(c, "targetUsername", m.username);
	if (result == 0)
		result = in_project(c) ? group_save(c, before, &m) : member_save(c, false, before, &m);
	if (result < 0)
		return result;
	*d = invitation_doc(c->arena, &m);
	d->rev = m.rev;
	return 0;
}

static int invite_drop(struct call *c, const struct doc *d)
{
	const struct member *before = c->noted;
	struct member after = *before;
	if (in_project(c) && before->org_id.n) {
		member_put_group(c->arena, &after, c->group.id, 0);
		return member_apply(c, before, &after);
	}
	int result = invitation_delete(c->tx, c->arena, before);
	if (result < 0 || in_project(c))
		return result;
	after.group_count = after.team_count = 0;
	event_roles(c, after.roles);
	return member_tell(c, before, &after);
}

const struct resource_hooks invitation_hooks = {.load = invite_load,
                                                .save = invite_save,
                                                .drop = invite_drop,
                                                .view = invite_view,
                                                .segments = invite_segments,
                                                .takes = invite_takes,
                                                .stand_in = invite_stand_in};

/* POST /groups/{groupId}/access: a member is in at once, which has no body; others are invited. */
int invites_add_user(struct call *c)
{
	struct member m = {.active = false};
	struct str username = STR_NONE;
	role_mask roles = 0;
	int result = username_read(c, &username);
	event_field(c, "targetUsername", username);
	if (result == 0)
		result = role_list_read(c, json_object_get(c->body, "roles"), "roles", false, &roles);
	if (result == 0)
		result = member_add_group(c, username, roles, &m);
	if (result < 0)
		return result;
	if (m.active) {
		event_set_type(c, "JOINED_GROUP");
		c->status = c->op->other_success;
		return 0;
	}
	/* Of the invitation to the organization, only what concerns the project is its owners' to know. */
	json_t *json = doc_json(c->arena, STR("{}"));
	m.group_count = m.team_count = 0;
	member_put_group(c->arena, &m, c->group.id, roles);
	result = invitation_view(c->tx, c->arena, &m, NULL, json);
	if (result == 0)
		entity_write(c, &c->out, json_text(c->arena, json), resource_group_invitation.self, "invitationId",
		             m.id, true);
	return result;
}

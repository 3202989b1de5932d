/* What bodies say of people: roles, projects and teams, of members and of those who are invited. */
#include "api/users/users.h"

#include "trail/events.h"

#include <errno.h>

#define ASSIGNMENTS_MAX 1000 /* projects that one body gives roles in */

/* Names. */

/* Some schemas require nothing, but an invitation without a name is none. */
int username_read(struct call *c, struct str *ret_username)
{
	struct str given = json_field(c->body, "username");
	if (!given.n)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "username", "is required.");
	*ret_username = arena_lower(c->arena, given);
	event_field(c, "targetUsername", *ret_username);
	return 0;
}

/* Places. */

/* 400 unless the body names, at `path`, a place of the organization. */
static int place_check(struct call *c, bool is_team, struct str id, struct str path)
{
	struct doc d;
	int result = id.n ? tx_get(c->tx, c->arena, is_team ? "team" : "project", id, &d) : -ENOENT;
	if (result == -ENOENT || (result == 0 && !str_eq(d.parent, c->org.id)))
		return call_fail_field(c, 400, is_team ? "INVALID_TEAM_ID" : "INVALID_GROUP_ID", path.p,
		                       "must be the id of a %s of this organization.", is_team ? "team" : "project");
	return result;
}

/* Without its projects, or without its teams: the body says which there are. */
static void places_clear(struct arena *a, struct member *m, bool teams)
{
	struct place *kept = arena_new_array(a, struct place, m->place_count + 1);
	size_t count = 0;
	for (size_t i = 0; i < m->place_count; i++)
		if (m->places[i].is_team != teams)
			kept[count++] = m->places[i];
	m->places = kept;
	m->place_count = count;
}

/* Ids of teams, or of projects in a field of each item. */
static void body_places_read(struct call *c, const json_t *list, const char *field, struct str user_id)
{
	size_t count = json_array_size(list);
	struct place *places = arena_new_array(c->arena, struct place, count + 1);
	for (size_t i = 0; i < count; i++)
		places[i] =
		        (struct place){.id = field ? json_field(json_array_get(list, i), field) : json_item(list, i),
		                       .is_team = !field};
	places_read_ahead(c->tx, c->arena, places, count, user_id);
}

/* [{"groupId", "<roles_field>": [...]}, ...]: projects of the organization, each once. */
static int groups_read(struct call *c, const json_t *list, const char *path, const char *roles_field, struct member *m)
{
	if (json_array_size(list) > ASSIGNMENTS_MAX)
		return call_fail_field(c, 400, "VALIDATION_ERROR", path, "must have at most %d items.",
		                       ASSIGNMENTS_MAX);
	places_clear(c->arena, m, false);
	/* Read at once: over a network each read is a round trip, and all other writes wait. */
	body_places_read(c, list, "groupId", m->user_id);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);
		struct str id = json_field(entry, "groupId"), of = arena_printf(c->arena, "%s[%zu].", path, i);
		role_mask roles = 0;
		int result = place_check(c, false, id, arena_printf(c->arena, "%sgroupId", of.p));
		if (result == 0)
			result = role_list_read(c, json_object_get(entry, roles_field),
			                        arena_printf(c->arena, "%s%s", of.p, roles_field).p, false, &roles);
		if (result < 0)
			return result;
		member_put(c->arena, m, (struct place){id, false, roles | member_at(m, id)});
	}
	return 0;
}

static int teams_read(struct call *c, const json_t *list, struct member *m)
{
	const struct member had = *m;
	places_clear(c->arena, m, true);
	body_places_read(c, list, NULL, m->user_id);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct str id = json_item(list, i);
		int result = place_check(c, true, id, arena_printf(c->arena, "teamIds[%zu]", i));
		if (result == 0 && !member_at(&had, id))
			result = team_admit(c, id);
		if (result < 0)
			return result;
		member_put(c->arena, m, (struct place){id, true, IN_TEAM});
	}
	return user_teams_check(c, member_count(m, true), 0);
}

static int body_read(struct call *c, bool nested, bool is_new, struct member *m)
{
	const json_t *of = nested ? json_object_get(c->body, "roles") : c->body;
	const json_t *roles = json_object_get(of, nested ? "orgRoles" : "roles");
	const json_t *groups = json_object_get(of, "groupRoleAssignments"),
	             *teams = json_object_get(c->body, "teamIds");
	int result = 0;
	if (is_new || (nested ? of : roles))
		result = role_list_read(c, roles, nested ? "roles.orgRoles" : "roles", true, &m->roles);
	if (result == 0 && groups)
		result = groups_read(c, groups, nested ? "roles.groupRoleAssignments" : "groupRoleAssignments",
		                     nested ? "groupRoles" : "roles", m);
	return result == 0 && teams ? teams_read(c, teams, m) : result;
}

/* Into the organization. */

/* An invitation, new or in the place of one that is over. */
static int invite(struct call *c, struct member *m)
{
	struct member there;
	int result = member_of_name(c, m->org_id, m->username, &there);
	if (result < 0)
		return result;
	if (there.active && there.roles)
		return call_fail_about(c, 409, "USER_ALREADY_IN_ORG", m->username,
		                       "username: %.*s is a member of the organization already.", STR_ARG(m->username));
	if (member_is_pending(&there))
		return call_fail_about(c, 409, "USER_ALREADY_INVITED", m->username,
		                       "username: %.*s is invited already. Update the invitation, or remove it first.",
		                       STR_ARG(m->username));
	m->user_id = there.user_id;
	return invitation_add(c, m);
}

int member_save(struct call *c, bool nested, const struct member *before, struct member *ret_member)
{
	const struct member nobody = {.org_id = c->org.id};
	struct member m = before ? *before : nobody;
	int result = before ? 0 : username_read(c, &m.username);
	if (result == 0)
		result = body_read(c, nested, !before, &m);
	/* An organization that says which roles somebody has keeps them, whatever becomes of the project. */
	if (!nested || json_object_get(c->body, "roles"))
		m.via_project = false;
	if (result == 0)
		result = before ? member_apply(c, before, &m) : invite(c, &m);
	if (result == 0)
		result = member_tell(c, before ? before : &nobody, &m);
	event_roles(c, m.roles);
	*ret_member = m;
	return result;
}

/* Into a project. */

static int is_taken(struct call *c, struct str username)
{
	return call_fail_about(c, 409, "USER_ALREADY_IN_GROUP", username,
	                       "username: %.*s is in the project already, or invited to it.", STR_ARG(username));
}

/* A member is asked; the roles come with the answer. */
static int ask(struct call *c, role_mask roles, struct member *m)
{
	struct member asked = {.group_id = c->group.id, .user_id = m->user_id, .username = m->username, .roles = roles};
	struct member waiting;
	int result = invitation_find(c->tx, c->arena, false, c->group.id, m->user_id, &waiting);
	if (result == 0)
		result = invitation_in_force(c->tx, c->arena, &waiting);
	if (result == 0 || member_at(m, c->group.id))
		return is_taken(c, m->username);
	if (result == -ENOENT)
		result = grant_id(c->tx, c->arena, m->user_id, c->org.id, &asked.membership);
	*m = asked;
	return result < 0 ? result : invitation_add(c, m);
}

/* A member gets the roles at once; what waited for its answer is done with. */
static int add_now(struct call *c, role_mask roles, struct member *m)
{
	const struct member before = *m;
	struct member waiting;
	if (member_at(m, c->group.id))
		return is_taken(c, m->username);
	int result = invitation_find(c->tx, c->arena, false, c->group.id, m->user_id, &waiting);
	if (result == 0)
		result = invitation_delete(c->tx, c->arena, &waiting);
	member_put(c->arena, m, (struct place){c->group.id, false, roles});
	m->rev += !m->active;
	return result == 0 || result == -ENOENT ? member_apply(c, &before, m) : result;
}

int member_add_group(struct call *c, bool asks, struct member *ret_member)
{
	struct member *m = ret_member;
	struct str username = STR_NONE;
	role_mask roles = 0;
	int result = username_read(c, &username);
	if (result == 0)
		result = role_field_read(c, "roles", &roles);
	if (result == 0)
		result = member_of_name(c, c->org.id, username, m);
	if (result < 0)
		return result;
	if (m->active && asks)
		return ask(c, roles, m);
	if (m->active || member_is_pending(m))
		return add_now(c, roles, m);
	*m = (struct member){.org_id = c->org.id,
	                     .user_id = m->user_id,
	                     .username = username,
	                     .roles = role_bit("ORG_MEMBER"),
	                     .via_project = true};
	member_put(c->arena, m, (struct place){c->group.id, false, roles});
	return invitation_add(c, m);
}

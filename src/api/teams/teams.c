/* Teams: people of an organization who get roles in projects together.
 *
 *   "team"          parent = organization, name unique; body {"id","name"}
 *   "team_user"     parent = team, name = user; "user_team" the other way round (members.c keeps both)
 *   "team_pending"  parent = team, name = user: invited people who will be in the team (invitations.c keeps it)
 *
 * A team's roles in a project are grants ("group_team"); what they give its members is in every member's snapshot,
 * which identity/principal_load.c makes. */
#include "api/users/users.h"

#include "trail/events.h"

#include <errno.h>

#define NAME_MAX_BYTES 128

static int team_of_path(struct call *c, struct str *ret_id)
{
	struct doc d;
	int result = resource_load(c, &resource_team, &d);
	if (result < 0)
		return result;
	event_field(c, "teamId", d.id);
	*ret_id = d.id;
	return 0;
}

/* Members. */

/* Somebody of the organization, whom the body names at `path`, is in the team; no event where that was so already. */
static int user_join(struct call *c, struct str user_id, struct str path, struct str team_id, struct member *ret_member)
{
	struct member m, after;
	int result = member_load(c->tx, c->arena, c->org.id, user_id, &m);
	if (result == -ENOENT)
		return call_fail_field(c, 400, "USER_NOT_IN_ORG", path.p, "must be a user of the organization.");
	if (result < 0)
		return result;
	*ret_member = after = m;
	event_field(c, "targetUsername", m.username);
	if (member_at(&m, team_id)) {
		event_set_type(c, NULL);
		return 0;
	}
	event_set_type(c, m.active ? "JOINED_TEAM" : "INVITED_TO_TEAM");
	result = user_teams_check(c, member_count(&m, true), 1);
	if (result == 0)
		result = team_admit(c, team_id);
	member_put(c->arena, &after, (struct place){team_id, true, IN_TEAM});
	return result < 0 ? result : member_apply(c, &m, &after);
}

/* The organization's teams. */

static int name_check(struct call *c, const json_t *document)
{
	struct str name = json_field(document, "name");
	if (str_trim(name).n && name.n <= NAME_MAX_BYTES)
		return 0;
	return call_fail_field(c, 400, "VALIDATION_ERROR", "name", "must have from 1 to %d bytes, and not only spaces.",
	                       NAME_MAX_BYTES);
}

static int team_create(struct call *c, json_t *document)
{
	json_object_del(document, "usernames");
	return name_check(c, document);
}

static int team_update(struct call *c, const struct doc *old, json_t *document)
{
	return name_check(c, document);
}

/* The users that a new team begins with, and an event for each. */
static int team_written(struct call *c, const struct doc *d, const struct doc *old)
{
	const json_t *names = json_object_get(c->body, "usernames");
	int result = 0;
	for (size_t i = 0; !old && result == 0 && i < json_array_size(names); i++) {
		struct str path = arena_printf(c->arena, "usernames[%zu]", i), id;
		struct member m;
		result = user_id_of(c->tx, c->arena, arena_lower(c->arena, json_item(names, i)), &id);
		if (result == 0)
			result = event_next(c);
		event_field(c, "teamId", d->id);
		if (result == 0)
			result = user_join(c, id, path, d->id, &m);
	}
	return result;
}

static int team_view(struct call *c, const struct doc *d, json_t *json)
{
	json_t *names = c->is_list ? NULL : json_object_get(c->body, "usernames");
	if (names)
		json_object_set(json, "usernames", names);
	return 0;
}

static int team_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	return grants_delete_grantee(tx, a, GRANTEE_TEAM, d->id);
}

const struct resource_hooks team_hooks = {
        .create = team_create, .update = team_update, .written = team_written, .view = team_view, .gone = team_gone};

/* In projects. */

static int assigned_view(struct call *c, const struct doc *d, json_t *json)
{
	json_put_str(json, "teamId", d->name);
	json_object_set(json, "roleNames", json_object_get(json, "roles"));
	json_object_del(json, "roles");
	json_object_del(json, "id");
	return 0;
}

static int assigned_drop(struct call *c, const struct doc *d)
{
	return grant_set(c->tx, c->arena, GRANTEE_TEAM, d->name, false, c->group.id, 0);
}

const struct resource_hooks group_team_hooks = {.view = assigned_view, .drop = assigned_drop};

/* What an entry of a body gives to a team. */
static int roles_give(struct call *c, const json_t *entry, const char *path, struct str team_id)
{
	role_mask roles = 0;
	int result = role_list_read(c, json_object_get(entry, "roleNames"), path, false, &roles);
	event_roles(c, roles);
	return result < 0 ? result : grant_set(c->tx, c->arena, GRANTEE_TEAM, team_id, false, c->group.id, roles);
}

static int assign_one(struct call *c, size_t index)
{
	const json_t *entry = json_array_get(c->body, index);
	struct doc d;
	role_mask held = 0;
	int result = tx_get(c->tx, c->arena, "team", json_field(entry, "teamId"), &d);
	if (result == -ENOENT || (result == 0 && !str_eq(d.parent, c->org.id)))
		return call_fail_field(c, 400, "INVALID_TEAM_ID", arena_printf(c->arena, "[%zu].teamId", index).p,
		                       "must be the id of a team of the project's organization.");
	if (result == 0)
		result = grant_get(c->tx, c->arena, d.id, c->group.id, &held);
	if (result == 0 && index)
		result = event_next(c);
	if (result < 0)
		return result;
	if (held)
		event_set_type(c, "TEAM_ROLES_MODIFIED");
	event_field(c, "teamId", d.id);
	return roles_give(c, entry, arena_printf(c->arena, "[%zu].roleNames", index).p, d.id);
}

/* A team that is assigned already has the given roles from now on. */
int teams_assign(struct call *c)
{
	size_t count = json_array_size(c->body), most = (size_t)resource_group_team.most;
	int result =
	        count > 0 && count <= most ? 0 : call_fail_fault(c, STR_NONE, "must have from 1 to %zu entries", most);
	struct doc_question *asked = arena_new_array(c->arena, struct doc_question, 2 * count + 1);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct str id = json_field(json_array_get(c->body, i), "teamId");
		asked[2 * i] = (struct doc_question){.kind = "team", .id = id};
		asked[2 * i + 1] = (struct doc_question){.kind = "group_team", .parent = c->group.id, .name = id};
	}
	if (result == 0)
		tx_read_ahead(c->tx, asked, 2 * count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = assign_one(c, i);
	if (result == 0)
		result = resource_limit(c, &resource_group_team, c->group.id, 0);
	return result < 0 ? result : verb_list(c);
}

int teams_update_in_project(struct call *c)
{
	struct doc d;
	int result = resource_load(c, c->op->resource, &d);
	if (result == 0 && !str_eq(json_field(c->body, "teamId"), d.name))
		result = call_fail_field(c, 400, "VALIDATION_ERROR", "teamId", "must be the one in the path.");
	if (result < 0)
		return result;
	event_field(c, "teamId", d.name);
	result = roles_give(c, c->body, "roleNames", d.name);
	return result < 0 ? result : verb_list(c);
}

/* Users. */

/* A team is small: all its people are looked at. */
static int user_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct segment *lists = arena_new_array(c->arena, struct segment, 2);
	struct str team_id;
	int result = resource_parent(c, &resource_team_user, &team_id);
	if (result < 0)
		return result;
	lists[0] = (struct segment){.kind = "team_user", .parent = team_id};
	lists[1] = (struct segment){.kind = "team_pending", .parent = team_id};
	return people_segments(c, lists, 2, false, ret_list, ret_count);
}

static int user_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct member *m = arena_new_of(c->arena, struct member);
	struct str team_id = STR_NONE, user_id = call_path(c, r->key_param);
	int result = team_of_path(c, &team_id);
	if (result == 0)
		result = member_load(c->tx, c->arena, c->org.id, user_id.p ? user_id : json_field(c->body, "id"), m);
	if (result == 0 && !member_at(m, team_id))
		result = -ENOENT;
	c->noted = m;
	*ret_doc = (struct doc){.kind = STR("team_user"), .parent = team_id, .name = m->user_id, .body = STR("{}")};
	return result;
}

static int user_drop(struct call *c, const struct doc *d)
{
	const struct member *before = c->noted;
	struct member after = *before;
	event_field(c, "targetUsername", after.username);
	member_put(c->arena, &after, (struct place){.id = d->parent});
	return member_apply(c, before, &after);
}

static int user_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	tx_touch_identity(tx);
	return tx_set_by_name(tx, a, "user_team", d->name, d->parent, STR_NONE);
}

const struct resource_hooks team_user_hooks = {.load = user_load,
                                               .drop = user_drop,
                                               .segments = user_segments,
                                               .takes = people_takes,
                                               .stand_in = people_stand_in,
                                               .gone = user_gone};

/* The invitation is one to the team no more. */
static int pending_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	struct member m;
	int result = invitation_of_doc(tx, a, d, &m);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	member_put(a, &m, (struct place){.id = d->parent});
	struct doc invitation = invitation_doc(a, &m);
	return tx_update(tx, &invitation);
}

const struct resource_hooks team_pending_hooks = {.gone = pending_gone};

/* The older form: several at once, those who were just made and have not accepted yet among them. Its list, as all of
 * that form, has accounts only. */
int teams_add_users(struct call *c)
{
	struct str team_id = STR_NONE;
	int result = team_of_path(c, &team_id);
	if (json_array_size(c->body) == 0)
		event_set_type(c, NULL);
	for (size_t i = 0; result == 0 && i < json_array_size(c->body); i++) {
		struct str path = arena_printf(c->arena, "[%zu].id", i);
		struct member m;
		if (i)
			result = event_next(c);
		if (result == 0)
			result = user_join(c, json_field(json_array_get(c->body, i), "id"), path, team_id, &m);
	}
	c->page_size = TEAM_USERS_MAX;
	return result < 0 ? result : verb_list(c);
}

int teams_add_user(struct call *c)
{
	struct str team_id;
	struct member m;
	int result = team_of_path(c, &team_id);
	if (result == 0)
		result = user_join(c, json_field(c->body, "id"), STR("id"), team_id, &m);
	return result < 0 ? result : people_write(c, &m);
}

int teams_remove_user_by_body(struct call *c)
{
	struct doc d;
	int result = user_load(c, &resource_team_user, &d);
	if (result == -ENOENT && d.parent.n)
		return call_fail_field(c, 400, "USER_NOT_IN_TEAM", "id", "must be a user of the team.");
	if (result == 0)
		result = user_drop(c, &d);
	return result < 0 ? result : people_write(c, c->noted);
}

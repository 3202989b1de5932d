/* People in organizations: what they have, active or invited, read and changed in one way, so that the operations on
 * users need not care whether somebody has accepted yet. */
#include "api/users/users.h"

#include "base/clock.h"
#include "base/id.h"
#include "identity/gifts.h"
#include "trail/events.h"

#include <errno.h>

#define ASSIGNMENTS_MAX 1000 /* projects that one body gives roles in */
#define USER_TEAMS_MAX 100   /* of a user, in one organization */

/* Reading. */

/* Whether the project or team is there, and the organization's. */
static int is_of_org(struct tx *tx, struct arena *a, const char *kind, struct str id, struct str org_id, bool *ret_is)
{
	struct doc d;
	int result = tx_get(tx, a, kind, id, &d);
	*ret_is = result == 0 && str_eq(d.parent, org_id);
	return result == -ENOENT ? 0 : result;
}

static int groups_load(struct tx *tx, struct arena *a, struct member *m)
{
	struct grant_row *rows = NULL;
	size_t count;
	bool ours = false;
	int result = grants_of(tx, a, m->user_id, &rows, &count);
	m->groups = rows;
	for (size_t i = 0; result == 0 && i < count; i++) {
		if (rows[i].in_org) {
			m->roles = str_eq(rows[i].id, m->org_id) ? rows[i].roles : m->roles;
			continue;
		}
		result = is_of_org(tx, a, "project", rows[i].id, m->org_id, &ours);
		if (result == 0 && ours)
			m->groups[m->group_count++] = rows[i];
	}
	return result;
}

static int teams_load(struct tx *tx, struct arena *a, struct member *m)
{
	struct doc *docs;
	size_t count;
	bool ours = false;
	int result = tx_list_all(tx, a, "user_team", m->user_id, &docs, &count);
	m->teams = arena_new_array(a, struct str, count + 1);
	for (size_t i = 0; result == 0 && i < count; i++) {
		result = is_of_org(tx, a, "team", docs[i].name, m->org_id, &ours);
		if (result == 0 && ours)
			m->teams[m->team_count++] = docs[i].name;
	}
	return result;
}

int member_load(struct tx *tx, struct arena *a, struct str org_id, struct str user_id, struct member *ret_member)
{
	struct member m = {.user_id = user_id, .org_id = org_id, .active = true};
	int result = id_is_valid(user_id) ? tx_get(tx, a, "user", user_id, &m.user) : -ENOENT;
	if (result == 0)
		result = groups_load(tx, a, &m);
	if (result == -ENOENT || (result == 0 && !m.roles && !m.group_count))
		return invitation_find(tx, a, true, org_id, user_id, ret_member);
	if (result == 0)
		result = teams_load(tx, a, &m);
	if (result < 0)
		return result;
	m.user_id = m.user.id;
	m.username = json_field(doc_json(a, m.user.body), "username");
	*ret_member = m;
	return 0;
}

const char *member_status(const struct member *m)
{
	if (m->active)
		return "ACTIVE";
	if (m->rejected)
		return "INVITATION_REJECTED";
	return clock_now_ms() >= m->expires_ms ? "INVITATION_EXPIRED" : "PENDING";
}

bool member_is_pending(const struct member *m)
{
	return strcmp(member_status(m), "PENDING") == 0;
}

bool member_in_team(const struct member *m, struct str team_id)
{
	for (size_t i = 0; i < m->team_count; i++)
		if (str_eq(m->teams[i], team_id))
			return true;
	return false;
}

role_mask member_group_roles(const struct member *m, struct str group_id)
{
	for (size_t i = 0; i < m->group_count; i++)
		if (str_eq(m->groups[i].id, group_id))
			return m->groups[i].roles;
	return 0;
}

/* Changes. */

void member_put_group(struct arena *a, struct member *m, struct str group_id, role_mask roles)
{
	struct grant_row *groups = arena_new_array(a, struct grant_row, m->group_count + 1);
	size_t count = 0;
	bool found = false;
	for (size_t i = 0; i < m->group_count; i++) {
		bool same = str_eq(m->groups[i].id, group_id);
		found = found || same;
		if (!same || roles)
			groups[count++] = (struct grant_row){m->groups[i].id, false, same ? roles : m->groups[i].roles};
	}
	if (!found && roles)
		groups[count++] = (struct grant_row){group_id, false, roles};
	m->groups = groups;
	m->group_count = count;
}

void member_put_team(struct arena *a, struct member *m, struct str team_id, bool in)
{
	struct str *teams = arena_new_array(a, struct str, m->team_count + 1);
	size_t count = 0;
	for (size_t i = 0; i < m->team_count; i++)
		if (!str_eq(m->teams[i], team_id))
			teams[count++] = m->teams[i];
	if (in)
		teams[count++] = team_id;
	m->teams = teams;
	m->team_count = count;
}

/* 409 when the organization would be left without an owner. */
static int keep_owner(struct call *c, const struct member *before, role_mask roles)
{
	role_mask owner = role_bit("ORG_OWNER");
	int64_t owners;
	if (!(before->roles & owner) || roles & owner)
		return 0;
	int result = grant_owner_count(c->tx, before->org_id, &owners);
	if (result < 0 || owners > 1)
		return result;
	call_fail(c, 409, "LAST_ORG_OWNER", "%.*s is the organization's last owner. Make somebody else an owner first.",
	          STR_ARG(before->username));
	return call_fail_param(c, before->username);
}

static int grant_to(struct call *c, const struct member *m, bool in_org, struct str scope, role_mask roles)
{
	return grant_set(c->tx, c->arena, GRANTEE_USER, m->user_id, in_org, scope, roles);
}

int member_apply(struct call *c, const struct member *before, const struct member *m)
{
	if (!m->active)
		return m->via_project && before->group_count && !m->group_count
		               ? invitation_delete(c->tx, c->arena, before)
		               : invitation_update(c->tx, c->arena, before, m);
	int result = keep_owner(c, before, m->roles);
	if (result == 0 && m->roles != before->roles)
		result = grant_to(c, m, true, m->org_id, m->roles);
	for (size_t i = 0; result == 0 && i < before->group_count; i++)
		if (!member_group_roles(m, before->groups[i].id))
			result = grant_to(c, m, false, before->groups[i].id, 0);
	for (size_t i = 0; result == 0 && i < m->group_count; i++)
		if (member_group_roles(before, m->groups[i].id) != m->groups[i].roles)
			result = grant_to(c, m, false, m->groups[i].id, m->groups[i].roles);
	for (size_t i = 0; result == 0 && i < before->team_count; i++)
		if (!member_in_team(m, before->teams[i]))
			result = team_leave(c->tx, c->arena, before->teams[i], m->user_id);
	for (size_t i = 0; result == 0 && i < m->team_count; i++)
		if (!member_in_team(before, m->teams[i]))
			result = team_join(c->tx, c->arena, m->teams[i], m->user_id);
	return result;
}

/* Teams. */

int link_set(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name, struct str body)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, kind, parent, name, &d);
	if (result == 0 && !body.n)
		return tx_delete(tx, kind, d.id);
	if (result != -ENOENT || !body.n)
		return result == -ENOENT ? 0 : result;
	struct id id = id_new();
	d = (struct doc){.kind = str_of(kind),
	                 .id = arena_dup(a, id_str(&id)),
	                 .parent = parent,
	                 .name = name,
	                 .created_ms = clock_now_ms(),
	                 .body = body};
	return tx_insert(tx, &d);
}

static int team_set(struct tx *tx, struct arena *a, struct str team_id, struct str user_id, bool in)
{
	struct str body = in ? STR("{}") : STR_NONE;
	int result = link_set(tx, a, "user_team", user_id, team_id, body);
	if (result == 0)
		result = link_set(tx, a, "team_user", team_id, user_id, body);
	tx_touch_identity(tx);
	return result;
}

int team_join(struct tx *tx, struct arena *a, struct str team_id, struct str user_id)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, "user_team", user_id, team_id, &d);
	if (result == -ENOENT)
		result = gift_team(tx, team_id, user_id);
	return result < 0 ? result : team_set(tx, a, team_id, user_id, true);
}

int team_leave(struct tx *tx, struct arena *a, struct str team_id, struct str user_id)
{
	return team_set(tx, a, team_id, user_id, false);
}

static int too_many(struct call *c, const char *code, const char *what, int64_t have, int64_t most)
{
	call_fail(c, 400, code, "%s: %lld of at most %lld.", what, (long long)have, (long long)most);
	return call_fail_param(c, arena_printf(c->arena, "%lld", (long long)most));
}

int team_admit(struct call *c, struct str team_id)
{
	int64_t active = 0, pending = 0;
	int result = tx_count(c->tx, "team_user", team_id, &active);
	if (result == 0)
		result = tx_count(c->tx, "team_pending", team_id, &pending);
	if (result < 0 || active + pending < TEAM_USERS_MAX)
		return result;
	return too_many(c, "TEAM_USERS_LIMIT_EXCEEDED", "The team has too many users", active + pending,
	                TEAM_USERS_MAX);
}

int user_teams_check(struct call *c, size_t count, size_t more)
{
	if (count + more <= USER_TEAMS_MAX)
		return 0;
	return too_many(c, "USER_TEAMS_LIMIT_EXCEEDED", "The user is in too many teams", (int64_t)count,
	                USER_TEAMS_MAX);
}

/* Bodies. */

/* [{"groupId", "<roles_field>": [...]}, ...]: projects of the organization, each once. */
static int groups_read(struct call *c, const json_t *list, const char *path, const char *roles_field, struct member *m)
{
	if (json_array_size(list) > ASSIGNMENTS_MAX)
		return call_fail_field(c, 400, "VALIDATION_ERROR", path, "must have at most %d items.",
		                       ASSIGNMENTS_MAX);
	m->group_count = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);
		struct str id = json_field(entry, "groupId");
		role_mask roles = 0;
		bool ours = false;
		int result = id.n ? is_of_org(c->tx, c->arena, "project", id, c->org.id, &ours) : 0;
		if (result == 0 && !ours)
			return call_fail_field(c, 400, "INVALID_GROUP_ID",
			                       arena_printf(c->arena, "%s[%zu].groupId", path, i).p,
			                       "must be the id of a project of this organization.");
		if (result == 0)
			result = role_list_read(c, json_object_get(entry, roles_field),
			                        arena_printf(c->arena, "%s[%zu].%s", path, i, roles_field).p, false,
			                        &roles);
		if (result < 0)
			return result;
		member_put_group(c->arena, m, id, roles | member_group_roles(m, id));
	}
	return 0;
}

static int teams_read(struct call *c, const json_t *list, struct member *m)
{
	const struct member had = *m;
	m->team_count = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *text = json_array_get(list, i);
		struct str id = {json_string_value(text), json_string_length(text)};
		bool ours = false;
		int result = is_of_org(c->tx, c->arena, "team", id, c->org.id, &ours);
		if (result == 0 && !ours)
			return call_fail_field(c, 400, "INVALID_TEAM_ID", arena_printf(c->arena, "teamIds[%zu]", i).p,
			                       "must be the id of a team of this organization.");
		if (result == 0 && !member_in_team(&had, id))
			result = team_admit(c, id);
		if (result < 0)
			return result;
		if (!member_in_team(m, id))
			member_put_team(c->arena, m, id, true);
	}
	return user_teams_check(c, m->team_count, 0);
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

/* An invitation to the organization, new or in the place of one that is over. */
static int invite(struct call *c, struct member *m)
{
	struct member there;
	int result = user_id_of(c->tx, c->arena, m->username, &m->user_id);
	if (result == 0)
		result = member_load(c->tx, c->arena, m->org_id, m->user_id, &there);
	if (result == 0 && there.active && there.roles)
		call_fail(c, 409, "USER_ALREADY_IN_ORG", "username: %.*s is a member of the organization already.",
		          STR_ARG(m->username));
	else if (result == 0 && member_is_pending(&there))
		call_fail(c, 409, "USER_ALREADY_INVITED",
		          "username: %.*s is invited already. Update the invitation, or remove it first.",
		          STR_ARG(m->username));
	else
		return result == 0 || result == -ENOENT ? invitation_add(c, m) : result;
	return call_fail_param(c, m->username);
}

int member_save(struct call *c, bool nested, const struct member *before, struct member *m)
{
	struct member nobody = {.active = false};
	int result = body_read(c, nested, !before, m);
	m->org_id = c->org.id;
	/* An organization that says which roles somebody has keeps them, whatever becomes of the project. */
	if (!before || !nested || json_object_get(c->body, "roles"))
		m->via_project = false;
	if (result == 0)
		result = before ? member_apply(c, before, m) : invite(c, m);
	if (result == 0)
		result = member_tell(c, before ? before : &nobody, m);
	event_roles(c, m->roles);
	return result;
}

int member_is_taken(struct call *c, struct str username)
{
	call_fail(c, 409, "USER_ALREADY_IN_GROUP", "username: %.*s is in the project already, or invited to it.",
	          STR_ARG(username));
	return call_fail_param(c, username);
}

/* A member gets the roles at once; what waited for its answer is done with. */
static int add_now(struct call *c, struct member *m, role_mask roles)
{
	const struct member before = *m;
	struct member waiting;
	if (member_group_roles(m, c->group.id))
		return member_is_taken(c, m->username);
	int result = invitation_find(c->tx, c->arena, false, c->group.id, m->user_id, &waiting);
	if (result == 0)
		result = invitation_delete(c->tx, c->arena, &waiting);
	member_put_group(c->arena, m, c->group.id, roles);
	m->rev += !m->active;
	return result == 0 || result == -ENOENT ? member_apply(c, &before, m) : result;
}

int member_add_group(struct call *c, struct str username, role_mask roles, struct member *ret_member)
{
	struct member m = {
	        .org_id = c->org.id, .username = username, .roles = role_bit("ORG_MEMBER"), .via_project = true};
	int result = user_id_of(c->tx, c->arena, username, &m.user_id);
	if (result == 0)
		result = member_load(c->tx, c->arena, c->org.id, m.user_id, ret_member);
	if (result == 0 && (ret_member->active || member_is_pending(ret_member)))
		return add_now(c, ret_member, roles);
	if (result < 0 && result != -ENOENT)
		return result;
	member_put_group(c->arena, &m, c->group.id, roles);
	result = invitation_add(c, &m);
	*ret_member = m;
	return result;
}

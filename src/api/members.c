/* People in organizations: what they have, active or invited, read and changed in one way, so that the operations on users
 * need not care whether somebody has accepted yet. Their forms in answers are in member_json.c. */
#include "api/members.h"

#include "api/role_lists.h"
#include "api/verbs.h"

#include "base/clock.h"
#include "base/id.h"
#include "gate/gifts.h"

#include <errno.h>

#define TEAMS_MAX 1000
#define ASSIGNMENTS_MAX 1000 /* projects that one body gives roles in */

/* Accounts. */

struct str user_name_of(struct arena *a, struct str given)
{
	char *text = arena_z(a, given);
	for (size_t i = 0; i < given.n; i++)
		if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] = (char)(text[i] - 'A' + 'a');
	return (struct str){text, given.n};
}

/* An account that does not exist yet has an id all the same: it follows from the name under the installation's key, so that
 * every invitation shows the same one and nothing has to be kept for people who never come. */
int user_id_of(struct tx *tx, struct arena *a, struct str username, struct str *ret_id)
{
	unsigned char mac[32];
	char text[65];
	int result = tx_ref_get(tx, a, "user_name", username, ret_id);
	if (result != -ENOENT)
		return result;
	seal_mac("user id", username, mac);
	hex_encode(mac, sizeof mac, text);
	*ret_id = arena_dup(a, (struct str){text, ID_LEN});
	return 0;
}

void user_profile_set(json_t *body, const json_t *profile)
{
	static const char *const fields[] = {"firstName", "lastName", "country", "mobileNumber"};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (json_is_string(json_object_get(profile, fields[i])))
			json_object_set(body, fields[i], json_object_get(profile, fields[i]));
}

bool user_is_proven(struct arena *a, const struct doc *user)
{
	return json_field(doc_json(a, user->body), "lastAuth").n != 0;
}

int user_add(struct tx *tx, struct arena *a, struct str username, const json_t *profile, struct str password_hash,
             struct doc *ret_user)
{
	struct str id;
	int result = user_id_of(tx, a, username, &id);
	if (result < 0)
		return result;
	json_t *body = doc_json(a, STR("{}"));
	json_object_set_new(body, "id", json_stringn(id.p, id.n));
	json_object_set_new(body, "username", json_stringn(username.p, username.n));
	user_profile_set(body, profile);
	struct doc d = {.kind = STR("user"),
	                .id = id,
	                .created_ms = clock_now_ms(),
	                .body = json_text(a, body),
	                .secret = password_hash,
	                .rev = 1};
	result = tx_insert(tx, &d);
	if (result == 0)
		result = tx_ref_put(tx, "user_name", username, id);
	if (result == 0)
		*ret_user = d;
	return result;
}

int user_signed_in(struct tx *tx, struct arena *a, struct str user_id)
{
	struct doc user;
	char now[CLOCK_TEXT];
	int result = tx_get(tx, a, "user", user_id, &user);
	if (result < 0)
		return result;
	json_t *body = doc_json(a, user.body);
	clock_format(clock_now_ms(), now);
	json_object_set_new(body, "lastAuth", json_string(now));
	user.body = json_text(a, body);
	return tx_update(tx, &user);
}

/* Members. */

static int groups_load(struct tx *tx, struct arena *a, struct str org_id, struct member *m)
{
	struct grant_row *rows;
	size_t count;
	int result = grants_of(tx, a, m->user_id, &rows, &count);
	if (result < 0)
		return result;
	m->groups = arena_new_array(a, struct grant_row, count + 1);
	for (size_t i = 0; i < count; i++) {
		struct doc project;
		if (rows[i].in_org) {
			if (str_eq(rows[i].id, org_id))
				m->roles = rows[i].roles;
			continue;
		}
		result = tx_get(tx, a, "project", rows[i].id, &project);
		if (result < 0 && result != -ENOENT)
			return result;
		if (result == 0 && str_eq(project.parent, org_id))
			m->groups[m->group_count++] = rows[i];
	}
	return 0;
}

static int teams_load(struct tx *tx, struct arena *a, struct str org_id, struct member *m)
{
	struct doc *docs, team;
	size_t count;
	int result = tx_list(tx, a, "user_team", m->user_id, 0, TEAMS_MAX, &docs, &count);
	if (result < 0)
		return result;
	m->teams = arena_new_array(a, struct str, count + 1);
	for (size_t i = 0; i < count; i++) {
		result = tx_get(tx, a, "team", docs[i].name, &team);
		if (result < 0 && result != -ENOENT)
			return result;
		if (result == 0 && str_eq(team.parent, org_id))
			m->teams[m->team_count++] = docs[i].name;
	}
	return 0;
}

void member_of_invitation(const struct invitation *i, struct member *ret_member)
{
	*ret_member = (struct member){.user_id = i->user_id,
	                              .username = i->username,
	                              .invitation = *i,
	                              .roles = i->roles,
	                              .groups = i->groups,
	                              .group_count = i->group_count,
	                              .teams = i->teams,
	                              .team_count = i->team_count};
}

int member_load(struct tx *tx, struct arena *a, struct str org_id, struct str user_id, struct member *ret_member)
{
	struct member m = {.user_id = user_id, .active = true};
	struct invitation i;
	int result = id_is_valid(user_id) ? tx_get(tx, a, "user", user_id, &m.user) : -ENOENT;
	if (result == 0)
		result = groups_load(tx, a, org_id, &m);
	if (result == 0 && (m.roles || m.group_count)) {
		m.user_id = m.user.id;
		m.username = json_field(doc_json(a, m.user.body), "username");
		result = teams_load(tx, a, org_id, &m);
		if (result == 0)
			*ret_member = m;
		return result;
	}
	if (result < 0 && result != -ENOENT)
		return result;
	result = invitation_find(tx, a, true, org_id, user_id, &i);
	if (result == 0)
		member_of_invitation(&i, ret_member);
	return result;
}

const char *member_status(const struct member *m)
{
	return m->active ? "ACTIVE" : invitation_status_name(invitation_status(&m->invitation));
}

role_mask member_group_roles(const struct member *m, struct str group_id)
{
	for (size_t i = 0; i < m->group_count; i++)
		if (str_eq(m->groups[i].id, group_id))
			return m->groups[i].roles;
	return 0;
}

int member_team_roles(struct tx *tx, struct arena *a, const struct member *m, struct str group_id, role_mask *ret_roles)
{
	role_mask roles = 0, one;
	for (size_t i = 0; i < m->team_count; i++) {
		int result = grant_get(tx, a, m->teams[i], group_id, &one);
		if (result < 0)
			return result;
		roles |= one;
	}
	*ret_roles = roles;
	return 0;
}

role_mask member_org_given(const struct member *m)
{
	role_mask closed = 0, least = 0;
	for (role_mask rest = m->roles; rest; rest &= rest - 1)
		closed |= role_in_project[__builtin_ctzll(rest)];
	for (role_mask rest = closed; rest; rest &= rest - 1) {
		role_mask others = closed & ~(rest & -rest), covered = 0;
		for (; others; others &= others - 1)
			covered |= role_closure[__builtin_ctzll(others)];
		least |= rest & -rest & ~covered;
	}
	return least;
}

/* Changes. */

/* 409 when the organization would be left without an owner. */
static int keep_owner(struct call *c, const struct member *m, struct str org_id, role_mask roles)
{
	role_mask owner = role_bit("ORG_OWNER");
	int64_t owners;
	if (!m->active || !(m->roles & owner) || roles & owner)
		return 0;
	int result = grant_owner_count(c->tx, org_id, &owners);
	if (result < 0 || owners > 1)
		return result;
	call_fail(c, 409, "LAST_ORG_OWNER", "%.*s is the organization's last owner. Make somebody else an owner first.",
	          STR_ARG(m->username));
	return call_fail_param(c, m->username);
}

int member_set_org_roles(struct call *c, struct member *m, struct str org_id, role_mask roles)
{
	int result = keep_owner(c, m, org_id, roles);
	if (result < 0)
		return result;
	m->roles = m->invitation.roles = roles;
	if (m->active)
		return grant_set(c->tx, c->arena, GRANTEE_USER, m->user_id, true, org_id, roles);
	m->invitation.via_project = false;
	return invitation_update(c->tx, c->arena, &m->invitation);
}

int member_set_group_roles(struct call *c, struct member *m, struct str group_id, role_mask roles)
{
	int result;
	/* The same list of projects, kept by the same rules. */
	struct invitation list = {.groups = m->groups, .group_count = m->group_count};
	if (m->active)
		result = grant_set(c->tx, c->arena, GRANTEE_USER, m->user_id, false, group_id, roles);
	else if (!roles)
		result = invitation_drop_group(c->tx, c->arena, &m->invitation, group_id);
	else {
		invitation_set_group(c->arena, &m->invitation, group_id, roles);
		result = invitation_update(c->tx, c->arena, &m->invitation);
	}
	invitation_set_group(c->arena, &list, group_id, roles);
	m->groups = list.groups;
	m->group_count = list.group_count;
	return result;
}

int member_set_groups(struct call *c, struct member *m, const struct grant_row *groups, size_t count)
{
	int result = 0;
	struct grant_row *rows = arena_new_array(c->arena, struct grant_row, count + 1);
	struct invitation wanted = {.groups = rows, .group_count = count};
	if (count)
		memcpy(rows, groups, count * sizeof *rows);
	if (!m->active) {
		m->groups = m->invitation.groups = rows;
		m->group_count = m->invitation.group_count = count;
		return invitation_update(c->tx, c->arena, &m->invitation);
	}
	for (size_t i = 0; result == 0 && i < m->group_count; i++)
		if (!invitation_group_roles(&wanted, m->groups[i].id))
			result = grant_set(c->tx, c->arena, GRANTEE_USER, m->user_id, false, m->groups[i].id, 0);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = grant_set(c->tx, c->arena, GRANTEE_USER, m->user_id, false, rows[i].id, rows[i].roles);
	m->groups = rows;
	m->group_count = count;
	return result;
}

static int link_put(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, kind, parent, name, &d);
	if (result != -ENOENT)
		return result;
	struct id id = id_new();
	d = (struct doc){.kind = str_of(kind),
	                 .id = arena_dup(a, id_str(&id)),
	                 .parent = parent,
	                 .name = name,
	                 .created_ms = clock_now_ms(),
	                 .body = STR("{}")};
	return tx_insert(tx, &d);
}

static int link_drop(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, kind, parent, name, &d);
	if (result == 0)
		return tx_delete(tx, kind, d.id);
	return result == -ENOENT ? 0 : result;
}

int team_join(struct tx *tx, struct arena *a, struct str team_id, struct str user_id)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, "user_team", user_id, team_id, &d);
	if (result == -ENOENT)
		result = gift_team(tx, team_id, user_id);
	if (result == 0)
		result = link_put(tx, a, "user_team", user_id, team_id);
	if (result == 0)
		result = link_put(tx, a, "team_user", team_id, user_id);
	tx_touch_identity(tx);
	return result;
}

int team_leave(struct tx *tx, struct arena *a, struct str team_id, struct str user_id)
{
	int result = link_drop(tx, a, "user_team", user_id, team_id);
	if (result == 0)
		result = link_drop(tx, a, "team_user", team_id, user_id);
	tx_touch_identity(tx);
	return result;
}

static bool listed(const struct str *list, size_t count, struct str id)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(list[i], id))
			return true;
	return false;
}

int member_set_teams(struct call *c, struct member *m, struct str *teams, size_t count)
{
	int result = 0;
	if (!m->active) {
		m->teams = m->invitation.teams = teams;
		m->team_count = m->invitation.team_count = count;
		return invitation_update(c->tx, c->arena, &m->invitation);
	}
	for (size_t i = 0; result == 0 && i < m->team_count; i++)
		if (!listed(teams, count, m->teams[i]))
			result = team_leave(c->tx, c->arena, m->teams[i], m->user_id);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = team_join(c->tx, c->arena, teams[i], m->user_id);
	m->teams = teams;
	m->team_count = count;
	return result;
}

int member_remove(struct call *c, struct member *m, struct str org_id)
{
	if (!m->active)
		return invitation_delete(c->tx, c->arena, &m->invitation);
	int result = keep_owner(c, m, org_id, 0);
	if (result == 0)
		result = member_set_teams(c, m, NULL, 0);
	if (result == 0)
		result = member_set_groups(c, m, NULL, 0);
	if (result == 0)
		result = grant_set(c->tx, c->arena, GRANTEE_USER, m->user_id, true, org_id, 0);
	return result;
}

/* Bodies. */

static int assignment_read(struct call *c, const json_t *entry, struct str path, const char *roles_field,
                           struct str org_id, struct grant_row *ret_row)
{
	struct doc project;
	struct str id = json_field(entry, "groupId"), where = arena_printf(c->arena, "%.*s.groupId", STR_ARG(path));
	int result = id.n ? tx_get(c->tx, c->arena, "project", id, &project) : -ENOENT;
	if (result == -ENOENT || (result == 0 && !str_eq(project.parent, org_id))) {
		call_fail(c, 400, "INVALID_GROUP_ID", "%.*s: must be the id of a project of this organization.",
		          STR_ARG(where));
		return call_fail_param(c, where);
	}
	if (result < 0)
		return result;
	*ret_row = (struct grant_row){.id = project.id};
	where = arena_printf(c->arena, "%.*s.%s", STR_ARG(path), roles_field);
	return role_list_read(c, json_object_get(entry, roles_field), where.p, false, &ret_row->roles);
}

int body_assignments(struct call *c, const json_t *list, const char *path, const char *roles_field, struct str org_id,
                     struct grant_row **ret_rows, size_t *ret_count)
{
	size_t count = 0, given = json_array_size(list);
	struct grant_row *rows = arena_new_array(c->arena, struct grant_row, given + 1);
	if (given > ASSIGNMENTS_MAX) {
		struct faults faults = {.count = 0};
		faults_add(&faults, c->arena, str_of(path), "must have at most %d items", ASSIGNMENTS_MAX);
		return call_fail_faults(c, &faults);
	}
	for (size_t i = 0; i < given; i++) {
		struct grant_row row = {.id = STR_NONE};
		struct str where = arena_printf(c->arena, "%s[%zu]", path, i);
		int result = assignment_read(c, json_array_get(list, i), where, roles_field, org_id, &row);
		size_t at = 0;
		if (result < 0)
			return result;
		while (at < count && !str_eq(rows[at].id, row.id))
			at++;
		row.roles |= at < count ? rows[at].roles : 0;
		rows[at] = row;
		count += at == count;
	}
	*ret_rows = rows;
	*ret_count = count;
	return 0;
}

int body_teams(struct call *c, const json_t *list, const char *path, struct str org_id, const struct str *had,
               size_t had_count, struct str **ret_teams, size_t *ret_count)
{
	struct str *teams = arena_new_array(c->arena, struct str, json_array_size(list) + 1);
	size_t count = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *text = json_array_get(list, i);
		struct doc team;
		int result = tx_get(c->tx, c->arena, "team",
		                    (struct str){json_string_value(text), json_string_length(text)}, &team);
		if (result == -ENOENT || (result == 0 && !str_eq(team.parent, org_id))) {
			struct str where = arena_printf(c->arena, "%s[%zu]", path, i);
			call_fail(c, 400, "INVALID_TEAM_ID", "%.*s: must be the id of a team of this organization.",
			          STR_ARG(where));
			return call_fail_param(c, where);
		}
		if (result == 0 && !listed(had, had_count, team.id))
			result = team_admit(c, team.id);
		if (result < 0)
			return result;
		if (!listed(teams, count, team.id))
			teams[count++] = team.id;
	}
	int result = user_teams_check(c, count, 0);
	if (result < 0)
		return result;
	*ret_teams = teams;
	*ret_count = count;
	return 0;
}

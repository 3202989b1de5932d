/* People in organizations: what they have, active or invited, read and changed in one way, so that the operations on
 * users need not care whether somebody has accepted yet. */
#include "api/users/users.h"

#include "base/clock.h"
#include "base/id.h"
#include "identity/gifts.h"
#include "trail/events.h"

#include <errno.h>

#define USER_TEAMS_MAX 100 /* of a user, in one organization */

/* Reading. */

int member_add_place(struct tx *tx, struct arena *a, struct member *m, struct place p)
{
	struct doc d;
	int result = tx_get(tx, a, p.is_team ? "team" : "project", p.id, &d);
	if (result == 0 && str_eq(d.parent, m->org_id))
		m->places[m->place_count++] = p;
	return result == -ENOENT ? 0 : result;
}

/* For each: the project or team, how many it has of what is asked with each change, and its note of the invited. */
#define QUESTIONS_EACH 4

void places_read_ahead(struct tx *tx, struct arena *a, const struct place *places, size_t count, struct str user_id)
{
	struct doc_question *list = arena_new_array(a, struct doc_question, QUESTIONS_EACH * count + 1);
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		const struct place *p = &places[i];
		list[n++] = (struct doc_question){.kind = p->is_team ? "team" : "project", .id = p->id};
		if (p->is_team) {
			list[n++] = (struct doc_question){.kind = "team_user", .parent = p->id, .count = true};
			list[n++] = (struct doc_question){.kind = "team_pending", .parent = p->id, .count = true};
		} else {
			list[n++] = (struct doc_question){.kind = "alert_listener", .parent = p->id, .count = true};
		}
		if (user_id.n)
			list[n++] = (struct doc_question){.kind = p->is_team ? "team_pending" : "group_pending",
			                                  .parent = p->id,
			                                  .name = user_id};
	}
	tx_read_ahead(tx, list, n);
}

static int grants_load(struct tx *tx, struct arena *a, struct member *m)
{
	struct grant_row *grants = NULL;
	struct doc *teams = NULL;
	size_t grant_count = 0, team_count = 0;
	int result = grants_of(tx, a, m->user_id, &grants, &grant_count);
	if (result == 0)
		result = tx_list_all(tx, a, "user_team", m->user_id, &teams, &team_count);
	m->places = arena_new_array(a, struct place, grant_count + team_count + 1);
	struct place *asked = arena_new_array(a, struct place, grant_count + team_count + 1);
	size_t n = 0;
	for (size_t i = 0; result == 0 && i < grant_count; i++)
		if (!grants[i].in_org)
			asked[n++] = (struct place){.id = grants[i].id};
	for (size_t i = 0; result == 0 && i < team_count; i++)
		asked[n++] = (struct place){.id = teams[i].name, .is_team = true};
	places_read_ahead(tx, a, asked, n, STR_NONE);
	for (size_t i = 0; result == 0 && i < grant_count; i++)
		if (!grants[i].in_org)
			result = member_add_place(tx, a, m, (struct place){grants[i].id, false, grants[i].roles});
		else if (str_eq(grants[i].id, m->org_id))
			m->roles = grants[i].roles;
	for (size_t i = 0; result == 0 && i < team_count; i++)
		result = member_add_place(tx, a, m, (struct place){teams[i].name, true, IN_TEAM});
	return result;
}

int member_load(struct tx *tx, struct arena *a, struct str org_id, struct str user_id, struct member *ret_member)
{
	struct member m = {.user_id = user_id, .org_id = org_id, .active = true};
	int result = id_is_valid(user_id) ? tx_get(tx, a, "user", user_id, &m.user) : -ENOENT;
	if (result == 0)
		result = grants_load(tx, a, &m);
	if (result == -ENOENT || (result == 0 && !m.roles && !member_count(&m, false)))
		return invitation_find(tx, a, true, org_id, user_id, ret_member);
	if (result < 0)
		return result;
	m.user_id = m.user.id;
	m.username = json_field(doc_json(a, m.user.body), "username");
	*ret_member = m;
	return 0;
}

int member_of_name(struct call *c, struct str org_id, struct str username, struct member *ret_member)
{
	struct member nobody = {.org_id = org_id, .username = username};
	int result = user_id_of(c->tx, c->arena, username, &nobody.user_id);
	if (result == 0)
		result = member_load(c->tx, c->arena, org_id, nobody.user_id, ret_member);
	if (result != -ENOENT)
		return result;
	*ret_member = nobody;
	return 0;
}

const char *const member_statuses[MEMBER_STATUSES] = {[MEMBER_ACTIVE] = "ACTIVE",
                                                      [MEMBER_PENDING] = "PENDING",
                                                      [MEMBER_EXPIRED] = "INVITATION_EXPIRED",
                                                      [MEMBER_REJECTED] = "INVITATION_REJECTED"};

enum member_status member_status(const struct member *m)
{
	if (m->active)
		return MEMBER_ACTIVE;
	if (m->rejected)
		return MEMBER_REJECTED;
	/* It was to projects alone, and they are gone. */
	if (m->via_project && !member_count(m, false))
		return MEMBER_EXPIRED;
	return clock_now_ms() >= m->expires_ms ? MEMBER_EXPIRED : MEMBER_PENDING;
}

bool member_is_pending(const struct member *m)
{
	return member_status(m) == MEMBER_PENDING;
}

role_mask member_at(const struct member *m, struct str place_id)
{
	for (size_t i = 0; i < m->place_count; i++)
		if (str_eq(m->places[i].id, place_id))
			return m->places[i].roles;
	return 0;
}

size_t member_count(const struct member *m, bool teams)
{
	size_t count = 0;
	for (size_t i = 0; i < m->place_count; i++)
		count += m->places[i].is_team == teams;
	return count;
}

json_t *member_groups_json(const struct member *m, const char *roles_field)
{
	json_t *groups = json_array();
	for (size_t i = 0; i < m->place_count; i++)
		if (!m->places[i].is_team)
			json_array_append_new(groups,
			                      json_pack("{s:s%, s:o}", "groupId", m->places[i].id.p, m->places[i].id.n,
			                                roles_field, roles_json(m->places[i].roles)));
	return groups;
}

json_t *member_teams_json(const struct member *m)
{
	json_t *teams = json_array();
	for (size_t i = 0; i < m->place_count; i++)
		if (m->places[i].is_team)
			json_add_str(teams, m->places[i].id);
	return teams;
}

/* Changes. */

void member_put(struct arena *a, struct member *m, struct place p)
{
	struct place *places = arena_new_array(a, struct place, m->place_count + 1);
	size_t count = 0;
	bool found = false;
	for (size_t i = 0; i < m->place_count; i++) {
		bool same = str_eq(m->places[i].id, p.id);
		found = found || same;
		if (!same || p.roles)
			places[count++] = same ? p : m->places[i];
	}
	if (!found && p.roles)
		places[count++] = p;
	m->places = places;
	m->place_count = count;
}

static size_t changes_add(struct change *list, const struct place *p, role_mask was, role_mask is)
{
	*list = (struct change){p->id, p->is_team, was, is};
	return was != is;
}

size_t member_changes(struct arena *a, const struct member *before, const struct member *after,
                      struct change **ret_changes)
{
	struct change *list = arena_new_array(a, struct change, before->place_count + after->place_count + 1);
	size_t count = 0;
	for (int teams = 0; teams < 2; teams++) {
		for (size_t i = 0; i < before->place_count; i++) {
			const struct place *p = &before->places[i];
			if (p->is_team == teams)
				count += changes_add(&list[count], p, p->roles, member_at(after, p->id));
		}
		for (size_t i = 0; i < after->place_count; i++) {
			const struct place *p = &after->places[i];
			if (p->is_team == teams && !member_at(before, p->id))
				count += changes_add(&list[count], p, 0, p->roles);
		}
	}
	*ret_changes = list;
	return count;
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
	return call_fail_about(c, 409, "LAST_ORG_OWNER", before->username,
	                       "\"%.*s\" is the organization's last owner. Make somebody else an owner first.",
	                       STR_ARG(before->username));
}

static int invitation_apply(struct call *c, const struct member *before, const struct member *m)
{
	bool lost_projects = member_count(before, false) && !member_count(m, false);
	if (!m->roles || (m->via_project && lost_projects))
		return invitation_delete(c->tx, c->arena, before);
	int result = invitation_check(c, m);
	return result < 0 ? result : invitation_update(c->tx, c->arena, before, m);
}

int member_apply(struct call *c, const struct member *before, const struct member *m)
{
	struct change *changes;
	if (!m->active)
		return invitation_apply(c, before, m);
	size_t count = member_changes(c->arena, before, m, &changes);
	int result = keep_owner(c, before, m->roles);
	if (result == 0 && m->roles != before->roles)
		result = grant_set(c->tx, c->arena, GRANTEE_USER, m->user_id, true, m->org_id, m->roles);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (changes[i].is_team)
			result = team_set_user(c->tx, c->arena, changes[i].id, m->user_id, changes[i].is);
		else
			result = grant_set(c->tx, c->arena, GRANTEE_USER, m->user_id, false, changes[i].id,
			                   changes[i].is);
	return result;
}

int member_set_roles(struct call *c, const struct member *before, role_mask roles, struct member *ret_member)
{
	*ret_member = *before;
	if (in_project(c) && before->org_id.n) {
		member_put(c->arena, ret_member, (struct place){c->group.id, false, roles});
	} else {
		ret_member->roles = roles;
		ret_member->via_project = false;
	}
	return member_apply(c, before, ret_member);
}

int member_remove(struct call *c, const struct member *before)
{
	struct member after = *before;
	after.roles = 0;
	after.place_count = 0;
	int result = member_apply(c, before, &after);
	return result < 0 ? result : member_tell(c, before, &after);
}

/* Events. The owners of projects and teams look into their own log, so that it tells who came, who left and whose roles
 * are others, whichever operation did it. */

static const char *change_event(const struct change *change, bool active)
{
	if (change->is_team)
		return !change->is ? "REMOVED_FROM_TEAM" : active ? "JOINED_TEAM" : "INVITED_TO_TEAM";
	if (change->was && change->is)
		return "USER_ROLES_CHANGED_AUDIT";
	if (change->is)
		return active ? "JOINED_GROUP" : "INVITED_TO_GROUP";
	return active ? "REMOVED_FROM_GROUP" : "GROUP_INVITATION_DELETED";
}

int member_tell(struct call *c, const struct member *before, const struct member *after)
{
	const struct call_event own = c->event;
	struct change *changes;
	size_t count = member_changes(c->arena, before, after, &changes);
	int result = 0;
	for (size_t i = 0; result == 0 && i < count; i++) {
		const struct change *change = &changes[i];
		c->event = (struct call_event){0};
		event_set_type(c, change_event(change, after->active));
		event_scope(c, after->org_id, change->is_team ? STR_NONE : change->id);
		if (change->is_team)
			event_field(c, "teamId", change->id);
		else if (change->is)
			event_roles(c, change->is);
		event_field(c, "targetUsername", after->username);
		result = event_next(c);
	}
	c->event = own;
	return result;
}

/* Teams. */

int team_set_user(struct tx *tx, struct arena *a, struct str team_id, struct str user_id, bool in)
{
	struct str body = in ? STR("{}") : STR_NONE;
	struct doc d;
	int result = in ? tx_get_by_name(tx, a, "user_team", user_id, team_id, &d) : 0;
	if (result == -ENOENT)
		result = gift_team(tx, team_id, user_id);
	if (result == 0)
		result = tx_set_by_name(tx, a, "user_team", user_id, team_id, body);
	if (result == 0)
		result = tx_set_by_name(tx, a, "team_user", team_id, user_id, body);
	tx_touch_identity(tx);
	return result;
}

static int too_many(struct call *c, const char *code, const char *what, int64_t have, int most)
{
	return call_fail_about(c, 400, code, arena_printf(c->arena, "%d", most), "%s: %lld of at most %d.", what,
	                       (long long)have, most);
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

/* Users of a project. In it are those with roles of their own; those whom a team or a role in the organization brings are
 * listed where it is asked for, and can be read and given roles like the others. Invited people are those whose invitation
 * to the organization names the project. */
#include "api/member_lists.h"
#include "api/members.h"
#include "api/role_changes.h"
#include "api/role_lists.h"
#include "api/verbs.h"

#include "gate/audit.h"

#include <errno.h>

#define BATCH 500

int users_list_group(struct call *c);
int users_add_group(struct call *c);
int users_get_group(struct call *c);
int users_remove_group(struct call *c);
int users_add_group_role(struct call *c);
int users_remove_group_role(struct call *c);
int users_set_group_roles(struct call *c);

extern const struct resource resource_user;

static void member_write(struct call *c, const struct member *m, role_mask roles, bool in_list)
{
	static const struct op *_Atomic found;
	const struct op *self = found;
	if (!self)
		found = self = catalog_op("getGroupUser");
	entity_write(c, &c->out, json_text(c->arena, member_group_json(c->arena, m, roles)), self, "userId", m->user_id,
	             in_list);
	if (!in_list && m->active)
		entity_link(c, &c->out, "user", link_href(c, resource_user.self, "userId", m->user_id));
}

/* The roles to show: the member's own, and those from teams and from the organization where they count. */
static int roles_shown(struct call *c, const struct member *m, bool teams, bool org, role_mask *ret_roles)
{
	role_mask roles = member_group_roles(m, c->group.id), of_teams = 0;
	if (m->active && teams) {
		int result = member_team_roles(c->tx, c->arena, m, c->group.id, &of_teams);
		if (result < 0)
			return result;
	}
	if (m->active && org)
		roles |= member_org_given(m);
	*ret_roles = roles | of_teams;
	return 0;
}

/* The list. */

static bool with_teams(const struct call *c)
{
	return call_query_bool(c, "flattenTeams", false);
}

static bool with_org(const struct call *c)
{
	return call_query_bool(c, "includeOrgUsers", false);
}

static int item_write(struct call *c, const struct member *m)
{
	role_mask roles = 0;
	if (list_is_old(c))
		return list_write_account(c, &m->user);
	int result = roles_shown(c, m, with_teams(c), with_org(c), &roles);
	if (result == 0)
		member_write(c, m, roles, true);
	return result;
}

static int id_write(struct call *c, struct str user_id)
{
	struct member m = {.active = false};
	int result = member_load(c->tx, c->arena, c->org.id, user_id, &m);
	if (result == 0 && m.active)
		result = item_write(c, &m);
	return result == -ENOENT ? 0 : result;
}

static int own_page(struct call *c, struct member_page *p)
{
	struct grant_row *rows;
	int64_t count, offset, limit;
	size_t got = 0;
	int result = tx_count(c->tx, grant_kind(GRANTEE_USER, false), c->group.id, &count);
	if (result < 0 || !page_cut(p, count, &offset, &limit))
		return result;
	result = grants_in(c->tx, c->arena, GRANTEE_USER, false, c->group.id, offset, limit, &rows, &got);
	for (size_t i = 0; result == 0 && i < got; i++)
		result = id_write(c, rows[i].id);
	return result;
}

/* Ids in the order in which they came, each once. */
struct id_set {
	struct arena *arena;
	struct str *list;
	size_t count, room;
	uint32_t *slots; /* index + 1; 0: free */
	size_t slot_count;
};

static size_t slot_of(const struct id_set *s, struct str id)
{
	uint64_t h = 1469598103934665603u;
	for (size_t i = 0; i < id.n; i++)
		h = (h ^ (unsigned char)id.p[i]) * 1099511628211u;
	size_t at = h & (s->slot_count - 1);
	while (s->slots[at] && !str_eq(s->list[s->slots[at] - 1], id))
		at = (at + 1) & (s->slot_count - 1);
	return at;
}

static void id_set_grow(struct id_set *s)
{
	size_t room = s->room ? s->room * 2 : 64;
	struct str *list = arena_new_array(s->arena, struct str, room);
	if (s->count)
		memcpy(list, s->list, s->count * sizeof *list);
	s->list = list;
	s->room = room;
	s->slot_count = room * 2;
	s->slots = arena_new_array(s->arena, uint32_t, s->slot_count);
	for (size_t i = 0; i < s->count; i++)
		s->slots[slot_of(s, s->list[i])] = (uint32_t)i + 1;
}

static void id_set_add(struct id_set *s, struct str id)
{
	if (s->count == s->room)
		id_set_grow(s);
	size_t at = slot_of(s, id);
	if (s->slots[at])
		return;
	s->list[s->count++] = id;
	s->slots[at] = (uint32_t)s->count;
}

/* Those of the project: with roles of their own there, and in its teams where they count. */
static int collect_own(struct call *c, struct id_set *set)
{
	struct grant_row *rows;
	size_t got = BATCH;
	int result = 0;
	for (int64_t at = 0; result == 0 && got == BATCH; at += BATCH) {
		result = grants_in(c->tx, c->arena, GRANTEE_USER, false, c->group.id, at, BATCH, &rows, &got);
		for (size_t i = 0; result == 0 && i < got; i++)
			id_set_add(set, rows[i].id);
	}
	return result;
}

static int collect_team(struct call *c, struct str team_id, struct id_set *set)
{
	struct doc *docs;
	size_t got = BATCH;
	int result = 0;
	for (int64_t at = 0; result == 0 && got == BATCH; at += BATCH) {
		result = tx_list(c->tx, c->arena, "team_user", team_id, at, BATCH, &docs, &got);
		for (size_t i = 0; result == 0 && i < got; i++)
			id_set_add(set, docs[i].name);
	}
	return result;
}

static int collect_teams(struct call *c, struct id_set *set)
{
	struct grant_row *rows;
	size_t got = BATCH;
	int result = 0;
	for (int64_t at = 0; result == 0 && got == BATCH; at += BATCH) {
		result = grants_in(c->tx, c->arena, GRANTEE_TEAM, false, c->group.id, at, BATCH, &rows, &got);
		for (size_t i = 0; result == 0 && i < got; i++)
			result = collect_team(c, rows[i].id, set);
	}
	return result;
}

/* The organization's users whose roles there give them something here. They may be many, so they come first, a page by its
 * number, and only the project's own people are held against them. */
static int org_page(struct call *c, struct member_page *p)
{
	struct str *ids;
	int64_t count, offset, limit;
	size_t got = 0;
	int result = grant_project_users_count(c->tx, c->org.id, &count);
	if (result < 0 || !page_cut(p, count, &offset, &limit))
		return result;
	result = grant_project_users(c->tx, c->arena, c->org.id, offset, limit, &ids, &got);
	for (size_t i = 0; result == 0 && i < got; i++)
		result = id_write(c, ids[i]);
	return result;
}

static int set_write(struct call *c, const struct id_set *set, struct member_page *p)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < set->count; i++) {
		bool listed = false;
		if (with_org(c))
			result = grant_is_project_user(c->tx, c->arena, c->org.id, set->list[i], &listed);
		if (result == 0 && !listed && page_takes(p))
			result = id_write(c, set->list[i]);
	}
	return result;
}

/* The people whom a page over all ways into the project may have to look at. */
static int wide_count(struct call *c, int64_t *ret_count)
{
	struct grant_row *rows;
	size_t got = BATCH;
	int64_t count, one;
	int result = tx_count(c->tx, grant_kind(GRANTEE_USER, false), c->group.id, &count);
	for (int64_t at = 0; result == 0 && with_teams(c) && got == BATCH; at += BATCH) {
		result = grants_in(c->tx, c->arena, GRANTEE_TEAM, false, c->group.id, at, BATCH, &rows, &got);
		for (size_t i = 0; result == 0 && i < got; i++) {
			result = tx_count(c->tx, "team_user", rows[i].id, &one);
			count += result == 0 ? one : 0;
		}
	}
	if (result == 0)
		*ret_count = count;
	return result;
}

static int wide_page(struct call *c, struct member_page *p)
{
	struct id_set set = {.arena = c->arena};
	int64_t count = 0;
	int result = wide_count(c, &count);
	if (result < 0 || call_takes_long(c, count))
		return result;
	if (with_org(c))
		result = org_page(c, p);
	if (result == 0)
		result = collect_own(c, &set);
	if (result == 0 && with_teams(c))
		result = collect_teams(c, &set);
	return result < 0 ? result : set_write(c, &set, p);
}

static int one_page(struct call *c, const struct member_filter *f, struct member_page *p)
{
	struct member m = {.active = false};
	struct str id;
	role_mask roles = 0;
	int result = user_id_of(c->tx, c->arena, f->username, &id);
	if (result == 0)
		result = member_load(c->tx, c->arena, c->org.id, id, &m);
	if (result == 0)
		result = roles_shown(c, &m, with_teams(c), with_org(c), &roles);
	if (result == -ENOENT)
		return 0;
	if (result < 0 || !roles || !filter_takes(f, member_status(&m)))
		return result;
	return page_takes(p) ? item_write(c, &m) : 0;
}

static int active_page(struct call *c, struct member_page *p)
{
	return with_teams(c) || with_org(c) ? wide_page(c, p) : own_page(c, p);
}

int users_list_group(struct call *c)
{
	static const struct member_place people = {.active = active_page, .one = one_page, .write = item_write};
	return members_list(c, &people);
}

/* One. */

/* Somebody in the project, in any way; roles: their own, else those that bring them there. */
static int load(struct call *c, struct member *ret_member, role_mask *ret_own, role_mask *ret_shown)
{
	role_mask all = 0;
	int result = member_load(c->tx, c->arena, c->org.id, call_path(c, "userId"), ret_member);
	if (result == 0)
		result = roles_shown(c, ret_member, true, true, &all);
	if (result < 0)
		return result;
	if (!all)
		return -ENOENT;
	*ret_own = member_group_roles(ret_member, c->group.id);
	*ret_shown = *ret_own ? *ret_own : all;
	audit_field(c, "targetUsername", ret_member->username);
	return 0;
}

int users_get_group(struct call *c)
{
	struct member_filter f = {.statuses = 0};
	struct member m = {.active = false};
	role_mask own = 0, shown = 0;
	int result = filter_read(c, &f);
	if (result == 0)
		result = load(c, &m, &own, &shown);
	if (result < 0)
		return result;
	if (!filter_takes(&f, member_status(&m)))
		return -ENOENT;
	member_write(c, &m, shown, false);
	return 0;
}

int users_add_group(struct call *c)
{
	struct str username = user_name_of(c->arena, json_field(c->body, "username"));
	struct member m = {.active = false};
	role_mask roles = 0;
	int result = role_list_read(c, json_object_get(c->body, "roles"), "roles", false, &roles);
	if (result == 0)
		result = member_add_group(c, username, roles, &m);
	if (result < 0)
		return result;
	if (m.active)
		audit_type(c, "JOINED_GROUP");
	audit_field(c, "targetUsername", username);
	c->location = link_href(c, catalog_op("getGroupUser"), "userId", m.user_id);
	member_write(c, &m, roles, false);
	return 0;
}

int users_remove_group(struct call *c)
{
	struct member m = {.active = false};
	role_mask own = 0, shown = 0;
	int result = load(c, &m, &own, &shown);
	if (result < 0)
		return result;
	if (!own) {
		call_fail(c, 409, "USER_NOT_IN_GROUP_DIRECTLY",
		          "%.*s is in the project through a team or an organization role. Change that instead.",
		          STR_ARG(m.username));
		return call_fail_param(c, m.username);
	}
	if (!m.active)
		audit_type(c, "GROUP_INVITATION_DELETED");
	return member_set_group_roles(c, &m, c->group.id, 0);
}

/* Roles. */

static int role_load(struct call *c, struct member *ret_member, role_mask *ret_roles)
{
	role_mask shown = 0;
	return load(c, ret_member, ret_roles, &shown);
}

static int role_set(struct call *c, struct member *m, role_mask roles)
{
	return member_set_group_roles(c, m, c->group.id, roles);
}

static void role_write(struct call *c, const struct member *m, role_mask roles)
{
	member_write(c, m, roles, false);
}

static const struct role_place place = {
        .one = "groupRole", .many = "groupRoles", .load = role_load, .set = role_set, .write = role_write};

int users_add_group_role(struct call *c)
{
	return role_add(c, &place);
}

int users_remove_group_role(struct call *c)
{
	return role_remove(c, &place);
}

int users_set_group_roles(struct call *c)
{
	return roles_replace(c, &place);
}

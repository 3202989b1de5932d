/* Teams: people of an organization who get roles in projects together.
 *
 *   "team"          parent = organization, name unique; body {"id","name"}
 *   "team_user"     parent = team, name = user; "user_team" the other way round (members.c keeps both)
 *   "team_pending"  parent = team, name = user: invited people who will be in the team (invitations.c keeps it)
 *
 * A team's roles in a project are grants; what they give its members is in every member's snapshot, which
 * gate/principal.c makes. */
#include "api/member_lists.h"
#include "api/role_lists.h"
#include "api/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "gate/audit.h"

#include <errno.h>

int teams_list(struct call *c);
int teams_create(struct call *c);
int teams_get(struct call *c);
int teams_by_name(struct call *c);
int teams_rename(struct call *c);
int teams_delete(struct call *c);
int teams_list_in_project(struct call *c);
int teams_get_in_project(struct call *c);
int teams_assign(struct call *c);
int teams_update_in_project(struct call *c);
int teams_unassign(struct call *c);
int teams_list_users(struct call *c);
int teams_add_users(struct call *c);
int teams_add_user(struct call *c);
int teams_remove_user(struct call *c);
int teams_take_user(struct call *c);

#define NAME_MAX_BYTES 128
#define TEAMS_MAX 10000       /* of an organization */
#define TEAM_USERS_MAX 250    /* of a team */
#define USER_TEAMS_MAX 100    /* of a user, in one organization */
#define PROJECT_TEAMS_MAX 100 /* of a project */
#define BATCH 500

static int too_many(struct call *c, const char *code, const char *what, int64_t have, int64_t most)
{
	call_fail(c, 400, code, "%s: %lld of at most %lld.", what, (long long)have, (long long)most);
	return call_fail_param(c, arena_printf(c->arena, "%lld", (long long)most));
}

/* The organization's teams. */

static int team_load(struct call *c, struct str id, struct doc *ret_doc)
{
	struct doc d;
	int result = tx_get(c->tx, c->arena, "team", id, &d);
	if (result == 0 && !str_eq(d.parent, c->org.id))
		result = -ENOENT;
	if (result == 0)
		*ret_doc = d;
	return result;
}

static int team_of_path(struct call *c, struct doc *ret_doc)
{
	int result = team_load(c, call_path(c, "teamId"), ret_doc);
	if (result == 0)
		audit_field(c, "teamId", ret_doc->id);
	return result;
}

static void team_write(struct call *c, const struct doc *d, const struct op *self)
{
	if (!c->is_list)
		c->etag = d->rev;
	entity_write(c, &c->out, d->body, self, "teamId", d->id, c->is_list);
}

int teams_list(struct call *c)
{
	const struct op *self = catalog_op("getOrgTeam");
	struct doc *docs;
	size_t count;
	int64_t total;
	int result = tx_list(c->tx, c->arena, "team", c->org.id, list_offset(c), c->page_size, &docs, &count);
	if (result == 0)
		result = tx_count(c->tx, "team", c->org.id, &total);
	if (result < 0)
		return result;
	list_begin(c);
	for (size_t i = 0; i < count; i++)
		team_write(c, &docs[i], self);
	list_end(c, total, list_offset(c) + c->page_size < total);
	return 0;
}

int teams_get(struct call *c)
{
	struct doc d;
	int result = team_of_path(c, &d);
	if (result == 0)
		team_write(c, &d, c->op);
	return result;
}

int teams_by_name(struct call *c)
{
	struct doc d;
	int result = tx_get_by_name(c->tx, c->arena, "team", c->org.id, call_path(c, "teamName"), &d);
	if (result == 0)
		team_write(c, &d, catalog_op("getOrgTeam"));
	return result;
}

static int name_check(struct call *c, struct str name)
{
	struct faults faults = {.count = 0};
	if (!str_trim(name).n || name.n > NAME_MAX_BYTES)
		faults_add(&faults, c->arena, STR("name"), "must have from 1 to %d bytes, and not only spaces",
		           NAME_MAX_BYTES);
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int name_taken(struct call *c, struct str name)
{
	call_fail(c, 409, "TEAM_ALREADY_EXISTS", "name: the organization has a team \"%.*s\" already. Choose another.",
	          STR_ARG(name));
	return call_fail_param(c, name);
}

static struct str team_body(struct arena *a, struct str id, struct str name)
{
	json_t *body = doc_json(a, STR("{}"));
	json_object_set_new(body, "id", json_stringn(id.p, id.n));
	json_object_set_new(body, "name", json_stringn(name.p, name.n));
	return json_text(a, body);
}

/* Members. */

static int member_count(struct call *c, struct str team_id, int64_t *ret_count)
{
	int64_t active, pending;
	int result = tx_count(c->tx, "team_user", team_id, &active);
	if (result == 0)
		result = tx_count(c->tx, "team_pending", team_id, &pending);
	if (result == 0)
		*ret_count = active + pending;
	return result;
}

static bool is_in(const struct member *m, struct str team_id)
{
	for (size_t i = 0; i < m->team_count; i++)
		if (str_eq(m->teams[i], team_id))
			return true;
	return false;
}

int team_admit(struct call *c, struct str team_id)
{
	int64_t count = 0;
	int result = member_count(c, team_id, &count);
	if (result < 0 || count < TEAM_USERS_MAX)
		return result;
	return too_many(c, "TEAM_USERS_LIMIT_EXCEEDED", "The team has too many users", count, TEAM_USERS_MAX);
}

int user_teams_check(struct call *c, size_t count, size_t more)
{
	if (count + more <= USER_TEAMS_MAX)
		return 0;
	return too_many(c, "USER_TEAMS_LIMIT_EXCEEDED", "The user is in too many teams", (int64_t)count,
	                USER_TEAMS_MAX);
}

/* 0 also when the member is in the team already: then *ret_joined is false. */
static int member_join(struct call *c, struct member *m, struct str team_id, bool *ret_joined)
{
	*ret_joined = false;
	if (is_in(m, team_id))
		return 0;
	int result = user_teams_check(c, m->team_count, 1);
	if (result == 0)
		result = team_admit(c, team_id);
	if (result < 0)
		return result;
	struct str *teams = arena_new_array(c->arena, struct str, m->team_count + 1);
	for (size_t i = 0; i < m->team_count; i++)
		teams[i] = m->teams[i];
	teams[m->team_count] = team_id;
	*ret_joined = true;
	return member_set_teams(c, m, teams, m->team_count + 1);
}

static int member_part(struct call *c, struct member *m, struct str team_id)
{
	struct str *teams = arena_new_array(c->arena, struct str, m->team_count + 1);
	size_t count = 0;
	if (!is_in(m, team_id))
		return -ENOENT;
	for (size_t i = 0; i < m->team_count; i++)
		if (!str_eq(m->teams[i], team_id))
			teams[count++] = m->teams[i];
	return member_set_teams(c, m, teams, count);
}

static int unknown_user(struct call *c, struct str path)
{
	call_fail(c, 400, "USER_NOT_IN_ORG", "%.*s: must be a user of the organization.", STR_ARG(path));
	return call_fail_param(c, path);
}

static int join_usernames(struct call *c, struct str team_id)
{
	const json_t *names = json_object_get(c->body, "usernames");
	for (size_t i = 0; i < json_array_size(names); i++) {
		const json_t *name = json_array_get(names, i);
		struct str given = user_name_of(c->arena,
		                                (struct str){json_string_value(name), json_string_length(name)}),
		           id;
		struct member m;
		bool joined;
		int result = user_id_of(c->tx, c->arena, given, &id);
		if (result == 0)
			result = member_load(c->tx, c->arena, c->org.id, id, &m);
		if (result == -ENOENT)
			return unknown_user(c, arena_printf(c->arena, "usernames[%zu]", i));
		if (result == 0)
			result = member_join(c, &m, team_id, &joined);
		if (result < 0)
			return result;
		if (!joined)
			continue;
		result = audit_next(c);
		audit_type(c, m.active ? "JOINED_TEAM" : "INVITED_TO_TEAM");
		audit_field(c, "targetUsername", m.username);
		audit_field(c, "teamId", team_id);
		if (result < 0)
			return result;
	}
	return 0;
}

int teams_create(struct call *c)
{
	struct id id = id_new();
	struct str key = arena_dup(c->arena, id_str(&id)), name = json_field(c->body, "name");
	struct doc d = {.kind = STR("team"),
	                .id = key,
	                .parent = c->org.id,
	                .name = name,
	                .created_ms = clock_now_ms(),
	                .body = team_body(c->arena, key, name)};
	int64_t total;
	int result = name_check(c, name);
	if (result == 0)
		result = tx_count(c->tx, "team", c->org.id, &total);
	if (result == 0 && total >= TEAMS_MAX)
		return too_many(c, "ORG_TEAMS_LIMIT_EXCEEDED", "The organization has too many teams", total, TEAMS_MAX);
	if (result == 0)
		result = tx_insert(c->tx, &d);
	if (result == -EEXIST)
		return name_taken(c, name);
	audit_field(c, "teamId", key);
	if (result == 0)
		result = join_usernames(c, key);
	if (result < 0)
		return result;
	json_t *body = doc_json(c->arena, d.body);
	json_object_set(body, "usernames", json_object_get(c->body, "usernames"));
	c->etag = 1;
	c->location = link_href(c, catalog_op("getOrgTeam"), "teamId", key);
	entity_write(c, &c->out, json_text(c->arena, body), catalog_op("getOrgTeam"), "teamId", key, false);
	return 0;
}

int teams_rename(struct call *c)
{
	struct doc d;
	struct str name = json_field(c->body, "name");
	int result = team_of_path(c, &d);
	if (result == 0)
		result = if_match(c, d.rev);
	if (result == 0)
		result = name_check(c, name);
	if (result < 0)
		return result;
	d.name = name;
	d.body = team_body(c->arena, d.id, name);
	result = tx_update(c->tx, &d);
	if (result == -EEXIST)
		return name_taken(c, name);
	if (result < 0)
		return result;
	d.rev++;
	team_write(c, &d, catalog_op("getOrgTeam"));
	return 0;
}

/* A team that goes takes its roles along, and leaves its members without it. */
static int team_delete(struct tx *tx, struct arena *a, const struct doc *team)
{
	struct doc *docs;
	size_t count = 1;
	int result = grants_delete_grantee(tx, a, GRANTEE_TEAM, team->id);
	while (result == 0 && count) {
		result = tx_list(tx, a, "team_user", team->id, 0, BATCH, &docs, &count);
		for (size_t i = 0; result == 0 && i < count; i++)
			result = team_leave(tx, a, team->id, docs[i].name);
	}
	for (count = 1; result == 0 && count;) {
		result = tx_list(tx, a, "team_pending", team->id, 0, BATCH, &docs, &count);
		for (size_t i = 0; result == 0 && i < count; i++) {
			struct invitation v;
			result = invitation_get(tx, a, true, json_field(doc_json(a, docs[i].body), "invitationId"), &v);
			size_t kept = 0;
			for (size_t k = 0; result == 0 && k < v.team_count; k++)
				if (!str_eq(v.teams[k], team->id))
					v.teams[kept++] = v.teams[k];
			if (result == 0) {
				v.team_count = kept;
				result = invitation_update(tx, a, &v);
			}
			if (result == 0 || result == -ENOENT)
				result = tx_delete(tx, "team_pending", docs[i].id);
			if (result == -ENOENT) /* the update has done it */
				result = 0;
		}
	}
	return result < 0 ? result : tx_delete(tx, "team", team->id);
}

int teams_delete(struct call *c)
{
	struct doc d;
	int result = team_of_path(c, &d);
	if (result == 0)
		result = if_match(c, d.rev);
	return result < 0 ? result : team_delete(c->tx, c->arena, &d);
}

int teams_delete_all(struct tx *tx, struct arena *a, struct str org_id)
{
	int result = 0;
	for (size_t count = 1; result == 0 && count;) {
		struct doc *docs;
		result = tx_list(tx, a, "team", org_id, 0, BATCH, &docs, &count);
		for (size_t i = 0; result == 0 && i < count; i++)
			result = team_delete(tx, a, &docs[i]);
	}
	return result;
}

/* In projects. */

static void team_role_write(struct call *c, const struct grant_row *row, const struct op *self)
{
	json_t *body = doc_json(c->arena, STR("{}"));
	json_object_set_new(body, "roleNames", roles_json(row->roles));
	json_object_set_new(body, "teamId", json_stringn(row->id.p, row->id.n));
	entity_write(c, &c->out, json_text(c->arena, body), self, "teamId", row->id, c->is_list);
}

int teams_list_in_project(struct call *c)
{
	const struct op *self = catalog_op("getGroupTeam");
	struct grant_row *rows;
	size_t count;
	int64_t total;
	int result = grants_in(c->tx, c->arena, GRANTEE_TEAM, false, c->group.id, list_offset(c), c->page_size, &rows,
	                       &count);
	if (result == 0)
		result = tx_count(c->tx, grant_kind(GRANTEE_TEAM, false), c->group.id, &total);
	if (result < 0)
		return result;
	list_begin(c);
	for (size_t i = 0; i < count; i++)
		team_role_write(c, &rows[i], self);
	list_end(c, total, list_offset(c) + c->page_size < total);
	return 0;
}

/* The team of the path and its roles in the project; -ENOENT when it is not assigned. */
static int assigned_load(struct call *c, struct grant_row *ret_row)
{
	struct grant_row row = {.in_org = false};
	struct doc d;
	int result = team_of_path(c, &d);
	if (result == 0)
		result = grant_get(c->tx, c->arena, d.id, c->group.id, &row.roles);
	if (result == 0 && !row.roles)
		result = -ENOENT;
	if (result < 0)
		return result;
	row.id = d.id;
	*ret_row = row;
	return 0;
}

int teams_get_in_project(struct call *c)
{
	struct grant_row row;
	int result = assigned_load(c, &row);
	if (result == 0)
		team_role_write(c, &row, c->op);
	return result;
}

static int assign_one(struct call *c, size_t index)
{
	const json_t *entry = json_array_get(c->body, index);
	struct doc d;
	role_mask roles = 0, held = 0;
	int result = team_load(c, json_field(entry, "teamId"), &d);
	if (result == -ENOENT) {
		struct str path = arena_printf(c->arena, "[%zu].teamId", index);
		call_fail(c, 400, "INVALID_TEAM_ID", "%.*s: must be the id of a team of the project's organization.",
		          STR_ARG(path));
		return call_fail_param(c, path);
	}
	if (result == 0)
		result = role_list_read(c, json_object_get(entry, "roleNames"),
		                        arena_printf(c->arena, "[%zu].roleNames", index).p, false, &roles);
	if (result == 0)
		result = grant_get(c->tx, c->arena, d.id, c->group.id, &held);
	if (result == 0 && index)
		result = audit_next(c);
	if (result < 0)
		return result;
	if (held)
		audit_type(c, "TEAM_ROLES_MODIFIED");
	audit_field(c, "teamId", d.id);
	audit_roles(c, roles);
	return grant_set(c->tx, c->arena, GRANTEE_TEAM, d.id, false, c->group.id, roles);
}

/* A team that is assigned already has the given roles from now on. */
int teams_assign(struct call *c)
{
	int64_t total;
	int result = 0;
	if (json_array_size(c->body) == 0 || json_array_size(c->body) > PROJECT_TEAMS_MAX) {
		struct faults faults = {.count = 0};
		faults_add(&faults, c->arena, STR_NONE, "must have from 1 to %d entries", PROJECT_TEAMS_MAX);
		result = call_fail_faults(c, &faults);
	}
	for (size_t i = 0; result == 0 && i < json_array_size(c->body); i++)
		result = assign_one(c, i);
	if (result == 0)
		result = tx_count(c->tx, grant_kind(GRANTEE_TEAM, false), c->group.id, &total);
	if (result == 0 && total > PROJECT_TEAMS_MAX)
		return too_many(c, "PROJECT_TEAMS_LIMIT_EXCEEDED", "The project would have too many teams", total,
		                PROJECT_TEAMS_MAX);
	return result < 0 ? result : teams_list_in_project(c);
}

int teams_update_in_project(struct call *c)
{
	struct grant_row row;
	int result = assigned_load(c, &row);
	if (result == 0 && !str_eq(json_field(c->body, "teamId"), row.id)) {
		struct faults faults = {.count = 0};
		faults_add(&faults, c->arena, STR("teamId"), "must be the one in the path");
		result = call_fail_faults(c, &faults);
	}
	role_mask roles = 0;
	if (result == 0)
		result = role_list_read(c, json_object_get(c->body, "roleNames"), "roleNames", false, &roles);
	if (result == 0)
		result = grant_set(c->tx, c->arena, GRANTEE_TEAM, row.id, false, c->group.id, roles);
	if (result < 0)
		return result;
	audit_roles(c, roles);
	return teams_list_in_project(c);
}

int teams_unassign(struct call *c)
{
	struct grant_row row;
	int result = assigned_load(c, &row);
	return result < 0 ? result : grant_set(c->tx, c->arena, GRANTEE_TEAM, row.id, false, c->group.id, 0);
}

/* Users. */

static int member_write(struct call *c, const struct member *m, const struct op *self)
{
	struct str body = json_text(c->arena, member_org_json(c->arena, m));
	entity_write(c, &c->out, body, self, "userId", m->user_id, c->is_list);
	return 0;
}

/* A team is small: all its people are looked at. */
static int users_of(struct call *c, struct str team_id, const char *kind, const struct member_filter *f,
                    struct member_page *p)
{
	const struct op *self = catalog_op("getOrgUser");
	struct str user_id = call_query(c, "userId");
	struct doc *docs;
	size_t count;
	int result = tx_list(c->tx, c->arena, kind, team_id, 0, 2LL * TEAM_USERS_MAX, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct member m;
		if (user_id.n && !str_eq(user_id, docs[i].name))
			continue;
		result = member_load(c->tx, c->arena, c->org.id, docs[i].name, &m);
		if (result == -ENOENT) {
			result = 0;
			continue;
		}
		if (result < 0 || !filter_takes(f, member_status(&m)) ||
		    (f->username.n && !str_eq(f->username, m.username)) || !page_takes(p))
			continue;
		result = list_is_old(c) ? list_write_account(c, &m.user) : member_write(c, &m, self);
	}
	return result;
}

int teams_list_users(struct call *c)
{
	struct member_page p = {.skip = list_offset(c), .room = c->page_size};
	struct member_filter f;
	struct doc team;
	int result = team_of_path(c, &team);
	if (result == 0)
		result = filter_read(c, &f);
	if (result < 0)
		return result;
	list_begin(c);
	result = users_of(c, team.id, "team_user", &f, &p);
	if (result == 0 && f.pending)
		result = users_of(c, team.id, "team_pending", &f, &p);
	list_end(c, p.total, list_offset(c) + c->page_size < p.total);
	return result;
}

static int list_accounts(struct call *c, struct str team_id)
{
	struct doc *docs, user;
	size_t count;
	int result = tx_list(c->tx, c->arena, "team_user", team_id, 0, 2LL * TEAM_USERS_MAX, &docs, &count);
	if (result < 0)
		return result;
	list_begin(c);
	for (size_t i = 0; result == 0 && i < count; i++) {
		result = tx_get(c->tx, c->arena, "user", docs[i].name, &user);
		if (result == 0)
			result = list_write_account(c, &user);
	}
	list_end(c, (int64_t)count, false);
	return result;
}

static int user_joined(struct call *c, const struct member *m, bool joined)
{
	audit_field(c, "targetUsername", m->username);
	audit_type(c, !joined ? NULL : m->active ? "JOINED_TEAM" : "INVITED_TO_TEAM");
	return 0;
}

/* The older form: several accounts at once. */
int teams_add_users(struct call *c)
{
	struct doc team;
	int result = team_of_path(c, &team);
	for (size_t i = 0; result == 0 && i < json_array_size(c->body); i++) {
		struct member m;
		bool joined;
		result = member_load(c->tx, c->arena, c->org.id, json_field(json_array_get(c->body, i), "id"), &m);
		if (result == -ENOENT || (result == 0 && !m.active))
			return unknown_user(c, arena_printf(c->arena, "[%zu].id", i));
		if (result == 0 && i)
			result = audit_next(c);
		if (result == 0)
			result = member_join(c, &m, team.id, &joined);
		if (result == 0)
			result = user_joined(c, &m, joined);
	}
	if (json_array_size(c->body) == 0)
		audit_type(c, NULL);
	return result < 0 ? result : list_accounts(c, team.id);
}

static int member_answer(struct call *c, const struct member *m)
{
	return member_write(c, m, catalog_op("getOrgUser"));
}

int teams_add_user(struct call *c)
{
	struct doc team;
	struct member m;
	bool joined;
	int result = team_of_path(c, &team);
	if (result < 0)
		return result;
	result = member_load(c->tx, c->arena, c->org.id, json_field(c->body, "id"), &m);
	if (result == -ENOENT)
		return unknown_user(c, STR("id"));
	if (result == 0)
		result = member_join(c, &m, team.id, &joined);
	if (result == 0)
		result = user_joined(c, &m, joined);
	return result < 0 ? result : member_answer(c, &m);
}

static int user_leave(struct call *c, struct str team_id, struct str user_id, struct member *ret_member)
{
	struct member m;
	int result = member_load(c->tx, c->arena, c->org.id, user_id, &m);
	if (result == 0)
		result = member_part(c, &m, team_id);
	if (result < 0)
		return result;
	audit_field(c, "targetUsername", m.username);
	*ret_member = m;
	return 0;
}

/* By the path. */
int teams_remove_user(struct call *c)
{
	struct doc team;
	struct member m;
	int result = team_of_path(c, &team);
	return result < 0 ? result : user_leave(c, team.id, call_path(c, "userId"), &m);
}

/* By the body. */
int teams_take_user(struct call *c)
{
	struct doc team;
	struct member m;
	int result = team_of_path(c, &team);
	if (result < 0)
		return result;
	result = user_leave(c, team.id, json_field(c->body, "id"), &m);
	if (result == -ENOENT) {
		call_fail(c, 400, "USER_NOT_IN_TEAM", "id: must be a user of the team.");
		return call_fail_param(c, STR("id"));
	}
	return result < 0 ? result : member_answer(c, &m);
}

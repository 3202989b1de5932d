/* People in the forms of the schemas. The newer forms leave out what is not known; CloudAppUser, of the older versions, says
 * that country, mobileNumber and password are always there, so it gets values that say nothing. */
#include "api/members.h"

#include "api/verbs.h"

#include "base/clock.h"
#include "base/id.h"

#include <errno.h>

#define TEAMS_MAX 1000
/* A country that is none, a number of the range for examples (in the form that the schema's pattern takes), and a password
 * that never leaves. */
#define NO_COUNTRY "ZZ"
#define NO_NUMBER "202-555-0100"
#define NO_PASSWORD "********"

static json_t *text_json(struct str s)
{
	return json_stringn(s.p ? s.p : "", s.n);
}

static json_t *ids_json(const struct str *ids, size_t count)
{
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, text_json(ids[i]));
	return list;
}

static json_t *time_json(int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	return json_string(text);
}

/* What both forms share: who, and either the account's fields or the invitation's. */
static json_t *member_json(struct arena *a, const struct member *m)
{
	static const char *const optional[] = {"country", "lastAuth", "mobileNumber"};
	json_t *json = doc_json(a, STR("{}"));
	json_object_set_new(json, "id", text_json(m->user_id));
	json_object_set_new(json, "username", text_json(m->username));
	json_object_set_new(json, "orgMembershipStatus", json_string(member_status(m)));
	if (!m->active) {
		json_object_set_new(json, "invitationCreatedAt", time_json(m->invitation.created_ms));
		json_object_set_new(json, "invitationExpiresAt", time_json(m->invitation.expires_ms));
		json_object_set_new(json, "inviterUsername", text_json(m->invitation.inviter));
		return json;
	}
	json_t *user = doc_json(a, m->user.body);
	json_object_set_new(json, "createdAt", time_json(m->user.created_ms));
	json_object_set_new(json, "firstName", text_json(json_field(user, "firstName")));
	json_object_set_new(json, "lastName", text_json(json_field(user, "lastName")));
	for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
		if (json_object_get(user, optional[i]))
			json_object_set(json, optional[i], json_object_get(user, optional[i]));
	return json;
}

json_t *member_org_json(struct arena *a, const struct member *m)
{
	json_t *json = member_json(a, m), *groups = json_array();
	for (size_t i = 0; i < m->group_count; i++)
		json_array_append_new(groups, json_pack("{s:o, s:o}", "groupId", text_json(m->groups[i].id),
		                                        "groupRoles", roles_json(m->groups[i].roles)));
	json_object_set_new(json, "roles",
	                    json_pack("{s:o, s:o}", "groupRoleAssignments", groups, "orgRoles", roles_json(m->roles)));
	json_object_set_new(json, "teamIds", ids_json(m->teams, m->team_count));
	return json;
}

json_t *member_group_json(struct arena *a, const struct member *m, role_mask roles)
{
	json_t *json = member_json(a, m);
	json_object_set_new(json, "roles", roles_json(roles));
	return json;
}

static bool is_caller(const struct call *c, struct str user_id)
{
	return c->caller->kind == PRINCIPAL_USER && str_is(user_id, c->caller->id);
}

/* Whether the caller is in the place that the grant is for. */
static int grant_is_shared(struct call *c, const struct grant_row *row, bool *ret_shared)
{
	struct doc project;
	if (row->in_org) {
		*ret_shared = principal_org_roles(c->caller, row->id) != 0;
		return 0;
	}
	int result = tx_get(c->tx, c->arena, "project", row->id, &project);
	if (result < 0 && result != -ENOENT)
		return result;
	*ret_shared = result == 0 && (principal_org_roles(c->caller, project.parent) ||
	                              principal_group_roles(c->caller, project.parent, row->id));
	return 0;
}

/* The user's grants that the caller may know of. */
static int grants_shared(struct call *c, struct str user_id, struct grant_row **ret_rows, size_t *ret_count)
{
	struct grant_row *rows;
	size_t count, kept = 0;
	bool shared = is_caller(c, user_id);
	int result = grants_of(c->tx, c->arena, user_id, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		if (!is_caller(c, user_id))
			result = grant_is_shared(c, &rows[i], &shared);
		if (result == 0 && shared)
			rows[kept++] = rows[i];
	}
	if (result < 0)
		return result;
	*ret_rows = rows;
	*ret_count = kept;
	return 0;
}

int user_is_visible(struct call *c, struct str user_id, bool *ret_visible)
{
	struct grant_row *rows;
	size_t count;
	int result = grants_shared(c, user_id, &rows, &count);
	if (result == 0)
		*ret_visible = count > 0 || is_caller(c, user_id);
	return result;
}

static int teams_shared(struct call *c, struct str user_id, json_t *ret_ids)
{
	struct doc *docs, team;
	size_t count;
	int result = tx_list(c->tx, c->arena, "user_team", user_id, 0, TEAMS_MAX, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		result = tx_get(c->tx, c->arena, "team", docs[i].name, &team);
		if (result == 0 && (is_caller(c, user_id) || principal_org_roles(c->caller, team.parent)))
			json_array_append_new(ret_ids, text_json(docs[i].name));
		if (result == -ENOENT)
			result = 0;
	}
	return result;
}

static void fill(json_t *json, const char *field, const char *value)
{
	if (!json_object_get(json, field))
		json_object_set_new(json, field, json_string(value));
}

static void user_complete(json_t *json, int64_t created_ms)
{
	json_object_set_new(json, "createdAt", time_json(created_ms));
	json_object_set_new(json, "emailAddress", text_json(json_field(json, "username")));
	fill(json, "firstName", "");
	fill(json, "lastName", "");
	fill(json, "country", NO_COUNTRY);
	fill(json, "mobileNumber", NO_NUMBER);
	fill(json, "password", NO_PASSWORD);
}

int user_json(struct call *c, const struct doc *user, json_t **ret_json)
{
	json_t *json = doc_json(c->arena, user->body), *teams = json_array();
	struct grant_row *rows = NULL;
	size_t count = 0;
	json_object_set_new(json, "teamIds", teams);
	int result = teams_shared(c, user->id, teams);
	if (result == 0)
		result = grants_shared(c, user->id, &rows, &count);
	if (result < 0)
		return result;
	json_object_set_new(json, "roles", assignments_json(rows, count));
	user_complete(json, user->created_ms);
	*ret_json = json;
	return 0;
}

/* The invitation of an organization, or with a project, when POST /users made it and it still stands. */
static int pending_find(struct call *c, struct str scope, bool in_org, struct str user_id,
                        struct invitation *ret_invitation)
{
	struct doc d;
	int result;
	if (in_org) {
		result = invitation_find(c->tx, c->arena, true, scope, user_id, ret_invitation);
	} else {
		result = tx_get_by_name(c->tx, c->arena, "group_pending", scope, user_id, &d);
		if (result == 0)
			result = invitation_get(c->tx, c->arena, true,
			                        json_field(doc_json(c->arena, d.body), "invitationId"), ret_invitation);
	}
	if (result == 0 && (!ret_invitation->profile || invitation_status(ret_invitation) != INVITATION_PENDING))
		result = -ENOENT;
	return result;
}

static int pending_add(struct call *c, const struct invitation *i, struct grant_row *rows, size_t *count)
{
	const struct grant_row of_org = {.id = i->org_id, .in_org = true, .roles = i->roles};
	for (size_t k = 0; k < i->group_count + 1; k++) {
		struct grant_row row = k ? i->groups[k - 1] : of_org;
		bool shared = false;
		int result = grant_is_shared(c, &row, &shared);
		if (result < 0)
			return result;
		if (shared)
			rows[(*count)++] = row;
	}
	return 0;
}

/* What the invitation says of the person; each adds its roles, once. */
static int pending_write(struct call *c, const struct invitation *i, json_t *json)
{
	struct grant_row *rows = arena_new_array(c->arena, struct grant_row, i->group_count + 2);
	size_t count = 0;
	int result = pending_add(c, i, rows, &count);
	if (result < 0)
		return result;
	if (!json_object_get(json, "id")) {
		user_profile_set(json, i->profile);
		json_object_set_new(json, "id", text_json(i->user_id));
		json_object_set_new(json, "username", text_json(i->username));
		user_complete(json, i->created_ms);
	}
	json_array_extend(json_object_get(json, "roles"), json_keep(c->arena, assignments_json(rows, count)));
	return 0;
}

int pending_user_json(struct call *c, struct str user_id, const struct str *orgs, size_t org_count, json_t **ret_json)
{
	const struct principal *p = c->caller;
	size_t places = orgs ? org_count : p->grant_count;
	json_t *json = doc_json(c->arena, STR("{\"teamIds\":[],\"roles\":[]}"));
	json_t *seen = doc_json(c->arena, STR("{}")); /* invitations, by their ids: one is found by its projects too */
	for (size_t k = 0; k < places; k++) {
		struct invitation i = {.rev = 0};
		struct str scope = orgs ? orgs[k] : (struct str){p->grants[k].scope.z, ID_LEN};
		int result = pending_find(c, scope, orgs || p->grants[k].roles & role_org_mask, user_id, &i);
		if (result == -ENOENT || (result == 0 && json_object_get(seen, arena_z(c->arena, i.id))))
			continue;
		if (result == 0)
			result = pending_write(c, &i, json);
		if (result < 0)
			return result;
		json_object_set_new(seen, arena_z(c->arena, i.id), json_true());
	}
	*ret_json = json;
	return json_object_get(json, "id") ? 0 : -ENOENT;
}

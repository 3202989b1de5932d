/* Users as accounts: made by being invited, read by those who share an organization or a project with them.
 * CloudAppUser says that country, mobileNumber and password are always there, so it gets values that say nothing. */
#include "api/users/users.h"

#include "api/federation/federation.h"
#include "base/id.h"
#include "gate/dispatch.h"
#include "identity/password.h"
#include "trail/events.h"

#include <errno.h>

/* A country that is none, a number of the range for examples (in the form that the schema's pattern takes), and a
 * password that never leaves. */
#define NO_COUNTRY "ZZ"
#define NO_NUMBER "202-555-0100"
#define NO_PASSWORD "********"
/* The kind of what stands for somebody whose account the caller may not know of. Never stored. */
#define NO_ACCOUNT "invited"

static int teams_known(struct call *c, struct str user_id, json_t *ids)
{
	struct doc *docs, team;
	size_t count;
	int result = tx_list_all(c->tx, c->arena, "user_team", user_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		result = tx_get(c->tx, c->arena, "team", docs[i].name, &team);
		if (result == 0 && (user_is_caller(c, user_id) || principal_org_roles(c->caller, team.parent)))
			json_add_str(ids, docs[i].name);
		if (result == -ENOENT)
			result = 0;
	}
	return result;
}

/* The forms. */

static void complete(json_t *json, int64_t created_ms)
{
	static const char *const usual[][2] = {{"firstName", ""},
	                                       {"lastName", ""},
	                                       {"country", NO_COUNTRY},
	                                       {"mobileNumber", NO_NUMBER},
	                                       {"password", NO_PASSWORD}};
	json_put_time(json, "createdAt", created_ms);
	json_put_str(json, "emailAddress", json_field(json, "username"));
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (!json_object_get(json, usual[i][0]))
			json_put_z(json, usual[i][0], usual[i][1]);
}

/* The invitations that POST /users has made, one for each organization. */
struct invited {
	struct member *list;
	size_t count;
};

/* What the invitation says of the person; each adds its roles. */
static int invited_add(struct call *c, const struct member *m, json_t *json)
{
	struct grant_row *rows = arena_new_array(c->arena, struct grant_row, m->place_count + 1);
	size_t count = 0;
	rows[count++] = (struct grant_row){m->org_id, true, m->roles};
	for (size_t i = 0; i < m->place_count; i++)
		if (!m->places[i].is_team)
			rows[count++] = (struct grant_row){m->places[i].id, false, m->places[i].roles};
	int result = grants_shared(c, rows, &count);
	if (result < 0)
		return result;
	if (!json_object_get(json, "id")) {
		user_profile_set(json, m->profile);
		json_put_str(json, "id", m->user_id);
		json_put_str(json, "username", m->username);
		complete(json, m->created_ms);
	}
	json_array_extend(json_object_get(json, "roles"), json_keep(c->arena, assignments_json(rows, count)));
	return 0;
}

/* Somebody who was made with POST /users and has not accepted yet: what was said of it there, and what it was given, in
 * the call's own organizations or wherever the caller is a member. The same for an address that has an account as for
 * one that has none. */
static int invited_view(struct call *c, struct str user_id, json_t *json)
{
	const struct invited *made = c->noted;
	const struct principal *p = c->caller;
	json_t *seen = json_keep(c->arena, json_array()); /* ids of invitations: one is found by its projects too */
	int result = 0;
	json_put(json, "teamIds", json_array());
	json_put(json, "roles", json_array());
	for (size_t i = 0; made && result == 0 && i < made->count; i++)
		result = invited_add(c, &made->list[i], json);
	for (size_t i = 0; !made && result == 0 && i < p->grant_count; i++) {
		bool in_org = p->grants[i].roles & role_org_mask;
		struct str scope = {p->grants[i].scope.z, ID_LEN};
		struct member m = {.active = false};
		struct doc d;
		result = tx_get_by_name(c->tx, c->arena, in_org ? "invitation" : "group_pending", scope, user_id, &d);
		if (result == 0)
			result = invitation_of_doc(c->tx, c->arena, &d, &m);
		if (result == 0 && m.profile && member_is_pending(&m) && !json_has(seen, m.id)) {
			json_add_str(seen, m.id);
			result = invited_add(c, &m, json);
		}
		result = result == -ENOENT ? 0 : result;
	}
	if (result < 0)
		return result;
	return json_object_get(json, "id") ? 0 : -ENOENT;
}

static int user_view(struct call *c, const struct doc *user, json_t *json)
{
	struct grant_row *rows = NULL;
	size_t count = 0;
	if (str_is(user->kind, NO_ACCOUNT))
		return invited_view(c, user->id, json);
	json_put(json, "teamIds", json_array());
	int result = teams_known(c, user->id, json_object_get(json, "teamIds"));
	if (result == 0)
		result = grants_known(c, user->id, &rows, &count);
	if (result < 0)
		return result;
	json_put(json, "roles", assignments_json(rows, count));
	complete(json, user->created_ms);
	return 0;
}

/* The account, or, where the caller may not know of one, what the caller's own organizations have said of the
 * person. */
static int user_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str id = call_path(c, r->key_param);
	bool visible = false;
	int result = c->op->by_name
	                     ? user_id_of(c->tx, c->arena, arena_lower(c->arena, call_path(c, c->op->by_name)), &id)
	                     : 0;
	if (result == 0)
		result = tx_get(c->tx, c->arena, r->kind, id, ret_doc);
	if (result == 0)
		result = user_is_visible(c, id, &visible);
	if ((result == 0 && visible) || (result < 0 && result != -ENOENT))
		return result;
	*ret_doc = (struct doc){.kind = STR(NO_ACCOUNT), .id = id, .body = STR("{}")};
	/* Each of the caller's places has to be looked at. */
	(void)!call_takes_long(c, (int64_t)c->caller->grant_count);
	return 0;
}

const struct resource_hooks user_hooks = {.load = user_load, .view = user_view};

/* Creation. */

static int assignments_read(struct call *c, struct grant_row **ret_rows, size_t *ret_count)
{
	if (assignments_parse(c->arena, json_object_get(c->body, "roles"), ret_rows, ret_count) < 0)
		return call_fail_field(c, 400, "INVALID_ROLES", "roles",
		                       "each must have a roleName and either an orgId, for an organization role, or a "
		                       "groupId, for a project role.");
	return *ret_count ? 0 : call_fail_field(c, 400, "INVALID_ROLES", "roles", "must name at least one role.");
}

/* The organization of a row, after the caller was found to own the place. */
static int owned_org(struct call *c, const struct grant_row *row, struct str *ret_org)
{
	const char *role = row->in_org ? "ORG_OWNER" : "GROUP_OWNER";
	role_mask held = 0;
	int result = grant_caller(c, row, ret_org, &held);
	if ((result < 0 && result != -ENOENT) || held & role_bit(role))
		return result;
	return call_fail_about(c, 403, "INSUFFICIENT_ROLE", str_of(role), "roles: giving roles in %.*s needs %s there.",
	                       STR_ARG(row->id), role);
}

/* What the organization's invitation holds once the rows that are about it are added: ORG_MEMBER, where they only name
 * projects. One that waits already is changed, and its link stays. 409 where the person is a user. */
static int invitation_plan(struct call *c, const struct grant_row *rows, const struct str *orgs, size_t count,
                           struct member *before, struct member *m)
{
	int result = member_of_name(c, m->org_id, m->username, before);
	if (result < 0)
		return result;
	bool waits = member_is_pending(before);
	if (before->active || (waits && before->profile))
		return call_fail_about(c, 409, "USER_ALREADY_EXISTS", m->username,
		                       "username: %.*s is a user there already.", STR_ARG(m->username));
	m->user_id = before->user_id;
	json_t *profile = m->profile;
	if (waits)
		*m = *before;
	else
		*before = (struct member){.active = false};
	m->profile = profile;
	for (size_t i = 0; i < count; i++) {
		if (!str_eq(orgs[i], m->org_id))
			continue;
		if (!rows[i].in_org) {
			member_put(c->arena, m, (struct place){rows[i].id, false, rows[i].roles});
			continue;
		}
		m->roles = rows[i].roles;
		m->via_project = false;
	}
	return 0;
}

/* Nobody is a member, or has an account, before the owner of the address has answered from it: otherwise whoever makes
 * the user first would choose the password that its owner's later invitations ask for. */
static int org_invite(struct call *c, const struct member *before, struct member *m)
{
	int result = before->id.n ? federation_admit(c, m->org_id, m->username) : invitation_add(c, m);
	if (result == 0 && before->id.n)
		result = invitation_update(c->tx, c->arena, before, m);
	if (result < 0)
		return result;
	event_set_type(c, "INVITED_TO_ORG");
	event_scope(c, m->org_id, STR_NONE);
	event_field(c, "targetUsername", m->username);
	event_roles(c, m->roles);
	result = member_tell(c, before, m);
	return result < 0 ? result : event_next(c);
}

int users_create(struct call *c)
{
	const struct member one = {.username = arena_lower(c->arena, json_field(c->body, "username")),
	                           .roles = role_bit("ORG_MEMBER"),
	                           .via_project = true,
	                           .profile = json_new(c->arena)};
	struct invited *made = arena_new_of(c->arena, struct invited);
	struct grant_row *rows = NULL;
	size_t count = 0;
	if (json_field(c->body, "password").n > PASSWORD_MAX)
		return call_fail_field(c, 400, "INVALID_PASSWORD", "password", "must not be longer than %d bytes.",
		                       PASSWORD_MAX);
	int result = assignments_read(c, &rows, &count);
	struct str *orgs = arena_new_array(c->arena, struct str, count + 1);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = owned_org(c, &rows[i], &orgs[i]);
	user_profile_set(one.profile, c->body);
	made->list = arena_new_array(c->arena, struct member, count + 1);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct member before, *m = &made->list[made->count];
		size_t first = 0;
		while (!str_eq(orgs[first], orgs[i]))
			first++;
		if (first < i)
			continue;
		*m = one;
		m->org_id = orgs[i];
		made->count++;
		result = invitation_plan(c, rows, orgs, count, &before, m);
		if (result == 0)
			result = org_invite(c, &before, m);
	}
	if (result < 0)
		return result;
	event_set_type(c, NULL);
	c->noted = made;
	/* Says nothing about whether the address has an account. */
	return resource_write(c, &resource_user,
	                      &(struct doc){.kind = STR(NO_ACCOUNT), .id = made->list[0].user_id, .body = STR("{}")});
}

/* Users as accounts: made by being invited, read by those who share an organization or a project with them.
 * CloudAppUser says that country, mobileNumber and password are always there, so it gets values that say nothing. */
#include "api/users/users.h"

#include "api/federation/federation.h"
#include "base/clock.h"
#include "base/id.h"
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

struct str user_name_of(struct arena *a, struct str given)
{
	char *text = arena_z(a, given);
	for (size_t i = 0; i < given.n; i++)
		if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] = (char)(text[i] - 'A' + 'a');
	return (struct str){text, given.n};
}

/* An account that does not exist yet has an id all the same: it follows from the name under the installation's key, so
 * that every invitation shows the same one and nothing has to be kept for people who never come. */
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
	struct doc d = {.kind = STR("user"), .created_ms = clock_now_ms(), .secret = password_hash, .rev = 1};
	json_t *body = doc_json(a, STR("{}"));
	int result = user_id_of(tx, a, username, &d.id);
	if (result < 0)
		return result;
	json_put_str(body, "id", d.id);
	json_put_str(body, "username", username);
	user_profile_set(body, profile);
	d.body = json_text(a, body);
	result = tx_insert(tx, &d);
	if (result == 0)
		result = tx_ref_put(tx, "user_name", username, d.id);
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
	json_put_z(body, "lastAuth", now);
	user.body = json_text(a, body);
	return tx_update(tx, &user);
}

/* What the caller may know. */

static bool is_caller(const struct call *c, struct str user_id)
{
	return c->caller->kind == PRINCIPAL_USER && str_is(user_id, c->caller->id);
}

/* Leaves the grants of places that the caller is in. */
static int grants_shared(struct call *c, struct grant_row *rows, size_t *count)
{
	size_t kept = 0;
	for (size_t i = 0; i < *count; i++) {
		struct str id = rows[i].id;
		struct doc project;
		int result = rows[i].in_org ? 0 : tx_get(c->tx, c->arena, "project", id, &project);
		if (result < 0 && result != -ENOENT)
			return result;
		if (result == 0 && (principal_org_roles(c->caller, rows[i].in_org ? id : project.parent) ||
		                    (!rows[i].in_org && principal_group_roles(c->caller, project.parent, id))))
			rows[kept++] = rows[i];
	}
	*count = kept;
	return 0;
}

static int grants_known(struct call *c, struct str user_id, struct grant_row **ret_rows, size_t *ret_count)
{
	int result = grants_of(c->tx, c->arena, user_id, ret_rows, ret_count);
	return result < 0 || is_caller(c, user_id) ? result : grants_shared(c, *ret_rows, ret_count);
}

int user_is_visible(struct call *c, struct str user_id, bool *ret_visible)
{
	struct grant_row *rows;
	size_t count = 0;
	int result = grants_known(c, user_id, &rows, &count);
	*ret_visible = count > 0 || is_caller(c, user_id);
	return result;
}

static int teams_known(struct call *c, struct str user_id, json_t *ids)
{
	struct doc *docs, team;
	size_t count;
	int result = tx_list_all(c->tx, c->arena, "user_team", user_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		result = tx_get(c->tx, c->arena, "team", docs[i].name, &team);
		if (result == 0 && (is_caller(c, user_id) || principal_org_roles(c->caller, team.parent)))
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
	char created[CLOCK_TEXT];
	clock_format(created_ms, created);
	json_put_z(json, "createdAt", created);
	json_put_str(json, "emailAddress", json_field(json, "username"));
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (!json_object_get(json, usual[i][0]))
			json_put_z(json, usual[i][0], usual[i][1]);
}

/* The organizations that a call has invited somebody to. */
struct invited {
	struct str *orgs;
	size_t count;
};

/* The invitation of an organization, or with a project, when POST /users made it and it still stands. */
static int invited_find(struct call *c, struct str scope, bool in_org, struct str user_id, struct member *ret_member)
{
	struct doc d;
	int result = tx_get_by_name(c->tx, c->arena, in_org ? "invitation" : "group_pending", scope, user_id, &d);
	if (result == 0 && !in_org)
		result = invitation_behind(c->tx, c->arena, &d, &d);
	if (result == 0)
		result = invitation_of_doc(c->tx, c->arena, &d, ret_member);
	return result == 0 && (!ret_member->profile || !member_is_pending(ret_member)) ? -ENOENT : result;
}

/* What the invitation says of the person; each adds its roles, once. */
static int invited_add(struct call *c, const struct member *m, json_t *json)
{
	struct grant_row *rows = arena_new_array(c->arena, struct grant_row, m->group_count + 1);
	size_t count = m->group_count + 1;
	rows[0] = (struct grant_row){.id = m->org_id, .in_org = true, .roles = m->roles};
	for (size_t i = 0; i < m->group_count; i++)
		rows[i + 1] = m->groups[i];
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
	json_t *seen = doc_json(c->arena, STR("{}")); /* invitations, by their ids: one is found by its projects too */
	json_put(json, "teamIds", json_array());
	json_put(json, "roles", json_array());
	for (size_t k = 0; k < (made ? made->count : p->grant_count); k++) {
		struct member m = {.active = false};
		struct str scope = made ? made->orgs[k] : (struct str){p->grants[k].scope.z, ID_LEN};
		int result = invited_find(c, scope, made || p->grants[k].roles & role_org_mask, user_id, &m);
		if (result == -ENOENT || (result == 0 && json_object_get(seen, arena_z(c->arena, m.id))))
			continue;
		if (result == 0)
			result = invited_add(c, &m, json);
		if (result < 0)
			return result;
		json_put(seen, arena_z(c->arena, m.id), json_true());
	}
	return json_object_get(json, "id") ? 0 : -ENOENT;
}

static int user_view(struct call *c, const struct doc *user, json_t *json)
{
	struct grant_row *rows = NULL;
	size_t count = 0;
	json_t *teams = json_array();
	if (str_is(user->kind, NO_ACCOUNT)) {
		json_decref(teams);
		return invited_view(c, user->id, json);
	}
	json_put(json, "teamIds", teams);
	int result = teams_known(c, user->id, teams);
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
	                     ? user_id_of(c->tx, c->arena, user_name_of(c->arena, call_path(c, c->op->by_name)), &id)
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

static int roles_read(struct call *c, struct grant_row **ret_rows, size_t *ret_count)
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
	struct doc project;
	role_mask held = 0;
	int result = row->in_org ? 0 : tx_get(c->tx, c->arena, "project", row->id, &project);
	if (result < 0 && result != -ENOENT)
		return result;
	if (row->in_org)
		held = principal_org_roles(c->caller, row->id);
	else if (result == 0)
		held = principal_group_roles(c->caller, project.parent, row->id);
	if (!(held & role_bit(role))) {
		call_fail(c, 403, "INSUFFICIENT_ROLE", "roles: giving roles in %.*s needs %s there.", STR_ARG(row->id),
		          role);
		return call_fail_param(c, str_of(role));
	}
	*ret_org = row->in_org ? row->id : project.parent;
	return 0;
}

/* The rows of one organization as what its invitation holds. */
static void rows_take(struct call *c, const struct grant_row *rows, const struct invited *to, struct member *m)
{
	for (size_t k = 0; k < to->count; k++) {
		if (!str_eq(to->orgs[k], m->org_id))
			continue;
		if (!rows[k].in_org) {
			member_put_group(c->arena, m, rows[k].id, rows[k].roles);
			continue;
		}
		m->roles = rows[k].roles;
		m->via_project = false;
	}
}

/* Nobody is a member, or has an account, before the owner of the address has answered from it: otherwise whoever makes
 * the user first would choose the password that its owner's later invitations ask for. An invitation that waits already
 * is changed, and its link stays. */
static int org_invite(struct call *c, const struct grant_row *rows, const struct invited *to, struct member *m)
{
	struct member before = {.active = false};
	int result = member_load(c->tx, c->arena, m->org_id, m->user_id, &before);
	bool waits = result == 0 && member_is_pending(&before);
	if (result == 0 && (before.active || (waits && before.profile))) {
		call_fail(c, 409, "USER_ALREADY_EXISTS", "username: %.*s is a user there already.",
		          STR_ARG(m->username));
		return call_fail_param(c, m->username);
	}
	if (result < 0 && result != -ENOENT)
		return result;
	if (waits) {
		json_t *profile = m->profile;
		*m = before;
		m->profile = profile;
	} else {
		before = (struct member){.active = false};
	}
	rows_take(c, rows, to, m);
	result = federation_admit(c, m->org_id, m->username);
	if (result == 0)
		result = waits ? invitation_update(c->tx, c->arena, &before, m) : invitation_add(c, m);
	if (result < 0)
		return result;
	event_set_type(c, "INVITED_TO_ORG");
	event_scope(c, m->org_id, STR_NONE);
	event_field(c, "targetUsername", m->username);
	event_roles(c, m->roles);
	result = member_tell(c, &before, m);
	return result < 0 ? result : event_next(c);
}

int users_create(struct call *c)
{
	struct invited *to = arena_new_of(c->arena, struct invited);
	struct member one = {.username = user_name_of(c->arena, json_field(c->body, "username")),
	                     .roles = role_bit("ORG_MEMBER"),
	                     .via_project = true,
	                     .profile = doc_json(c->arena, STR("{}"))};
	struct grant_row *rows = NULL;
	int result = 0;
	if (json_field(c->body, "password").n > PASSWORD_MAX)
		result = call_fail_field(c, 400, "INVALID_PASSWORD", "password", "must not be longer than %d bytes.",
		                         PASSWORD_MAX);
	if (result == 0)
		result = roles_read(c, &rows, &to->count);
	to->orgs = arena_new_array(c->arena, struct str, to->count + 1);
	for (size_t i = 0; result == 0 && i < to->count; i++)
		result = owned_org(c, &rows[i], &to->orgs[i]);
	if (result == 0)
		result = user_id_of(c->tx, c->arena, one.username, &one.user_id);
	user_profile_set(one.profile, c->body);
	for (size_t i = 0; result == 0 && i < to->count; i++) {
		struct member m = one;
		size_t first = 0;
		m.org_id = to->orgs[i];
		while (!str_eq(to->orgs[first], m.org_id))
			first++;
		if (first == i)
			result = org_invite(c, rows, to, &m);
	}
	if (result < 0)
		return result;
	event_set_type(c, NULL);
	c->noted = to;
	/* Says nothing about whether the address has an account. */
	return resource_write(c, &resource_user,
	                      &(struct doc){.kind = STR(NO_ACCOUNT), .id = one.user_id, .body = STR("{}")});
}

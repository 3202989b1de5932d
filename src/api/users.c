/* Users as accounts: made by being invited, read by those who share an organization or a project with them. Users as members
 * are in org_users.c and group_users.c. */
#include "api/federations.h"
#include "api/members.h"
#include "api/role_lists.h"
#include "api/verbs.h"

#include "gate/audit.h"
#include "gate/password.h"

#include <errno.h>

int users_create(struct call *c);
int users_get(struct call *c);
int users_by_name(struct call *c);

extern const struct resource resource_user;

static int user_write(struct call *c, const struct doc *user)
{
	json_t *json;
	int result = user_json(c, user, &json);
	if (result < 0)
		return result;
	c->etag = 0;
	entity_write(c, &c->out, json_text(c->arena, json), resource_user.self, resource_user.key_param, user->id,
	             false);
	return 0;
}

/* Says nothing about whether the address has an account. */
static int made_write(struct call *c, struct str user_id, const struct str *orgs, size_t org_count)
{
	json_t *json;
	int result = pending_user_json(c, user_id, orgs, org_count, &json);
	if (result < 0)
		return result;
	entity_write(c, &c->out, json_text(c->arena, json), resource_user.self, resource_user.key_param, user_id,
	             false);
	return 0;
}

/* The account, or, where the caller may not know of one, what the caller's own organizations have said of the person. */
static int id_write(struct call *c, struct str user_id)
{
	struct doc user = {.rev = 0};
	bool visible = false;
	int result = tx_get(c->tx, c->arena, "user", user_id, &user);
	if (result == 0)
		result = user_is_visible(c, user_id, &visible);
	if (result == 0 && visible)
		return user_write(c, &user);
	if (result < 0 && result != -ENOENT)
		return result;
	/* Each of the caller's places has to be looked at. */
	if (call_takes_long(c, (int64_t)c->caller->grant_count))
		return 0;
	return made_write(c, user_id, NULL, 0);
}

int users_get(struct call *c)
{
	return id_write(c, call_path(c, "userId"));
}

int users_by_name(struct call *c)
{
	struct str id = STR_NONE;
	int result = user_id_of(c->tx, c->arena, user_name_of(c->arena, call_path(c, "userName")), &id);
	return result < 0 ? result : id_write(c, id);
}

/* Creation. */

static int roles_refuse(struct call *c, const char *why)
{
	call_fail(c, 400, "INVALID_ROLES", "roles: %s", why);
	return call_fail_param(c, STR("roles"));
}

static int roles_read(struct call *c, struct grant_row **ret_rows, size_t *ret_count)
{
	size_t count = 0;
	struct grant_row *rows;
	if (assignments_parse(c->arena, json_object_get(c->body, "roles"), &rows, &count) < 0)
		return roles_refuse(
		        c, "each must have a roleName and either an orgId, for an organization role, or a groupId, for "
		           "a project role.");
	if (count == 0)
		return roles_refuse(c, "must name at least one role.");
	*ret_rows = rows;
	*ret_count = count;
	return 0;
}

static int not_owner(struct call *c, const struct grant_row *row)
{
	const char *role = row->in_org ? "ORG_OWNER" : "GROUP_OWNER";
	call_fail(c, 403, "INSUFFICIENT_ROLE", "roles: giving roles in %.*s needs %s there.", STR_ARG(row->id), role);
	return call_fail_param(c, str_of(role));
}

/* The organization of a row, after the caller was found to own the place. */
static int owned_org(struct call *c, const struct grant_row *row, struct str *ret_org)
{
	struct doc project;
	if (row->in_org) {
		*ret_org = row->id;
		return principal_org_roles(c->caller, row->id) & role_bit("ORG_OWNER") ? 0 : not_owner(c, row);
	}
	int result = tx_get(c->tx, c->arena, "project", row->id, &project);
	if (result == -ENOENT ||
	    (result == 0 && !(principal_group_roles(c->caller, project.parent, row->id) & role_bit("GROUP_OWNER"))))
		return not_owner(c, row);
	if (result == 0)
		*ret_org = project.parent;
	return result;
}

/* The rows of one organization as what its invitation holds. */
static void rows_take(struct call *c, const struct grant_row *rows, const struct str *orgs, size_t count,
                      struct invitation *i)
{
	bool in_org = false;
	for (size_t k = 0; k < count; k++) {
		if (!str_eq(orgs[k], i->org_id))
			continue;
		if (!rows[k].in_org)
			invitation_set_group(c->arena, i, rows[k].id, rows[k].roles);
		else
			i->roles = rows[k].roles;
		in_org = in_org || rows[k].in_org;
	}
	if (in_org)
		i->via_project = false;
}

static int exists(struct call *c, struct str username)
{
	call_fail(c, 409, "USER_ALREADY_EXISTS", "username: %.*s is a user there already.", STR_ARG(username));
	return call_fail_param(c, username);
}

/* Nobody is a member, or has an account, before the owner of the address has answered from it: otherwise whoever makes the
 * user first would choose the password that its owner's later invitations ask for. An invitation that waits already is
 * changed, and its link stays. */
static int org_invite(struct call *c, const struct grant_row *rows, const struct str *orgs, size_t count,
                      struct invitation *i)
{
	struct member m = {.active = false}, before = {.active = false};
	int result = member_load(c->tx, c->arena, i->org_id, i->user_id, &m);
	bool waits = result == 0 && !m.active && invitation_status(&m.invitation) == INVITATION_PENDING;
	if (result == 0 && (m.active || (waits && m.invitation.profile)))
		return exists(c, i->username);
	if (result < 0 && result != -ENOENT)
		return result;
	json_t *profile = i->profile;
	if (waits) {
		before = m;
		*i = m.invitation;
		i->profile = profile;
	}
	rows_take(c, rows, orgs, count, i);
	result = federation_admit(c, i->org_id, i->username);
	if (result == 0)
		result = waits ? invitation_update(c->tx, c->arena, i) : invitation_add(c, i);
	if (result < 0)
		return result;
	member_of_invitation(i, &m);
	audit_type(c, "INVITED_TO_ORG");
	audit_scope(c, i->org_id, STR_NONE);
	audit_field(c, "targetUsername", i->username);
	audit_roles(c, i->roles);
	result = member_tell(c, &before, &m, i->org_id);
	return result < 0 ? result : audit_next(c);
}

static bool is_first(const struct str *orgs, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (str_eq(orgs[i], orgs[at]))
			return false;
	return true;
}

static int password_check(struct call *c)
{
	if (json_field(c->body, "password").n <= PASSWORD_MAX)
		return 0;
	call_fail(c, 400, "INVALID_PASSWORD", "password: must not be longer than %d bytes.", PASSWORD_MAX);
	return call_fail_param(c, STR("password"));
}

int users_create(struct call *c)
{
	struct str username = user_name_of(c->arena, json_field(c->body, "username")), user_id = STR_NONE;
	struct grant_row *rows = NULL;
	size_t count = 0;
	int result = password_check(c);
	if (result == 0)
		result = roles_read(c, &rows, &count);
	struct str *orgs = arena_new_array(c->arena, struct str, count + 1);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = owned_org(c, &rows[i], &orgs[i]);
	if (result == 0)
		result = user_id_of(c->tx, c->arena, username, &user_id);
	json_t *profile = doc_json(c->arena, STR("{}"));
	user_profile_set(profile, c->body);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct invitation one = {.org_id = orgs[i],
		                         .username = username,
		                         .user_id = user_id,
		                         .roles = role_bit("ORG_MEMBER"),
		                         .via_project = true,
		                         .profile = profile};
		if (is_first(orgs, i))
			result = org_invite(c, rows, orgs, count, &one);
	}
	if (result < 0)
		return result;
	audit_type(c, NULL);
	return made_write(c, user_id, orgs, count);
}

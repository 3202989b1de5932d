/* Users as accounts: made with a password, read by those who share an organization or a project with them. Users as members
 * are in org_users.c and group_users.c. */
#include "api/federations.h"
#include "api/members.h"
#include "api/verbs.h"

#include "gate/audit.h"
#include "gate/password.h"

#include <errno.h>

int users_prepare(struct call *c);
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

static int visible_write(struct call *c, const struct doc *user)
{
	bool visible = false;
	int result = user_is_visible(c, user->id, &visible);
	if (result < 0)
		return result;
	return visible ? user_write(c, user) : -ENOENT;
}

int users_get(struct call *c)
{
	struct doc user = {.rev = 0};
	int result = tx_get(c->tx, c->arena, "user", call_path(c, "userId"), &user);
	return result < 0 ? result : visible_write(c, &user);
}

int users_by_name(struct call *c)
{
	struct doc user = {.rev = 0};
	int result = user_by_name(c->tx, c->arena, user_name_of(c->arena, call_path(c, "userName")), &user);
	return result < 0 ? result : visible_write(c, &user);
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

/* The hash takes a fifth of a second, which neither a loop nor the writer has. What can be refused without the store is
 * refused before it. */
int users_prepare(struct call *c)
{
	struct grant_row *rows = NULL;
	size_t count = 0;
	struct str *hash = arena_new_of(c->arena, struct str), password = json_field(c->body, "password");
	int result = roles_read(c, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (rows[i].in_org && !(principal_org_roles(c->caller, rows[i].id) & role_bit("ORG_OWNER")))
			result = not_owner(c, &rows[i]);
	if (result == 0 && password.n > PASSWORD_MAX) {
		call_fail(c, 400, "INVALID_PASSWORD", "password: must not be longer than %d bytes.", PASSWORD_MAX);
		result = call_fail_param(c, STR("password"));
	}
	if (result == 0)
		result = password_hash(c->arena, password, hash);
	c->prepared = hash;
	return result;
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

/* Membership at once: no invitation waits any more. Who has a role in a project belongs to its organization. */
static int join_org(struct call *c, struct str org_id, struct str user_id)
{
	struct invitation waiting;
	role_mask roles;
	int result = grant_get(c->tx, c->arena, user_id, org_id, &roles);
	if (result == 0 && !roles)
		result = grant_set(c->tx, c->arena, GRANTEE_USER, user_id, true, org_id, role_bit("ORG_MEMBER"));
	if (result < 0)
		return result;
	result = invitation_find(c->tx, c->arena, true, org_id, user_id, &waiting);
	if (result == 0)
		result = invitation_delete(c->tx, c->arena, &waiting);
	return result == -ENOENT ? 0 : result;
}

static int row_give(struct call *c, const struct grant_row *row, const struct doc *user, struct str username)
{
	struct str org_id = STR_NONE;
	int result = owned_org(c, row, &org_id);
	if (result == 0)
		result = federation_admit(c, org_id, username);
	if (result == 0)
		result = grant_set(c->tx, c->arena, GRANTEE_USER, user->id, row->in_org, row->id, row->roles);
	if (result == 0)
		result = join_org(c, org_id, user->id);
	if (result < 0)
		return result;
	audit_type(c, row->in_org ? "JOINED_ORG" : "JOINED_GROUP");
	audit_scope(c, org_id, row->in_org ? STR_NONE : row->id);
	audit_field(c, "targetUsername", username);
	return audit_next(c);
}

static int rows_order(const void *a, const void *b)
{
	return ((const struct grant_row *)b)->in_org - ((const struct grant_row *)a)->in_org;
}

int users_create(struct call *c)
{
	struct str username = user_name_of(c->arena, json_field(c->body, "username"));
	struct grant_row *rows = NULL;
	size_t count = 0;
	struct doc user = {.rev = 0};
	struct str org_id = STR_NONE;
	int result = roles_read(c, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = owned_org(c, &rows[i], &org_id);
	if (result == 0)
		result = user_add(c->tx, c->arena, username, c->body, *(struct str *)c->prepared, &user);
	if (result == -EEXIST) {
		call_fail(c, 409, "USER_ALREADY_EXISTS", "username: %.*s has an account already.", STR_ARG(username));
		return call_fail_param(c, username);
	}
	if (result == 0 && rows) /* organizations first, so that their roles are not taken for absent */
		qsort(rows, count, sizeof *rows, rows_order);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = row_give(c, &rows[i], &user, username);
	if (result < 0)
		return result;
	audit_type(c, NULL);
	return user_write(c, &user);
}

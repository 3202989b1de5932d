/* Grants, stored in both directions. Each change bumps the identity generation, so that it is in force with the next
 * request. */
#include "identity/grants.h"

#include "base/id.h"
#include "identity/gifts.h"

#include <assert.h>
#include <errno.h>

#define PAGE 500
#define OWNERS "org_owner"
#define PROJECT_USERS "org_project_user"

static const char *const kinds[GRANTEE_COUNT][2] = {[GRANTEE_KEY] = {"group_key", "org_key"},
                                                    [GRANTEE_ACCOUNT] = {"group_account", "org_account"},
                                                    [GRANTEE_USER] = {"group_user", "org_user"},
                                                    [GRANTEE_TEAM] = {"group_team", "org_team_grant"}};

const char *grant_kind(enum grantee who, bool in_org)
{
	return kinds[who][in_org];
}

role_mask role_bit(const char *name)
{
	int i = role_find(str_of(name));
	assert(i >= 0);
	return (role_mask)1 << i;
}

json_t *roles_json(role_mask roles)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < role_count; i++)
		if (roles >> i & 1)
			json_array_append_new(list, json_string(role_names[i]));
	return list;
}

role_mask roles_from_json(const json_t *names, bool in_org)
{
	role_mask roles = 0;
	for (size_t i = 0; i < json_array_size(names); i++) {
		const json_t *name = json_array_get(names, i);
		int r = role_find((struct str){json_string_value(name), json_string_length(name)});
		if (r >= 0)
			roles |= (role_mask)1 << r;
	}
	return in_org ? roles & role_org_mask : roles & ~role_org_mask;
}

json_t *assignments_json(const struct grant_row *rows, size_t count)
{
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		for (unsigned r = 0; r < role_count; r++)
			if (rows[i].roles >> r & 1)
				json_array_append_new(list,
				                      json_pack("{s:s%, s:s}", rows[i].in_org ? "orgId" : "groupId",
				                                rows[i].id.p, rows[i].id.n, "roleName", role_names[r]));
	return list;
}

int assignments_parse(struct arena *a, const json_t *list, struct grant_row **ret_rows, size_t *ret_count)
{
	size_t count = 0;
	struct grant_row *rows = arena_new_array(a, struct grant_row, json_array_size(list) + 1);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i), *name = json_object_get(entry, "roleName");
		const json_t *org = json_object_get(entry, "orgId"), *group = json_object_get(entry, "groupId");
		struct str scope = {json_string_value(org ? org : group), json_string_length(org ? org : group)};
		int role = role_find((struct str){json_string_value(name), json_string_length(name)});
		if (role < 0 || !id_is_valid(scope) || (org && group) || !(role_org_mask >> role & 1) != !org)
			return -EINVAL;
		size_t at = 0;
		while (at < count && !str_eq(rows[at].id, scope))
			at++;
		if (at == count)
			rows[count++] = (struct grant_row){.id = arena_dup(a, scope), .in_org = org != NULL};
		rows[at].roles |= (role_mask)1 << role;
	}
	*ret_rows = rows;
	*ret_count = count;
	return 0;
}

static struct str body_text(struct arena *a, json_t *value)
{
	size_t n = json_dumpb(value, NULL, 0, JSON_COMPACT);
	char *p = arena_alloc(a, n + 1);
	json_dumpb(value, p, n, JSON_COMPACT);
	json_decref(value);
	return (struct str){p, n};
}

role_mask roles_in_projects(role_mask org_roles)
{
	role_mask roles = 0;
	for (; org_roles; org_roles &= org_roles - 1)
		roles |= role_in_project[__builtin_ctzll(org_roles)];
	return roles;
}

role_mask roles_least(role_mask roles)
{
	role_mask least = 0;
	for (role_mask rest = roles; rest; rest &= rest - 1) {
		role_mask others = roles & ~(rest & -rest), covered = 0;
		for (; others; others &= others - 1)
			covered |= role_closure[__builtin_ctzll(others)];
		least |= rest & -rest & ~covered;
	}
	return least;
}

int grant_set(struct tx *tx, struct arena *a, enum grantee who, struct str id, bool in_org, struct str scope,
              role_mask roles)
{
	struct str forward = body_text(a, json_pack("{s:b, s:o}", "inOrg", in_org, "roles", roles_json(roles)));
	struct str back = body_text(a, json_pack("{s:s%, s:o}", "id", id.p, id.n, "roles", roles_json(roles)));
	role_mask before = 0;
	int result = tx_attached(tx) ? grant_get(tx, a, id, scope, &before) : 0;
	if (result == 0)
		result = gift_roles(tx, id, in_org, scope, before, roles);
	if (result == 0)
		result = tx_set_by_name(tx, a, "grant", id, scope, roles ? forward : STR_NONE);
	if (result == 0)
		result = tx_set_by_name(tx, a, kinds[who][in_org], scope, id, roles ? back : STR_NONE);
	if (result == 0 && who == GRANTEE_USER && in_org)
		result = tx_set_by_name(tx, a, OWNERS, scope, id, roles & role_bit("ORG_OWNER") ? STR("{}") : STR_NONE);
	if (result == 0 && who == GRANTEE_USER && in_org)
		result = tx_set_by_name(tx, a, PROJECT_USERS, scope, id,
		                        roles_in_projects(roles) ? STR("{}") : STR_NONE);
	tx_touch_identity(tx);
	return result;
}

static struct grant_row row_of(const struct doc *d, bool in_org, bool forward)
{
	json_t *body = json_loadb(d->body.p, d->body.n, 0, NULL);
	struct grant_row row = {.id = d->name, .in_org = in_org};
	if (forward)
		row.in_org = json_is_true(json_object_get(body, "inOrg"));
	row.roles = roles_from_json(json_object_get(body, "roles"), row.in_org);
	json_decref(body);
	return row;
}

int grant_get(struct tx *tx, struct arena *a, struct str id, struct str scope, role_mask *ret_roles)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, "grant", id, scope, &d);
	if (result == -ENOENT) {
		*ret_roles = 0;
		return 0;
	}
	if (result < 0)
		return result;
	*ret_roles = row_of(&d, false, true).roles;
	return 0;
}

int grant_add(struct tx *tx, struct arena *a, enum grantee who, struct str id, bool in_org, struct str scope,
              role_mask more)
{
	role_mask roles;
	int result = grant_get(tx, a, id, scope, &roles);
	return result < 0 ? result : grant_set(tx, a, who, id, in_org, scope, roles | more);
}

int grant_id(struct tx *tx, struct arena *a, struct str id, struct str scope, struct str *ret_id)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, "grant", id, scope, &d);
	if (result == 0)
		*ret_id = d.id;
	return result;
}

static int rows_read(struct tx *tx, struct arena *a, const char *kind, struct str parent, int64_t offset, int64_t limit,
                     bool in_org, bool forward, struct grant_row **ret_rows, size_t *ret_count)
{
	struct doc *docs;
	size_t count;
	int result = tx_list(tx, a, kind, parent, offset, limit, &docs, &count);
	if (result < 0)
		return result;
	struct grant_row *rows = arena_new_array(a, struct grant_row, count + 1);
	for (size_t i = 0; i < count; i++)
		rows[i] = row_of(&docs[i], in_org, forward);
	*ret_rows = rows;
	*ret_count = count;
	return 0;
}

int grants_of(struct tx *tx, struct arena *a, struct str id, struct grant_row **ret_rows, size_t *ret_count)
{
	int64_t count;
	int result = tx_count(tx, "grant", id, &count);
	return result < 0 ? result : rows_read(tx, a, "grant", id, 0, count, false, true, ret_rows, ret_count);
}

int grants_in(struct tx *tx, struct arena *a, enum grantee who, bool in_org, struct str scope, int64_t offset,
              int64_t limit, struct grant_row **ret_rows, size_t *ret_count)
{
	return rows_read(tx, a, kinds[who][in_org], scope, offset, limit, in_org, false, ret_rows, ret_count);
}

/* The row decides who may delete a credential, a team or a scope. That its roles end with it does not count as taking
 * roles away: otherwise the owners of every scope where a key has roles would have to agree. */
static int grants_delete(struct tx *tx, int (*run)(struct tx *tx, struct arena *a, int which, struct str id),
                         struct arena *a, int which, struct str id)
{
	void *gifts = tx_attached(tx);
	tx_attach(tx, NULL);
	int result = run(tx, a, which, id);
	tx_attach(tx, gifts);
	return result;
}

static int delete_grantee(struct tx *tx, struct arena *a, int who, struct str id)
{
	struct grant_row *rows;
	size_t count;
	int result = grants_of(tx, a, id, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = grant_set(tx, a, (enum grantee)who, id, rows[i].in_org, rows[i].id, 0);
	return result;
}

int grants_delete_grantee(struct tx *tx, struct arena *a, enum grantee who, struct str id)
{
	return grants_delete(tx, delete_grantee, a, who, id);
}

static int delete_scope(struct tx *tx, struct arena *a, int in_org, struct str scope)
{
	for (int who = 0; who < GRANTEE_COUNT; who++)
		for (;;) {
			struct grant_row *rows;
			size_t count;
			int result = grants_in(tx, a, (enum grantee)who, in_org, scope, 0, PAGE, &rows, &count);
			if (result < 0)
				return result;
			if (count == 0)
				break;
			for (size_t i = 0; result == 0 && i < count; i++)
				result = grant_set(tx, a, (enum grantee)who, rows[i].id, in_org, scope, 0);
			if (result < 0)
				return result;
		}
	return 0;
}

int grants_delete_scope(struct tx *tx, struct arena *a, bool in_org, struct str scope)
{
	return grants_delete(tx, delete_scope, a, in_org, scope);
}

int grant_owner_count(struct tx *tx, struct str org_id, int64_t *ret_count)
{
	return tx_count(tx, OWNERS, org_id, ret_count);
}

int grant_is_project_user(struct tx *tx, struct arena *a, struct str org_id, struct str id, bool *ret_is)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, PROJECT_USERS, org_id, id, &d);
	if (result < 0 && result != -ENOENT)
		return result;
	*ret_is = result == 0;
	return 0;
}

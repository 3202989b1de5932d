/* Who holds which roles where. A grant joins one grantee (key, service account, user or team) and one scope
 * (organization or project). It is stored twice, in one transaction: below the grantee, to build a caller's snapshot,
 * and below the scope, to list its members.
 *
 *   "grant"                parent = grantee, name = scope:    {"inOrg": bool, "roles": [...]}
 *   "org_user", "group_user", "org_key", ...   parent = scope, name = grantee:  {"id": grantee, "roles": [...]}
 *   "org_owner"            parent = organization, name = user: one for each user that owns it
 *   "org_project_user"     parent = organization, name = user: one for each user whose organization roles give roles in
 *                          its projects */
#ifndef STEWARD_IDENTITY_GRANTS_H
#define STEWARD_IDENTITY_GRANTS_H

#include "catalog/catalog.h"
#include "store/store.h"

enum grantee { GRANTEE_KEY, GRANTEE_ACCOUNT, GRANTEE_USER, GRANTEE_TEAM, GRANTEE_COUNT };

struct grant_row {
	struct str id; /* the scope (grants_of) or the grantee (grants_in) */
	bool in_org;
	role_mask roles; /* as given: not closed */
};

/* The list of a scope's grantees of one kind: "group_user". */
const char *grant_kind(enum grantee who, bool in_org);

/* Sets the roles; 0 removes the grant. */
must_check int grant_set(struct tx *tx, struct arena *a, enum grantee who, struct str id, bool in_org, struct str scope,
                         role_mask roles);
/* Adds to the roles. */
must_check int grant_add(struct tx *tx, struct arena *a, enum grantee who, struct str id, bool in_org, struct str scope,
                         role_mask more);
/* 0 roles when there is none. */
must_check int grant_get(struct tx *tx, struct arena *a, struct str id, struct str scope, role_mask *ret_roles);
/* An id of the grant itself: it changes when all roles are taken away and given again. -ENOENT. */
must_check int grant_id(struct tx *tx, struct arena *a, struct str id, struct str scope, struct str *ret_id);
/* All grants of a grantee. */
must_check int grants_of(struct tx *tx, struct arena *a, struct str id, struct grant_row **ret_rows, size_t *ret_count);
/* A page of the grantees of a scope. */
must_check int grants_in(struct tx *tx, struct arena *a, enum grantee who, bool in_org, struct str scope,
                         int64_t offset, int64_t limit, struct grant_row **ret_rows, size_t *ret_count);

/* Whether a user's roles in the organization give it roles in each of its projects. */
must_check int grant_is_project_user(struct tx *tx, struct arena *a, struct str org_id, struct str id, bool *ret_is);

/* Deletes every grant of a grantee, or in a scope. */
must_check int grants_delete_grantee(struct tx *tx, struct arena *a, enum grantee who, struct str id);
must_check int grants_delete_scope(struct tx *tx, struct arena *a, bool in_org, struct str scope);

/* Users that own the organization. */
must_check int grant_owner_count(struct tx *tx, struct str org_id, int64_t *ret_count);

/* [{"orgId"|"groupId", "roleName"}, ...], as keys and users show them; and back, -EINVAL for an unknown role or
 * scope. */
json_t *assignments_json(const struct grant_row *rows, size_t count);
must_check int assignments_parse(struct arena *a, const json_t *list, struct grant_row **ret_rows, size_t *ret_count);
/* ["ORG_OWNER", ...] and back. Unknown names, and names of the other kind of scope, are left out. */
json_t *roles_json(role_mask roles);
role_mask roles_from_json(const json_t *names, bool in_org);
role_mask role_bit(const char *name);
/* The project roles, closed, that roles in an organization give in each of its projects. */
role_mask roles_in_projects(role_mask org_roles);
/* Without the roles that follow from others of them. */
role_mask roles_least(role_mask roles);

#endif

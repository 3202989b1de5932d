/* Database roles: the built-in ones, and the project's own, documents of the kind "database_role" below the project,
 * named by the role's name. */
#ifndef STEWARD_API_DATABASE_ROLES_DATABASE_ROLES_H
#define STEWARD_API_DATABASE_ROLES_DATABASE_ROLES_H

#include "call/call.h"
#include "engine/engine.h"

#define DATABASE_ROLE "database_role"
#define DATABASE_NAME_MAX 52 /* bytes; the databases keep groups of roles named after them */
#define TABLE_NAME_MAX 63
#define USER_ROLES_MAX 100
#define USER_GRANTS_MAX 20000 /* what the roles of one user come to, flattened */

struct built_in_role {
	const char *name;
	bool everywhere; /* on all databases: given on "admin" */
	bool on_tables;  /* may be narrowed to one collection */
};
/* NULL: none of that name. */
const struct built_in_role *built_in_role_find(struct str name);

/* What is wrong with the name of a collection that a role is given on, in words; NULL: nothing. */
const char *table_name_fault(struct str name);
/* What is wrong with the database that a role, built-in or not, is given on; STR_NONE: nothing. */
struct str role_database_fault(struct arena *a, struct str role, struct str database);

/* All roles of a project, by name: name -> document. Freed with the arena. */
must_check int database_roles_load(struct tx *tx, struct arena *a, struct str group_id, json_t **ret_roles);

/* What the databases shall permit to who has these roles ([{"roleName", "databaseName", "collectionName"?}]): custom
 * roles flattened to the actions and built-in roles that they are made of. */
/* There is no bound here: whoever gives roles refuses what comes to more than USER_GRANTS_MAX. */
void database_roles_flatten(struct arena *a, const json_t *roles, const json_t *given, struct engine_grant **ret_grants,
                            size_t *ret_count);
size_t database_roles_count(struct arena *a, const json_t *roles, const json_t *given);

#endif

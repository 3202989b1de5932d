/* The rules for database users that the schema does not say: one way to authenticate, with a name of the form that goes
 * with it; roles that exist, on what they can be given on; a time that comes. All faults are named. */
#include "api/database_users/rules.h"

#include "api/database_roles/database_roles.h"
#include "api/database_users/database_users.h"
#include "api/kit/temporary.h"
#include "api/kit/verbs.h"
#include "engine/scram.h"

#include <errno.h>

#define NAME_BYTES 63 /* what the databases take */
#define SCOPES_MAX 500
#define LABELS_MAX 50
#define PASSWORD_LEAST 8

struct checking {
	struct call *call;
	const json_t *document, *old;
	struct str name;
	struct faults faults;
};

#define FAULT(k, path, ...) faults_add(&(k)->faults, (k)->call->arena, path, __VA_ARGS__)

/* The ways to authenticate other than with a password. */
static const struct way {
	const char *field;
	const char *database; /* NULL: depends on the value */
} ways[] = {
        {"awsIAMType", "$external"}, {"ldapAuthType", "$external"}, {"oidcAuthType", NULL}, {"x509Type", "$external"}};

static struct str type_of(const json_t *user, const char *field)
{
	struct str type = json_field(user, field);
	return type.p ? type : STR("NONE");
}

static const struct way *way_of(struct checking *k)
{
	const struct way *found = NULL;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		if (str_is(type_of(k->document, ways[i].field), "NONE"))
			continue;
		if (found)
			FAULT(k, str_of(ways[i].field), "must be NONE where %s is not: a user authenticates in one way",
			      found->field);
		else
			found = &ways[i];
	}
	return found;
}

/* The way to authenticate is the user's for good. */
static void way_kept(struct checking *k)
{
	for (size_t i = 0; k->old && i < sizeof ways / sizeof *ways; i++)
		if (!str_eq(type_of(k->document, ways[i].field), type_of(k->old, ways[i].field)))
			FAULT(k, str_of(ways[i].field), "cannot be changed: delete the user and create it again");
}

static void database_check(struct checking *k, const struct way *m)
{
	struct str database = json_field(k->document, "databaseName");
	const char *right = !m                                               ? "admin"
	                    : m->database                                    ? m->database
	                    : str_is(type_of(k->document, m->field), "USER") ? "$external"
	                                                                     : "admin";
	if (k->old || str_is(database, right))
		return;
	if (m)
		FAULT(k, STR("databaseName"), "must be %s where %s is %.*s", right, m->field,
		      STR_ARG(type_of(k->document, m->field)));
	else
		FAULT(k, STR("databaseName"), "must be admin for a user with a password");
}

static void password_check(struct checking *k, const struct way *m)
{
	const json_t *given = json_object_get(k->call->body, "password");
	struct str password = json_field(k->call->body, "password");
	if (m && given)
		FAULT(k, STR("password"), "must not be given: the user authenticates by %s", m->field);
	else if (!m && !given && !k->old)
		FAULT(k, STR("password"), "is required, unless the user authenticates in another way");
	if (m || !given)
		return;
	if (password.n < PASSWORD_LEAST || !scram_password_fits(password))
		FAULT(k, STR("password"), "must be of %d to %d printable ASCII characters", PASSWORD_LEAST,
		      SCRAM_PASSWORD_MAX);
	else if (str_ieq(password, k->name))
		FAULT(k, STR("password"), "must not be the user's name");
}

/* "arn:aws:iam::123456789012:user/NAME" */
static bool is_arn(struct str name, const char *what)
{
	struct str rest, account;
	uint64_t ignored;
	if (!str_starts(name, STR("arn:aws:iam::")))
		return false;
	rest = (struct str){name.p + 13, name.n - 13};
	if (!str_cut(rest, ':', &account, &rest) || account.n != 12 || !str_to_u64(account, UINT64_MAX, &ignored))
		return false;
	return str_starts(rest, str_of(what)) && rest.n > strlen(what);
}

/* "CN=name,OU=unit": attributes with values. */
static bool is_dn(struct str name)
{
	struct str part, rest = name, key, value;
	bool more = true;
	while (more) {
		more = str_cut(rest, ',', &part, &rest);
		/* An escaped comma belongs to the value. */
		bool goes_on = part.n && part.p[part.n - 1] == '\\' && more;
		if (!goes_on && (!str_cut(part, '=', &key, &value) || !str_trim(key).n || !value.n))
			return false;
	}
	return name.n > 0;
}

static void form_check(struct checking *k, const struct way *m)
{
	struct str type = m ? type_of(k->document, m->field) : STR_NONE, left, right;
	struct str path = STR("username");
	if (!m)
		return;
	if (strcmp(m->field, "awsIAMType") == 0) {
		bool user = str_is(type, "USER");
		if (!is_arn(k->name, user ? "user/" : "role/"))
			FAULT(k, path, "must be an ARN like arn:aws:iam::123456789012:%s/name", user ? "user" : "role");
	} else if (strcmp(m->field, "oidcAuthType") == 0) {
		if (!str_cut(k->name, '/', &left, &right) || !left.n || !right.n)
			FAULT(k, path,
			      "must be the identity provider's id and the name, like 32b6e34b3d91647abb20e7b8/name");
	} else if (str_is(type, "GROUP") || str_is(type, "CUSTOMER")) {
		if (!is_dn(k->name))
			FAULT(k, path, "must be a distinguished name like CN=name,OU=unit");
	}
}

static void name_check(struct checking *k, const struct way *m)
{
	struct str path = STR("username");
	bool odd = false;
	for (size_t i = 0; i < k->name.n; i++)
		odd = odd || (unsigned char)k->name.p[i] < ' ' || k->name.p[i] == 0x7f;
	if (k->name.n == 0 || odd || !str_eq(str_trim(k->name), k->name))
		FAULT(k, path, "must be a name without control characters and without spaces around it");
	else if (database_user_logs_in(k->document) && k->name.n > NAME_BYTES)
		FAULT(k, path, "must be at most %d bytes long", NAME_BYTES);
	else if (database_user_logs_in(k->document) && k->name.p[0] == '/')
		FAULT(k, path, "must not begin with /");
	else if (engine_name_is_reserved(k->name))
		FAULT(k, path, "must not " ENGINE_NAMES_RESERVED);
	else if (str_is(k->name, ".") || str_is(k->name, "..") || str_is(k->name, "certs"))
		FAULT(k, path, "must not be ., .. or certs, which mean something else in a path");
	else if (m && memchr(k->name.p, '"', k->name.n))
		FAULT(k, path, "must have no quotation mark where %s is not NONE", m->field);
	else
		form_check(k, m);
}

/* What the path and the scope say already must not be said otherwise. */
static void identity_check(struct checking *k)
{
	const json_t *group = json_object_get(k->call->body, "groupId");
	if (group && !str_eq(json_str_of(group), k->call->group.id))
		FAULT(k, STR("groupId"), "must be the id of the project in the path");
	if (!k->old)
		return;
	if (!str_eq(k->name, call_path(k->call, "username")))
		FAULT(k, STR("username"), "cannot be changed: it must be the name in the path");
	if (!str_eq(json_field(k->document, "databaseName"), call_path(k->call, "databaseName")))
		FAULT(k, STR("databaseName"), "cannot be changed: it must be the one in the path");
}

/* Roles are looked up one by one: all of a project's together can be large. */
static int role_check(struct checking *k, const json_t *role, size_t i)
{
	struct arena *a = k->call->arena;
	struct str name = json_field(role, "roleName"), database = json_field(role, "databaseName"),
	           collection = json_field(role, "collectionName");
	const struct built_in_role *known = built_in_role_find(name);
	struct str fault = role_database_fault(a, name, database);
	struct doc custom;
	int result = known ? 0 : tx_get_by_name(k->call->tx, a, DATABASE_ROLE, k->call->group.id, name, &custom);
	if (result == -ENOENT)
		FAULT(k, arena_printf(a, "roles[%zu].roleName", i),
		      "must be a built-in role or a custom role of the project");
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	if (fault.n)
		FAULT(k, arena_printf(a, "roles[%zu].databaseName", i), "%.*s", STR_ARG(fault));
	if (!collection.n)
		return 0;
	if (!known || !known->on_tables)
		FAULT(k, arena_printf(a, "roles[%zu].collectionName", i),
		      "goes with the roles read and readWrite only");
	else if (table_name_fault(collection))
		FAULT(k, arena_printf(a, "roles[%zu].collectionName", i), "%s", table_name_fault(collection));
	return 0;
}

/* What the roles come to in the databases. Built-in ones are one right each, and there are not that many of them. */
static int grants_check(struct checking *k, const json_t *given)
{
	bool custom = false;
	json_t *roles;
	for (size_t i = 0; i < json_array_size(given); i++)
		custom = custom || !built_in_role_find(json_field(json_array_get(given, i), "roleName"));
	if (!custom)
		return 0;
	int result = database_roles_load(k->call->tx, k->call->arena, k->call->group.id, &roles);
	size_t count = result < 0 ? 0 : database_roles_count(k->call->arena, roles, given);
	if (count > USER_GRANTS_MAX)
		FAULT(k, STR("roles"),
		      "come to %zu rights; at most %d are possible: name whole databases instead of single "
		      "collections in the custom roles",
		      count, USER_GRANTS_MAX);
	return result;
}

static int roles_check(struct checking *k)
{
	const json_t *roles = json_object_get(k->document, "roles");
	size_t count = json_array_size(roles);
	int result = 0;
	if (count == 0 || count > USER_ROLES_MAX)
		FAULT(k, STR("roles"), "must be 1 to %d", USER_ROLES_MAX);
	for (size_t i = 0; result == 0 && i < count && i < USER_ROLES_MAX; i++)
		result = role_check(k, json_array_get(roles, i), i);
	return result < 0 || k->faults.count ? result : grants_check(k, roles);
}

int database_user_check(struct call *c, const json_t *document, const json_t *old)
{
	struct checking k = {.call = c, .document = document, .old = old, .name = json_field(document, "username")};
	const struct way *m = way_of(&k);
	identity_check(&k);
	way_kept(&k);
	database_check(&k, m);
	if (!old)
		name_check(&k, m);
	password_check(&k, m);
	temporary_read(c->arena, json_field(c->body, TEMPORARY_FIELD), STR(TEMPORARY_FIELD), &k.faults);
	if (json_array_size(json_object_get(document, "scopes")) > SCOPES_MAX)
		FAULT(&k, STR("scopes"), "must be at most %d", SCOPES_MAX);
	if (json_array_size(json_object_get(document, "labels")) > LABELS_MAX)
		FAULT(&k, STR("labels"), "must be at most %d", LABELS_MAX);
	int result = roles_check(&k);
	if (result == 0 && k.faults.count)
		result = call_fail_faults(c, &k.faults);
	return result;
}

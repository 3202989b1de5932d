/* Custom database roles. The generic verbs keep them; the hooks say what a role may be: its actions on resources of
 * their kind, the roles that it inherits existing and never, over whatever way, itself.
 *
 * The databases do not know custom roles: users get what the role is made of, so a changed role is a change of every
 * user that has it. */
#include "api/database_roles/database_roles.h"

#include "api/clusters/clusters.h"
#include "api/kit/verbs.h"

#include <ctype.h>

#define NAME_BYTES 64
#define ACTIONS_MAX 200
#define RESOURCES_MAX 1000 /* of all actions together */
#define INHERITED_MAX 100

static const struct built_in_role built_in[] = {
        {"svcAdmin", true, false},
        {"backup", true, false},
        {"clusterMonitor", true, false},
        {"dbAdmin", false, false},
        {"dbAdminAnyDatabase", true, false},
        {"enableSharding", true, false},
        {"read", false, true},
        {"readAnyDatabase", true, false},
        {"readWrite", false, true},
        {"readWriteAnyDatabase", true, false},
};

/* Actions that only make sense on the whole cluster, and those that only make sense on databases and collections. */
static const char cluster_actions[] =
        "BYPASS_DEFAULT_MAX_TIME_MS|BYPASS_USER_WRITE_BLOCK|CONN_POOL_STATS|FLUSH_ROUTER_CONFIG"
        "|GET_CMD_LINE_OPTS|GET_LOG|GET_PARAMETER|GET_SHARD_MAP|HOST_INFO|IN_PROG|KILL_ANY_SESSION|KILL_OP"
        "|LIST_DATABASES|LIST_SESSIONS|LIST_SHARDS|NET_STAT|REPL_SET_GET_CONFIG|REPL_SET_GET_STATUS"
        "|SERVER_STATUS|SET_USER_WRITE_BLOCK|SHARDED_DATA_DISTRIBUTION|SHARDING_STATE|TOP|USE_UUID";
static const char database_actions[] =
        "ANALYZE_SHARD_KEY|BYPASS_DOCUMENT_VALIDATION|CHANGE_STREAM|CLEAR_JUMBO_FLAG|COLL_MOD|COLL_STATS"
        "|COMPACT|CONVERT_TO_CAPPED|CREATE_COLLECTION|CREATE_INDEX|CREATE_SEARCH_INDEX|DB_HASH|DB_STATS"
        "|DROP_COLLECTION|DROP_DATABASE|DROP_INDEX|DROP_SEARCH_INDEX|ENABLE_PROFILER|ENABLE_SHARDING|FIND"
        "|INSERT|LIST_COLLECTIONS|LIST_INDEXES|LIST_SEARCH_INDEXES|MOVE_CHUNK|REFINE_COLLECTION_SHARD_KEY"
        "|REMOVE|RENAME_COLLECTION_SAME_DB|RESHARD_COLLECTION|RE_INDEX|SPLIT_CHUNK|UPDATE|UPDATE_SEARCH_INDEX"
        "|VALIDATE|VIEW_ALL_HISTORY";

const struct built_in_role *built_in_role_find(struct str name)
{
	for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
		if (str_is(name, built_in[i].name))
			return &built_in[i];
	return NULL;
}

static bool has_odd_bytes(struct str name)
{
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f || strchr("/\\\"$", name.p[i]))
			return true;
	return false;
}

static const char *database_name_fault(struct str name)
{
	if (name.n == 0 || name.n > DATABASE_NAME_MAX)
		return "must be the name of a database, of at most 52 bytes";
	if (str_starts(name, STR("template")))
		return "must not begin with template";
	return has_odd_bytes(name) ? "must have no slash, backslash, quote, dollar sign or control character" : NULL;
}

const char *table_name_fault(struct str name)
{
	if (name.n == 0 || name.n > TABLE_NAME_MAX)
		return "must be the name of a collection, of at most 63 bytes";
	return has_odd_bytes(name) ? "must have no slash, backslash, quote, dollar sign or control character" : NULL;
}

struct str role_database_fault(struct arena *a, struct str role, struct str database)
{
	const struct built_in_role *known = built_in_role_find(role);
	if (known && !known->everywhere)
		return str_of(database_name_fault(database));
	return str_is(database, "admin") ? STR_NONE : arena_printf(a, "must be admin for the role %.*s", STR_ARG(role));
}

int database_roles_load(struct tx *tx, struct arena *a, struct str group_id, json_t **ret_roles)
{
	json_t *roles = doc_json(a, STR("{}"));
	struct doc *docs;
	size_t count = 0;
	int result = tx_list_all(tx, a, DATABASE_ROLE, group_id, &docs, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		json_object_setn(roles, docs[i].name.p, docs[i].name.n, doc_json(a, docs[i].body));
	*ret_roles = roles;
	return 0;
}

/* Flattening. */

struct flattening {
	struct arena *arena;
	const json_t *roles;
	json_t *seen; /* custom roles that were taken in */
	struct engine_grant *grants;
	size_t count, cap;
	bool counting; /* how many there are, no more */
};

static void grant_add(struct flattening *f, struct str role, struct str database, struct str collection)
{
	if (f->counting) {
		f->count++;
		return;
	}
	ARENA_FIT(f->arena, f->grants, f->count, f->cap);
	f->grants[f->count++] = (struct engine_grant){arena_z(f->arena, role), arena_z(f->arena, database),
	                                              arena_z(f->arena, collection)};
}

static void role_add(struct flattening *f, struct str name, struct str database, struct str collection);

static void action_add(struct flattening *f, const json_t *action)
{
	const json_t *resources = json_object_get(action, "resources");
	struct str name = json_field(action, "action");
	for (size_t i = 0; i < json_array_size(resources); i++) {
		const json_t *on = json_array_get(resources, i);
		bool everywhere = json_flag(on, "cluster");
		grant_add(f, name, everywhere ? STR_NONE : json_field(on, "db"),
		          everywhere ? STR_NONE : json_field(on, "collection"));
	}
}

static void custom_add(struct flattening *f, struct str name, const json_t *role)
{
	const json_t *actions = json_object_get(role, "actions"), *inherited = json_object_get(role, "inheritedRoles");
	if (json_object_getn(f->seen, name.p, name.n))
		return;
	json_object_setn_new(f->seen, name.p, name.n, json_true());
	for (size_t i = 0; i < json_array_size(actions); i++)
		action_add(f, json_array_get(actions, i));
	for (size_t i = 0; i < json_array_size(inherited); i++) {
		const json_t *from = json_array_get(inherited, i);
		role_add(f, json_field(from, "role"), json_field(from, "db"), STR_NONE);
	}
}

static void role_add(struct flattening *f, struct str name, struct str database, struct str collection)
{
	const struct built_in_role *known = built_in_role_find(name);
	const json_t *custom = known ? NULL : json_object_getn(f->roles, name.p, name.n);
	if (known)
		grant_add(f, name, known->everywhere ? STR_NONE : database, collection);
	else if (custom)
		custom_add(f, name, custom);
}

static void flatten(struct flattening *f, const json_t *given)
{
	for (size_t i = 0; i < json_array_size(given); i++) {
		const json_t *role = json_array_get(given, i);
		role_add(f, json_field(role, "roleName"), json_field(role, "databaseName"),
		         json_field(role, "collectionName"));
	}
}

void database_roles_flatten(struct arena *a, const json_t *roles, const json_t *given, struct engine_grant **ret_grants,
                            size_t *ret_count)
{
	struct flattening f = {.arena = a, .roles = roles, .seen = doc_json(a, STR("{}"))};
	flatten(&f, given);
	*ret_grants = f.grants;
	*ret_count = f.count;
}

size_t database_roles_count(struct arena *a, const json_t *roles, const json_t *given)
{
	struct flattening f = {.arena = a, .roles = roles, .seen = doc_json(a, STR("{}")), .counting = true};
	flatten(&f, given);
	return f.count;
}

/* Checking. */

struct checking {
	struct call *call;
	struct faults faults;
	const json_t *roles; /* of the project, as they are */
	json_t *seen;        /* those that do not lead back to this one */
	struct str name;
	size_t resources;
};

#define FAULT(k, path, ...) faults_add(&(k)->faults, (k)->call->arena, path, __VA_ARGS__)

static void name_check(struct checking *k)
{
	bool fits = k->name.n > 0 && k->name.n <= NAME_BYTES && !isdigit((unsigned char)k->name.p[0]) &&
	            k->name.p[0] != '-';
	for (size_t i = 0; i < k->name.n; i++)
		fits = fits && (isalnum((unsigned char)k->name.p[i]) || k->name.p[i] == '_' || k->name.p[i] == '-');
	if (!fits)
		FAULT(k, STR("roleName"),
		      "must be of at most %d letters, digits, _ and -, and begin with a letter or _", NAME_BYTES);
	else if (built_in_role_find(k->name) || dialect_reserves(k->name))
		FAULT(k, STR("roleName"), "must not be the name of a built-in role");
}

static void resource_check(struct checking *k, struct str action, const json_t *on, size_t i, size_t j)
{
	struct arena *a = k->call->arena;
	struct str database = json_field(on, "db"), collection = json_field(on, "collection");
	bool cluster = json_flag(on, "cluster");
	const char *fault;
	if (cluster && (database.n || collection.n))
		FAULT(k, arena_printf(a, "actions[%zu].resources[%zu]", i, j),
		      "must have empty db and collection where cluster is true");
	else if (cluster && str_is_one_of(database_actions, action))
		FAULT(k, arena_printf(a, "actions[%zu].resources[%zu].cluster", i, j),
		      "must be false: %.*s is an action on a database or collection", STR_ARG(action));
	else if (!cluster && str_is_one_of(cluster_actions, action))
		FAULT(k, arena_printf(a, "actions[%zu].resources[%zu].cluster", i, j),
		      "must be true: %.*s is an action on the cluster", STR_ARG(action));
	if (database.n && (fault = database_name_fault(database)))
		FAULT(k, arena_printf(a, "actions[%zu].resources[%zu].db", i, j), "%s", fault);
	if (collection.n && (fault = table_name_fault(collection)))
		FAULT(k, arena_printf(a, "actions[%zu].resources[%zu].collection", i, j), "%s", fault);
}

static void actions_check(struct checking *k, const json_t *actions)
{
	struct arena *a = k->call->arena;
	if (json_array_size(actions) > ACTIONS_MAX)
		FAULT(k, STR("actions"), "must be at most %d", ACTIONS_MAX);
	for (size_t i = 0; i < json_array_size(actions) && i < ACTIONS_MAX; i++) {
		const json_t *action = json_array_get(actions, i), *resources = json_object_get(action, "resources");
		size_t count = json_array_size(resources);
		k->resources += count;
		if (count == 0)
			FAULT(k, arena_printf(a, "actions[%zu].resources", i), "must name at least one");
		for (size_t j = 0; j < count && k->resources <= RESOURCES_MAX; j++)
			resource_check(k, json_field(action, "action"), json_array_get(resources, j), i, j);
	}
	if (k->resources > RESOURCES_MAX)
		FAULT(k, STR("actions"), "must have at most %d resources in all", RESOURCES_MAX);
}

/* The way from a role back to the one that is written, as "b -> c -> a"; false: there is none. */
static bool circle_find(struct checking *k, struct str from, struct buf *way)
{
	size_t before = way->n;
	buf_str(way, from);
	if (str_eq(from, k->name))
		return true;
	const json_t *inherited = json_object_get(json_object_getn(k->roles, from.p, from.n), "inheritedRoles");
	bool known = json_object_getn(k->seen, from.p, from.n) != NULL;
	json_object_setn_new(k->seen, from.p, from.n, json_true());
	buf_z(way, " -> ");
	for (size_t i = 0; !known && i < json_array_size(inherited); i++)
		if (circle_find(k, json_field(json_array_get(inherited, i), "role"), way)) {
			json_object_deln(k->seen, from.p, from.n);
			return true;
		}
	way->n = before;
	return false;
}

static void inherited_check(struct checking *k, const json_t *from, size_t i)
{
	struct arena *a = k->call->arena;
	struct str name = json_field(from, "role");
	struct str fault = role_database_fault(a, name, json_field(from, "db"));
	struct buf way = {0};
	if (fault.n)
		FAULT(k, arena_printf(a, "inheritedRoles[%zu].db", i), "%.*s", STR_ARG(fault));
	if (built_in_role_find(name))
		return;
	if (!json_object_getn(k->roles, name.p, name.n) && !str_eq(name, k->name))
		FAULT(k, arena_printf(a, "inheritedRoles[%zu].role", i),
		      "must be a built-in role or a custom role of the project");
	else if (circle_find(k, name, &way))
		FAULT(k, arena_printf(a, "inheritedRoles[%zu].role", i),
		      "would make the role inherit itself: %.*s -> %.*s", STR_ARG(k->name), STR_ARG(buf_view(&way)));
	buf_free(&way);
}

static int role_check(struct call *c, const json_t *document)
{
	struct checking k = {.call = c, .name = json_field(document, "roleName")};
	const json_t *actions = json_object_get(document, "actions");
	const json_t *inherited = json_object_get(document, "inheritedRoles");
	json_t *roles;
	int result = database_roles_load(c->tx, c->arena, c->group.id, &roles);
	if (result < 0)
		return result;
	k.roles = roles;
	k.seen = doc_json(c->arena, STR("{}"));
	name_check(&k);
	actions_check(&k, actions);
	if (json_array_size(actions) + json_array_size(inherited) == 0)
		FAULT(&k, STR("actions"), "must name at least one where inheritedRoles names none");
	if (json_array_size(inherited) > INHERITED_MAX)
		FAULT(&k, STR("inheritedRoles"), "must be at most %d", INHERITED_MAX);
	for (size_t i = 0; i < json_array_size(inherited) && i < INHERITED_MAX; i++)
		inherited_check(&k, json_array_get(inherited, i), i);
	return k.faults.count ? call_fail_faults(c, &k.faults) : 0;
}

static int role_create(struct call *c, json_t *document)
{
	int result = role_check(c, document);
	json_default(document, "actions", json_array());
	json_default(document, "inheritedRoles", json_array());
	return result;
}

/* All that the project's own roles give, each once: more than that nobody has through them. */
static size_t roles_total(struct arena *a, json_t *roles)
{
	struct flattening f = {.arena = a, .roles = roles, .seen = doc_json(a, STR("{}")), .counting = true};
	const char *name;
	json_t *role;
	json_object_foreach(roles, name, role) custom_add(&f, str_of(name), role);
	return f.count;
}

/* What the role becomes, its users get: none of them may come to have more than there is room for. */
static int users_check(struct call *c, json_t *document)
{
	struct str name = json_field(document, "roleName");
	struct faults faults = {.count = 0};
	json_t *roles;
	struct doc *docs;
	size_t count = 0;
	int result = database_roles_load(c->tx, c->arena, c->group.id, &roles);
	if (result < 0)
		return result;
	json_object_setn(roles, name.p, name.n, document);
	if (roles_total(c->arena, roles) + USER_ROLES_MAX <= USER_GRANTS_MAX)
		return 0;
	result = tx_list_all(c->tx, c->arena, resource_database_user.kind, c->group.id, &docs, &count);
	for (size_t i = 0; result == 0 && !faults.count && i < count; i++) {
		const json_t *given = json_object_get(doc_json(c->arena, docs[i].body), "roles");
		size_t grants = database_roles_count(c->arena, roles, given);
		if (grants > USER_GRANTS_MAX)
			faults_add(&faults, c->arena, STR("actions"),
			           "would give the database user %.*s %zu rights through its roles; at most %d are "
			           "possible: name whole databases instead of single collections",
			           STR_ARG(docs[i].name), grants, USER_GRANTS_MAX);
	}
	return result < 0 ? result : faults.count ? call_fail_faults(c, &faults) : 0;
}

static int role_update(struct call *c, const struct doc *old, json_t *document)
{
	int result = role_check(c, document);
	if (result == 0)
		result = users_check(c, document);
	/* The jobs read what this write leaves behind. */
	return result < 0 ? result : access_changed(c, NULL, 0);
}

const struct resource_hooks database_role_hooks = {.create = role_create, .update = role_update};

/* A filter is a query over audit records, as JSON: fields (atype, param.command, users.user, ...) with values or
 * operators. The databases cannot run it; they record classes of statements, for everybody or for a user. So the filter
 * is asked, for every user and every action of a class, whether it could take such a record. What depends on facts that
 * are not known before (a database, a result) may be so: the log then holds more than the filter asks for, never
 * less. */
#include "api/maintenance/audit_filter.h"

#include "api/kit/verbs.h"
#include "base/buf.h"

#define FILTER_MAX 16384
#define DEPTH_MAX 16

/* Ordered: "and" is the least, "or" the most. */
enum truth { NO, MAYBE, YES };

struct record {
	const char *atype, *command; /* command NULL: not one that has it */
	const char *user;            /* NULL: somebody whom the filter does not name */
	bool open;                   /* any user and any command */
};

static enum truth least(enum truth a, enum truth b)
{
	return a < b ? a : b;
}

static enum truth most(enum truth a, enum truth b)
{
	return a > b ? a : b;
}

static enum truth opposite(enum truth t)
{
	return t == MAYBE ? MAYBE : t == YES ? NO : YES;
}

static const char *const operators[] = {"$and", "$or", "$nor", "$not",    "$in",
                                        "$nin", "$eq", "$ne",  "$exists", "$elemMatch"};

static bool is_operator(const char *key)
{
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
		if (strcmp(operators[i], key) == 0)
			return true;
	return false;
}

static const char *key_fault(const char *key, const json_t *value)
{
	bool list = strcmp(key, "$and") == 0 || strcmp(key, "$or") == 0 || strcmp(key, "$nor") == 0;
	bool set = strcmp(key, "$in") == 0 || strcmp(key, "$nin") == 0;
	if (key[0] == '$' && !is_operator(key))
		return "must use only the operators $and, $or, $nor, $not, $in, $nin, $eq, $ne, $exists and $elemMatch";
	if ((list || set) && !json_is_array(value))
		return "must have arrays after $and, $or, $nor, $in and $nin";
	for (size_t i = 0; list && i < json_array_size(value); i++)
		if (!json_is_object(json_array_get(value, i)))
			return "must have objects in the arrays of $and, $or and $nor";
	if ((strcmp(key, "$elemMatch") == 0 || strcmp(key, "$not") == 0) && !json_is_object(value))
		return "must have objects after $elemMatch and $not";
	return NULL;
}

static const char *fault_in(const json_t *value, unsigned depth)
{
	const char *key, *fault = depth > DEPTH_MAX ? "is nested too deep" : NULL;
	json_t *inner;
	size_t i;
	if (json_is_object(value))
		json_object_foreach((json_t *)(uintptr_t)value, key, inner)
		{
			if (!fault)
				fault = key_fault(key, inner);
			if (!fault)
				fault = fault_in(inner, depth + 1);
		}
	if (json_is_array(value))
		json_array_foreach(value, i, inner)
		{
			if (!fault)
				fault = fault_in(inner, depth + 1);
		}
	return fault;
}

json_t *audit_filter_parse(struct str text, struct str path, struct arena *a, struct faults *faults)
{
	if (text.n > FILTER_MAX) {
		faults_add(faults, a, path, "must be at most %d bytes long", FILTER_MAX);
		return NULL;
	}
	json_error_t error;
	json_t *filter = str_trim(text).n ? json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &error) : json_object();
	const char *fault = json_is_object(filter) ? fault_in(filter, 0) : "must be a JSON object, as text";
	if (fault) {
		faults_add(faults, a, path, "%s", fault);
		json_decref(filter);
		return NULL;
	}
	struct str again = json_text(a, filter);
	json_decref(filter);
	return doc_json(a, again);
}

/* A fact of the record against a condition: a value, or operators. Unknown facts may be anything. */
static enum truth fact_is(const char *fact, const json_t *want)
{
	if (!json_is_string(want))
		return json_is_object(want) || json_is_array(want) ? MAYBE : NO;
	return strcmp(fact, json_string_value(want)) == 0 ? YES : NO;
}

static enum truth fact_among(const char *fact, const json_t *list)
{
	enum truth t = NO;
	for (size_t i = 0; i < json_array_size(list); i++)
		t = most(t, fact_is(fact, json_array_get(list, i)));
	return t;
}

static bool is_falsy(const json_t *value)
{
	return json_is_false(value) || json_is_null(value) || (json_is_number(value) && json_number_value(value) == 0);
}

static enum truth fact_meets(const char *fact, const json_t *want)
{
	enum truth all = YES;
	const char *key;
	json_t *value;
	if (!json_is_object(want))
		return fact_is(fact, want);
	json_object_foreach((json_t *)(uintptr_t)want, key, value)
	{
		enum truth t = MAYBE;
		if (strcmp(key, "$eq") == 0)
			t = fact_is(fact, value);
		else if (strcmp(key, "$ne") == 0)
			t = opposite(fact_is(fact, value));
		else if (strcmp(key, "$in") == 0)
			t = fact_among(fact, value);
		else if (strcmp(key, "$nin") == 0)
			t = opposite(fact_among(fact, value));
		else if (strcmp(key, "$exists") == 0)
			t = is_falsy(value) ? NO : YES;
		else if (strcmp(key, "$not") == 0)
			t = opposite(fact_meets(fact, value));
		all = least(all, t);
	}
	return all;
}

static bool has_null(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_is_null(json_array_get(list, i)))
			return true;
	return false;
}

/* A record without the field: it equals null, and nothing else. */
static enum truth absent_meets(const json_t *want)
{
	enum truth all = YES;
	const char *key;
	json_t *value;
	if (!json_is_object(want))
		return json_is_null(want) ? YES : NO;
	json_object_foreach((json_t *)(uintptr_t)want, key, value)
	{
		enum truth t = MAYBE;
		if (strcmp(key, "$eq") == 0)
			t = json_is_null(value) ? YES : NO;
		else if (strcmp(key, "$ne") == 0)
			t = json_is_null(value) ? NO : YES;
		else if (strcmp(key, "$in") == 0)
			t = has_null(value) ? YES : NO;
		else if (strcmp(key, "$nin") == 0)
			t = has_null(value) ? NO : YES;
		else if (strcmp(key, "$exists") == 0)
			t = is_falsy(value) ? YES : NO;
		else if (strcmp(key, "$not") == 0)
			t = opposite(absent_meets(value));
		all = least(all, t);
	}
	return all;
}

static enum truth takes(const json_t *filter, const struct record *r, bool of_user);

static enum truth any_takes(const json_t *list, const struct record *r, bool of_user)
{
	enum truth t = NO;
	for (size_t i = 0; i < json_array_size(list); i++)
		t = most(t, takes(json_array_get(list, i), r, of_user));
	return t;
}

static enum truth all_take(const json_t *list, const struct record *r, bool of_user)
{
	enum truth t = YES;
	for (size_t i = 0; i < json_array_size(list); i++)
		t = least(t, takes(json_array_get(list, i), r, of_user));
	return t;
}

/* Who acts: a user whom the filter does not name is none of those that it names. */
static enum truth user_meets(const struct record *r, const json_t *want)
{
	return r->open ? MAYBE : fact_meets(r->user ? r->user : "", want);
}

static enum truth users_meet(const struct record *r, const json_t *want)
{
	const json_t *element = json_object_get(want, "$elemMatch");
	if (element)
		return least(takes(element, r, true), json_object_size(want) > 1 ? MAYBE : YES);
	/* An empty list is a record of the server itself. */
	return json_is_array(want) && json_array_size(want) == 0 ? NO : MAYBE;
}

static enum truth field_meets(const char *key, const json_t *want, const struct record *r, bool of_user)
{
	if (strcmp(key, "$and") == 0)
		return all_take(want, r, of_user);
	if (strcmp(key, "$or") == 0)
		return any_takes(want, r, of_user);
	if (strcmp(key, "$nor") == 0)
		return opposite(any_takes(want, r, of_user));
	if (of_user)
		return strcmp(key, "user") == 0 ? user_meets(r, want) : MAYBE;
	if (strcmp(key, "atype") == 0)
		return fact_meets(r->atype, want);
	if (strcmp(key, "param.command") == 0)
		return r->open ? MAYBE : r->command ? fact_meets(r->command, want) : absent_meets(want);
	if (strcmp(key, "users.user") == 0)
		return user_meets(r, want);
	return strcmp(key, "users") == 0 ? users_meet(r, want) : MAYBE;
}

static enum truth takes(const json_t *filter, const struct record *r, bool of_user)
{
	enum truth t = YES;
	const char *key;
	json_t *want;
	json_object_foreach((json_t *)(uintptr_t)filter, key, want)
	{
		t = least(t, field_meets(key, want, r, of_user));
	}
	return t;
}

/* The actions of each class: kinds of records, or commands of an authCheck. */
static const struct {
	const char *class;
	bool checks; /* commands, recorded when they were allowed */
	const char *names[20];
} classes[] = {
        {"read", true, {"find", "aggregate", "count", "distinct", "getMore", "mapReduce"}},
        {"write", true, {"insert", "update", "delete", "findAndModify", "bulkWrite"}},
        {"function", true, {"eval"}},
        {"misc", true, {"explain", "validate", "fsync"}},
        {"ddl",
         false,
         {"createCollection", "createDatabase", "createIndex", "dropCollection", "dropDatabase", "dropIndex",
          "renameCollection", "importCollection"}},
        {"role",
         false,
         {"createUser", "dropUser", "dropAllUsersFromDatabase", "updateUser", "grantRolesToUser", "revokeRolesFromUser",
          "createRole", "updateRole", "dropRole", "dropAllRolesFromDatabase", "grantRolesToRole", "revokeRolesFromRole",
          "grantPrivilegesToRole", "revokePrivilegesFromRole"}},
};

static bool class_is_taken(const json_t *filter, size_t at, const char *user)
{
	for (size_t i = 0; i < sizeof classes->names / sizeof *classes->names && classes[at].names[i]; i++) {
		struct record r = {.atype = classes[at].names[i], .user = user};
		if (classes[at].checks)
			r = (struct record){.atype = "authCheck", .command = classes[at].names[i], .user = user};
		if (takes(filter, &r, false) != NO)
			return true;
	}
	return false;
}

struct str audit_filter_classes(const json_t *filter, const char *user, bool successes, struct arena *a)
{
	struct buf b = {0};
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if ((successes || !classes[i].checks) && class_is_taken(filter, i, user))
			buf_printf(&b, "%s%s", b.n ? ", " : "", classes[i].class);
	struct str out = arena_dup(a, b.n ? buf_view(&b) : STR(""));
	buf_free(&b);
	return out;
}

static bool takes_kind(const json_t *filter, const char *atype)
{
	struct record r = {.atype = atype, .open = true};
	return takes(filter, &r, false) != NO;
}

bool audit_filter_has_logins(const json_t *filter)
{
	return takes_kind(filter, "authenticate") || takes_kind(filter, "logout");
}

bool audit_filter_has_denials(const json_t *filter)
{
	return takes_kind(filter, "authCheck");
}

/* The audit log's filter (filter/filter.h) is a query over audit records: atype, param.command, users.user, ... The
 * databases cannot run it; they record classes of statements, for everybody or for a user. So the filter is asked, for
 * every user and every action of a class, whether it could take such a record. What depends on facts that are not known
 * before (a database, a result) may be so: the log then holds more than the filter asks for, never less. */
#include "api/maintenance/audit_filter.h"

#include "base/buf.h"

struct record {
	const char *atype, *command; /* command NULL: not one that has it */
	const char *user;            /* NULL: somebody whom the filter does not name */
	bool open;                   /* any user and any command */
};

static struct filter_fact fact_of(const void *record, const char *list, const char *field)
{
	const struct record *r = record;
	bool of_user =
	        list ? strcmp(list, "users") == 0 && strcmp(field, "user") == 0 : strcmp(field, "users.user") == 0;
	if (of_user && !r->open)
		return (struct filter_fact){FACT_TEXT, r->user ? r->user : ""};
	if (!list && strcmp(field, "atype") == 0)
		return (struct filter_fact){FACT_TEXT, r->atype};
	if (!list && strcmp(field, "param.command") == 0 && !r->open)
		return (struct filter_fact){r->command ? FACT_TEXT : FACT_ABSENT, r->command};
	return (struct filter_fact){!list && strcmp(field, "users") == 0 ? FACT_LIST : FACT_UNKNOWN};
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
		if (filter_takes(filter, fact_of, &r) != TRUTH_NO)
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
	return filter_takes(filter, fact_of, &r) != TRUTH_NO;
}

bool audit_filter_has_logins(const json_t *filter)
{
	return takes_kind(filter, "authenticate") || takes_kind(filter, "logout");
}

bool audit_filter_has_denials(const json_t *filter)
{
	return takes_kind(filter, "authCheck");
}

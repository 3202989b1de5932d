/* How a directory knows a database user: the project's userToDNMapping, applied to the user's name. */
#ifndef STEWARD_DIRECTORY_LDAP_MAPPING_H
#define STEWARD_DIRECTORY_LDAP_MAPPING_H

#include "base/arena.h"
#include "catalog/schema.h"

#include <jansson.h>

/* The parts of "base?attributes?scope?filter", a query in the form of an LDAP URL's end. */
struct ldap_query {
	struct str base, attributes, scope, filter;
};
/* False when it has other parts, no base or no such scope. What is left out: scope base, every entry. */
must_check bool ldap_query_parse(struct str text, struct ldap_query *ret_query);
/* A value inside a distinguished name, and inside a filter. */
struct str ldap_escape_dn(struct arena *a, struct str value);
struct str ldap_escape_filter(struct arena *a, struct str value);

/* Rules in the form of the API; `path` names the array in faults. */
void ldap_mapping_check(const json_t *rules, struct str path, struct arena *a, struct faults *faults);
/* The entry of a user, by the first rule that matches the whole name: its name, or a query that finds it; the other is
 * STR_NONE. Without rules the user's name is the entry's. Both are STR_NONE when no rule matches, or what it makes is
 * empty or too long to be told to the databases. */
void ldap_mapping_apply(const json_t *rules, struct str user, struct arena *a, struct str *ret_dn,
                        struct str *ret_query);

#endif

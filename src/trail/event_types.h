/* The types that events can have, taken from the lists in the schemas, and which fields an event of a type may have. */
#ifndef STEWARD_TRAIL_EVENT_TYPES_H
#define STEWARD_TRAIL_EVENT_TYPES_H

#include "catalog/schema.h"

struct event_type {
	struct str name;
	bool alertable;
	/* The form of such an event in a project's list and in an organization's; NULL: that list does not show it. */
	const struct schema *in_group, *in_org;
};

/* All, sorted by name. */
const struct event_type *event_types(size_t *ret_count);
/* NULL when there is no such type. */
const struct event_type *event_type_find(struct str name);
/* "GROUP_CREATED" -> "Group created". */
struct str event_type_describe(struct arena *a, struct str name);

/* Whether an organization's list shows such an event of one of its projects: yes when the project itself, or what the
 * organization has in it (teams, keys, accounts), is created, changed or deleted. Everything else is only in the
 * project's list. */
bool event_type_is_of_org(const struct event_type *t);

#endif

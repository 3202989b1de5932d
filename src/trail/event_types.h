/* The types that events can have, taken from the lists in the schemas, and which fields an event of a type may have. */
#ifndef STEWARD_TRAIL_EVENT_TYPES_H
#define STEWARD_TRAIL_EVENT_TYPES_H

#include "catalog/dialect.h"
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
/* "GROUP_CREATED" -> "Group created"; by the word that the dialect has for it. */
struct str event_type_describe(struct arena *a, const struct dialect *d, struct str name);
/* What an event was described with ("Cluster created; clusterName: c"), in the words of the dialect. Fields and limits
 * are words; everything else is what somebody gave as a name, and stays. */
struct str event_description(struct arena *a, const struct dialect *d, struct str type, struct str text);

/* Whether an organization's list shows such an event of one of its projects: yes when the project itself, or what the
 * organization has in it (teams, keys, accounts), is created, changed or deleted. Everything else is only in the
 * project's list. */
bool event_type_is_of_org(const struct event_type *t);

#endif

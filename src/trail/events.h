/* Every change through the API writes its event in the transaction of the change: what, who, from where, when. The row
 * of the operation names the type; a handler may choose another and add fields. */
#ifndef STEWARD_TRAIL_EVENTS_H
#define STEWARD_TRAIL_EVENTS_H

#include "call/call.h"

/* For the handler: sets another type than the row's, or NULL for no event. */
void event_set_type(struct call *c, const char *type);
/* Adds a field ("targetUsername"), never a secret. Borrowed until the answer. A field that the schemas do not have for
 * the type becomes part of the description (includeRaw). */
void event_field(struct call *c, const char *name, struct str value);
/* The same with a JSON array of texts. */
void event_list_field(struct call *c, const char *name, struct str array);
/* In a handler that refuses a change: the event is written anyway, as it is when the handler returns, in a write of its
 * own. */
void event_refusal(struct call *c, const char *type);
/* Sets the scope when it is not the path's: the organization or project that the call made. Without a project, the
 * event belongs to the organization. */
void event_scope(struct call *c, struct str org_id, struct str group_id);
/* Sets the cluster when it is not the path's {clusterName}. */
void event_cluster(struct call *c, struct str name);

/* For a call that changes several things: writes the current event, in the write, and starts a new one. The dispatcher
 * writes the last one. */
must_check int event_next(struct call *c);

/* In the write, after the handler succeeded. */
must_check int event_write(struct call *c);

/* An event of the service itself, outside a call: the first start, jobs. `group_id` and `cluster` may be empty; without
 * an organization it is the project's, and nothing is written when that is gone. */
must_check int event_service(struct tx *tx, struct arena *a, const char *type, struct str org_id, struct str group_id,
                             struct str cluster);

/* The same with details: texts, or numbers where the text is empty. Details for which the type's form has a field go
 * there, the rest into the description, as the cluster's name does. */
struct event_detail {
	const char *name;
	struct str text;
	int64_t number;
};
struct event_about {
	struct str org_id, group_id, cluster;
	const char *severity;  /* NULL: INFO */
	const char *type_name; /* of the host: PRIMARY, SECONDARY, ROUTER; or NULL. No field of the event */
	const struct event_detail *details;
	size_t detail_count;
};
must_check int event_service_about(struct tx *tx, struct arena *a, const char *type, const struct event_about *about);

/* Called in the write of each event of a project, after it was added; a negative result undoes the write. `about` is of
 * the service's own events; NULL for a caller's. Set once, at the start. */
typedef int event_observer(struct tx *tx, struct arena *a, const struct event *e, const struct event_about *about);
void events_observe(event_observer *observer);

/* The same with one field. */
must_check int event_service_field(struct tx *tx, struct arena *a, const char *type, struct str org_id,
                                   struct str group_id, const char *name, struct str value);

/* Deletes older events. Waits for the store: never call it on a loop. */
void events_prune(struct store *s, unsigned days);

#endif

/* Every change through the API writes its event, in the transaction of the change: what, who, from where, when. The row of
 * the operation names the type; a handler may choose another and add fields of the type's own. */
#ifndef STEWARD_GATE_AUDIT_H
#define STEWARD_GATE_AUDIT_H

#include "gate/call.h"

/* For the handler: another type than the row's, or NULL for none at all. */
void audit_type(struct call *c, const char *type);
/* A field of the event's own ("targetUsername"), never a secret. Borrowed until the answer. One that the schemas do not
 * have for the type becomes part of the description (includeRaw). */
void audit_field(struct call *c, const char *name, struct str value);
/* The same with a JSON array of texts. */
void audit_list(struct call *c, const char *name, struct str array);
/* In a handler that refuses a change: the event, as it will stand when the handler returns, is written all the same, in a
 * write of its own. */
void audit_refusal(struct call *c, const char *type);
/* The scope, where it is not the path's: the organization or project that the call made. Without a project, the event is
 * the organization's. */
void audit_scope(struct call *c, struct str org_id, struct str group_id);
/* The cluster that it is about, where that is not the path's {clusterName}. */
void audit_cluster(struct call *c, struct str name);

/* For a call that changes several things: writes the event as it stands, in the write, and starts a new one. The last is
 * written by the dispatcher. */
must_check int audit_next(struct call *c);

/* In the write, after the handler succeeded. */
must_check int audit_write(struct call *c);

/* An event of the service itself, outside a call: the first start, jobs. Empty where there is no project or cluster. */
must_check int audit_service(struct tx *tx, struct arena *a, const char *type, struct str org_id, struct str group_id,
                             struct str cluster);

/* The same with more to tell: texts, or numbers where the text is empty. What the schemas have a field for in the type's
 * form becomes one, the rest part of the description, as the cluster's name does. */
struct audit_detail {
	const char *name;
	struct str text;
	int64_t number;
};
struct audit_about {
	struct str org_id, group_id, cluster;
	const char *severity; /* NULL: INFO */
	const struct audit_detail *details;
	size_t detail_count;
};
must_check int audit_service_about(struct tx *tx, struct arena *a, const char *type, const struct audit_about *about);

/* The same about one thing: a field of the event's own. */
must_check int audit_service_field(struct tx *tx, struct arena *a, const char *type, struct str org_id,
                                   struct str group_id, const char *name, struct str value);

/* Lets go of the events that are older. Waits for the store: not on a loop. */
void audit_prune(struct store *s, unsigned days);

#endif

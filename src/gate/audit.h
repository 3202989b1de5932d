/* Every change through the API writes its event, in the transaction of the change: what, who, from where, when. The row of
 * the operation names the type; a handler may choose another and add fields of the type's own. */
#ifndef STEWARD_GATE_AUDIT_H
#define STEWARD_GATE_AUDIT_H

#include "gate/call.h"

/* For the handler: another type than the row's, or NULL for none at all. */
void audit_type(struct call *c, const char *type);
/* A field of the event's own ("targetUsername"), never a secret. Borrowed until the answer. */
void audit_field(struct call *c, const char *name, struct str value);
/* The scope, where it is not the path's: the organization or project that the call made. */
void audit_scope(struct call *c, struct str org_id, struct str group_id);

/* In the write, after the handler succeeded. */
must_check int audit_write(struct call *c);

#endif

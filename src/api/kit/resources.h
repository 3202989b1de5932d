/* Between the verbs and what a resource's row says: for the kit's own files. */
#ifndef STEWARD_API_KIT_RESOURCES_H
#define STEWARD_API_KIT_RESOURCES_H

#include "api/kit/verbs.h"

/* The refusal of a name that another has. */
int resource_taken(struct call *c, const struct resource *r, struct str name);
/* The refusal of what the document's state does not allow. */
int resource_busy(struct call *c, const struct resource *r, const struct doc *d, const char *state);
/* Sets the fields that the service fills. */
void resource_fill(struct call *c, const struct resource *r, const struct doc *d, bool is_new, json_t *document);
/* Tells the call's event what the document is. */
void resource_event_fields(struct call *c, const struct resource *r, const json_t *document);
/* Writes the events that changed fields have of their own; the call's event is for the others. */
must_check int resource_event_changes(struct call *c, const struct resource *r, const struct doc *old,
                                      const json_t *document);
/* Before the checks: sealed fields that the call does not have are as they were, so that the document is whole. */
must_check int resource_unseal(struct call *c, const struct resource *r, const struct doc *old, json_t *document);
/* Moves the sealed fields out of the document into d->secret. */
void resource_seal(struct call *c, const struct resource *r, json_t *document, struct doc *d);
/* What is the service's own stays as it was, whatever the call says. */
void resource_keep_own(struct call *c, const struct resource *r, const struct doc *old, bool replaces,
                       json_t *document);
/* As resource_load(), by a key that the path has for another resource; empty: by its own. */
must_check int resource_load_by(struct call *c, const struct resource *r, struct str key, struct doc *ret_doc);
/* That everything is there which the document names. */
must_check int resource_refs_check(struct call *c, const struct resource *r, struct str parent, const json_t *document);
/* Refuses to delete a document that still has others. */
must_check int resource_holds(struct call *c, const struct resource *r, struct str id);
/* Before a document is deleted: what names it refuses that, or goes with it. */
must_check int resource_release(struct call *c, const struct resource *r, const struct doc *d);
/* Before a document gets another name: nothing may name it by the old one. */
must_check int resource_rename(struct call *c, const struct resource *r, const struct doc *old);

#endif

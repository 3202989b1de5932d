/* Projects, as far as others need them. */
#ifndef STEWARD_API_PROJECTS_PROJECTS_H
#define STEWARD_API_PROJECTS_PROJECTS_H

#include "call/call.h"

/* Sets the fields of a new project that the service sets. */
void project_complete(json_t *document, struct str id);
/* What the caller sees: whole organizations whose projects it reads, then single projects that it has a role in. */
struct segment;
must_check int projects_visible(struct call *c, struct segment **ret_list, size_t *ret_count);

#endif

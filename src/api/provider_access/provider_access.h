/* Roles at cloud providers, by which a project lets the service reach what is its own there. A stored role has, beside
 * what the API shows, "authorizedDate" whichever provider it is of: without it, it is not authorized. */
#ifndef STEWARD_API_PROVIDER_ACCESS_PROVIDER_ACCESS_H
#define STEWARD_API_PROVIDER_ACCESS_PROVIDER_ACCESS_H

#include "call/service.h"
#include "jobs/jobs.h"
#include "providers/providers.h"

#define PROVIDER_ROLE_KIND "provider_role"

extern const struct job_kinds provider_access_jobs;

/* A role of the project, as its provider knows it; the texts are the arena's. -ENOENT: the project has none of the id;
 * -EACCES: it is not authorized. */
must_check int provider_role_find(struct tx *tx, struct arena *a, struct str group_id, struct str id,
                                  struct provider_role *ret_role);

/* --- what uses roles. A role that is used is not deleted, and shows its uses. */

struct role_uses;
/* One use, while list() runs. `what` names it for people, in printable ASCII: the export bucket "b". Both texts are the
 * arena's. */
void role_use_add(struct role_uses *uses, struct str role_id, struct str what);

/* A feature that uses roles. Each family gives one; api/edge/families.c lists them. */
struct role_user {
	const char *feature; /* EXPORT_SNAPSHOT: its featureType */
	/* Adds what the project has of it. */
	int (*list)(struct tx *tx, struct arena *a, struct str group_id, struct role_uses *uses);
};
extern const struct role_user *const role_users[];
extern const size_t role_user_count;

#endif

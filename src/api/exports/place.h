/* Where tenants' buckets are, as the operator has configured it: of exports, and of logs. */
#ifndef STEWARD_API_EXPORTS_PLACE_H
#define STEWARD_API_EXPORTS_PLACE_H

#include "call/service.h"
#include "objects/objects.h"
#include "providers/providers.h"

/* A place of buckets (service.export_buckets): what tenants have, by their roles at the provider. */
#define EXPORTS_BY_ROLES "roles"
/* How the URLs of each provider's buckets begin. */
extern const char *const bucket_schemes[PROVIDERS];
/* A directory, the operator's own buckets, EXPORTS_BY_ROLES, or empty: none. */
struct str bucket_place(const struct service *s);
/* Whether the operator's own buckets are at a provider. */
bool bucket_place_is_cloud(struct str place);
/* Whether a bucket can have that name: as all three providers have it, so that nothing in it leads out of the
 * operator's directory. */
bool bucket_name_is_good(struct str name);
/* The project's role of that id, which shall be of the provider; NULL: what the operator has configured reaches the
 * bucket. Negative with words: -ENOENT, -EACCES and -EINVAL are about the role. */
must_check int bucket_role_find(const struct service *s, struct tx *tx, struct arena *a, struct str group_id,
                                struct str role_id, enum provider provider, const struct provider_role **ret_role,
                                const char **ret_why);
/* With the operator's keys nobody proves to be a bucket's owner, so a name belongs to the organization that used it
 * first. 0: to this one; -ENOENT: to nobody; -EACCES: to another. Then it is taken, in a write. */
must_check int bucket_owner(struct tx *tx, struct arena *a, struct str name, struct str org_id);
must_check int bucket_take(struct tx *tx, struct str name, struct str org_id);
/* 0: the operator has a place for buckets of the provider, and this name may be in it; else negative, with words:
 * -ENOTSUP, -EACCES. `what` they are: "buckets". */
must_check int bucket_place_check(const struct service *s, struct arena *a, enum provider provider, struct str name,
                                  const char *what, const char **ret_why);
/* For a bucket that a role opens: the operator's options of its provider, with keys that are the role's. `unset`: the
 * error where the operator has no identity at the provider. The arena lives as long as the bucket is open. */
struct objects_options bucket_options_by_role(const struct service *s, struct arena *a,
                                              const struct provider_role *role, int unset);

#endif

/* Export buckets: where exports are put. */
#ifndef STEWARD_API_EXPORTS_BUCKETS_H
#define STEWARD_API_EXPORTS_BUCKETS_H

#include "api/provider_access/provider_access.h"
#include "api/snapshots/snapshots.h"
#include "objects/objects.h"

#define BUCKET_KIND "backup_export_bucket"

extern const struct role_user export_buckets_role_user;
/* The project's role by which the bucket is reached; NULL: it is reached with what the operator has configured.
 * Negative with words: -ENOENT, -EACCES and -EINVAL are about the role that the bucket names. */
must_check int bucket_role(const struct service *s, struct tx *tx, struct arena *a, struct str group_id,
                           const json_t *bucket, const struct provider_role **ret_role, const char **ret_why);
/* Where the operator's configuration says that the bucket lies. Waits for it; *ret_why has words when it fails. The
 * arena lives as long as the bucket is open. */
must_check int bucket_open(const struct service *s, struct arena *a, const json_t *bucket,
                           const struct provider_role *role, struct objects **ret_bucket, const char **ret_why);

#endif

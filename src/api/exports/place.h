/* Where tenants' buckets are, as the operator has configured it: of exports, and of logs. */
#ifndef STEWARD_API_EXPORTS_PLACE_H
#define STEWARD_API_EXPORTS_PLACE_H

#include "call/service.h"
#include "providers/providers.h"

/* How the URLs of each provider's buckets begin. */
extern const char *const bucket_schemes[PROVIDERS];
/* A directory, the operator's own buckets, EXPORTS_BY_ROLES, or empty: none. */
struct str bucket_place(const struct service *s);
/* Whether the operator's own buckets are at a provider: at this one, at any. */
bool bucket_place_is_at(struct str place, enum provider provider);
bool bucket_place_is_cloud(struct str place);
/* Why a role does not reach a bucket: of what looking for it has returned. */
const char *bucket_role_fault(int result);

#endif

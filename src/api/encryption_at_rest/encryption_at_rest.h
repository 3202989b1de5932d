/* Encryption at rest with keys of projects at key services. Documents, both below the project:
 *
 *   encryption_at_rest   what the API shows, without secrets, which are sealed beside it; besides
 *                        "dataKeyId", and "checks": {"awsKms": {"failures", "why", "away"}}
 *   data_key             {"id", "proof", "created", "wraps": [{"provider", "section", "wrapped", "version"}]}: the
 *                        project's data key as each service has wrapped it, with what the service is asked with; the
 *                        secrets of that are sealed beside it
 *
 * A data key lasts: what its services hold against it is made anew with each rotation, it itself is not. Only where a
 * project has lost its key for good, and no cluster has data under it, another one follows it. */
#ifndef STEWARD_API_ENCRYPTION_AT_REST_ENCRYPTION_AT_REST_H
#define STEWARD_API_ENCRYPTION_AT_REST_ENCRYPTION_AT_REST_H

#include "api/clusters/clusters.h"
#include "api/provider_access/provider_access.h"
#include "base/data_key.h"
#include "jobs/jobs.h"

extern const struct job_kinds encryption_at_rest_jobs;
extern const struct cluster_part encryption_at_rest_part;
extern const struct role_user encryption_at_rest_role_user;

/* Where projects' data keys are got; in the arena. The service has its store and its key services. */
const struct data_keys *encryption_data_keys(struct service *s, struct arena *a);

/* In a write, for the operator's command: a data key as it lies wrapped beside the backups (data_keys.wrapped) is the
 * project's again, without the secrets that its services are asked with: those come with the project's next settings;
 * the operator's own keys need none. -EEXIST: it is there. -ENODATA: an earlier version wrote too little beside the
 * backups. */
must_check int data_key_adopt(struct tx *tx, struct arena *a, struct str group_id, const json_t *kept);

/* In a read or write: whether new data of the project is sealed with a key of its own; and since when it has had its
 * current one (INT64_MAX: it never had any). */
must_check int encryption_is_on(struct tx *tx, struct arena *a, struct str group_id, bool *ret_on,
                                int64_t *ret_since_ms);

#endif

/* Federated database instances: SQL endpoints of projects that read their clusters, archives and stores together. */
#ifndef STEWARD_API_DATA_FEDERATION_DATA_FEDERATION_H
#define STEWARD_API_DATA_FEDERATION_DATA_FEDERATION_H

#include "api/archives/archives.h"
#include "api/clusters/clusters.h"
#include "api/provider_access/provider_access.h"

extern const struct job_kinds data_federation_jobs;
extern const struct cluster_part data_federation_part;
extern const struct role_user data_federation_role_user;

/* Once, when the engine has started and before the jobs do: tells the engine whom it asks for credentials, and has the
 * instances' jobs look whether they are there. */
must_check int data_federation_start(struct service *s);

#endif

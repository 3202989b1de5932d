/* Clusters whose files become encrypted, or plain, and those whose key is lost. With cluster.work held. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_CRYPT_CONVERT_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_CRYPT_CONVERT_H

#include "engine/postgres/model/model.h"

int pg_crypt_lock(struct pg_cluster *c); /* the project's key is lost: stopped, durably, and shut */
/* The end of a converge: nodes that are not as wanted are, one after the other. May be repeated. */
int pg_crypt_convert(struct pg_cluster *c, bool encrypted, const struct engine_progress *progress,
                     const char **ret_why);

#endif

/* Snapshots in another region. */
#ifndef STEWARD_REPOSITORY_COPY_H
#define STEWARD_REPOSITORY_COPY_H

#include "repository/common.h"

/* Copies a snapshot's missing chunks and manifests into another region's repository of the same project. */
must_check int repo_copy(struct repository *from, struct repository *to, const char *cluster, const char *snapshot,
                         const struct repo_progress *p, struct repo_amount *ret_amount);

#endif

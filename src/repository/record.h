/* What the catalogue says of a snapshot, beside it, for whoever has lost the catalogue. */
#ifndef STEWARD_REPOSITORY_RECORD_H
#define STEWARD_REPOSITORY_RECORD_H

#include "repository/common.h"

/* In place of what was there. */
must_check int repo_record_put(struct repository *r, const char *cluster, const char *snapshot, const char *text);
/* On the heap. -ENOENT: an earlier version wrote none. */
must_check int repo_record_get(struct repository *r, const char *cluster, const char *snapshot, char **ret_text);
must_check int repo_records(struct repository *r, repo_snapshot_visit *visit, void *ctx);

#endif

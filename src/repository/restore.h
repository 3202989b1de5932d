/* Files out of a repository, into a directory or only looked at. */
#ifndef STEWARD_REPOSITORY_RESTORE_H
#define STEWARD_REPOSITORY_RESTORE_H

#include "repository/common.h"

#include <sys/types.h>

struct repo_manifest; /* manifest.h */

/* All files below an empty directory, owned by (uid, gid); every chunk is authenticated and every file's checksum
 * compared before 0 is returned. Nothing is flushed: who keeps it does that. */
must_check int repo_restore(struct repo_manifest *m, const char *directory, uid_t uid, gid_t gid, unsigned threads,
                            const struct repo_progress *p);
/* The same; files that lie below `image` (a directory; negative: none) share their blocks with those where the file
 * system can do so, and are not read from the repository: what lies there is trusted, and is the snapshot's own. */
must_check int repo_restore_beside(struct repo_manifest *m, const char *directory, uid_t uid, gid_t gid,
                                   unsigned threads, const struct repo_progress *p, int image);
/* The same checks without writing anything. */
must_check int repo_verify(struct repo_manifest *m, unsigned threads, const struct repo_progress *p);

#endif

/* The jobs of online archives. */
#ifndef STEWARD_API_ARCHIVES_WORK_H
#define STEWARD_API_ARCHIVES_WORK_H

#include "api/archives/archive.h"

#define ARCHIVE_JOB "online_archive" /* of each archive: the work that is due */

/* In the write in which an archive goes, by itself or with its cluster: what it has in the object store is taken away
 * once no backup can bring its name back. */
must_check int archive_remains_ask(struct tx *tx, struct arena *a, const struct archive *x);

#endif

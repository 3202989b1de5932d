/* Files of archived rows: they lie in the project's place, beside its backups, and no snapshot has a part in them.
 *
 *   GROUP/rows/ARCHIVE/FILE.parquet          as it was written, where the project has no encryption at rest
 *   GROUP/rows/ARCHIVE/FILE.parquet.sealed   under its data key: the bytes of objects/seal.h, for "archives"
 *
 * ARCHIVE and FILE are ids. docs/archive-format.md tells the rest. */
#ifndef STEWARD_REPOSITORY_ROWS_H
#define STEWARD_REPOSITORY_ROWS_H

#include "repository/common.h"

/* An objects_put(): the file is there when it returns 0, and nothing is when it fails. */
must_check int repo_rows_put(struct repository *r, const char *archive, const char *file, objects_read *read,
                             void *ctx);
/* The file's bytes, opened. -EBADMSG: they are not what was written; -EKEYREVOKED. */
must_check int repo_rows_get(struct repository *r, const char *archive, const char *file, objects_write *write,
                             void *ctx);
must_check int repo_rows_delete(struct repository *r, const char *archive, const char *file);
/* What lies there for the archive. Other than 0 ends it with that. */
typedef int repo_rows_visit(void *ctx, const char *file);
must_check int repo_rows_list(struct repository *r, const char *archive, repo_rows_visit *visit, void *ctx);

#endif

/* Whether all of the log is where it should be. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_PROVE_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_PROVE_H

#include "engine/postgres/model/model.h"

struct pg_archive;

int pg_backup_prove_log(struct engine *e, const char *region, const struct repo_keep_wal *of);
/* Looks whether all is there, of the sets of which it was asked for (pg_backup_prove_log()). */
int pg_archive_prove(struct pg_cluster *c, struct pg_archive *a);
/* What was missing is mended or noted, unless it was asked again since. */
void pg_archive_proven(struct pg_cluster *c, struct pg_archive *a);

#endif

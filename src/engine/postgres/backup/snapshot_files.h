/* The files of a snapshot, read beside the server that writes them. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_SNAPSHOT_FILES_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_SNAPSHOT_FILES_H

#include "base/str.h"

struct shot;
struct shot_base;

bool pg_shot_is_cancelled(struct shot *s);
/* A file of the base's data directory that belongs to the database's user; -EPERM: it is another's. */
int pg_shot_open(const struct shot_base *b, const char *path);
/* All files of the data directory that belong to a snapshot, but pg_control, are in the repository. */
int pg_shot_files(struct shot *s, struct shot_base *b);

#endif

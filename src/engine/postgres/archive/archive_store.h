/* A set's log into the repository. For the archive's worker alone. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_STORE_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_STORE_H

#include "engine/postgres/model/model.h"

struct pg_archive;
struct pg_archive_set;

/* Whether the nodes' directories are still those of the data whose log is being stored: asked after reading there. A
 * restore says that they are not before it changes them. */
bool pg_archive_is_same(struct pg_cluster *c, const struct pg_archive *a);
int pg_archive_put(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, const char *name,
                   const void *bytes, size_t n);
/* The line of a set, of names that live as long as the arguments. */
struct repo_line pg_archive_line(const struct pg_cluster *c, const struct pg_archive *a, const char *set);

#endif

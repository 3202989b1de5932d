/* The versions of PostgreSQL that are installed here. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_VERSIONS_H
#define STEWARD_ENGINE_POSTGRES_HOST_VERSIONS_H

#include "engine/postgres/model/model.h"

const char *pg_version_bin(const struct engine *e, unsigned major); /* NULL: not installed */
/* Asks the program: "15.19.0". */
void pg_version_read(const char *bin, unsigned major, char ret_text[24]);
/* Below `root`; NULL: where Debian has them. -ENOENT: there is none. */
int pg_programs_find(struct engine *e, const char *root);

#endif

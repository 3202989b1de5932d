/* Directories that go. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_DISCARD_H
#define STEWARD_ENGINE_POSTGRES_HOST_DISCARD_H

#include "engine/postgres/model/model.h"

/* It is gone from its place at once, and from the disk later: thousands of files take seconds. */
int pg_tree_discard(struct engine *e, const char *path);

#endif

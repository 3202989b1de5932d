/* Where databases lie on this host. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_PLACE_H
#define STEWARD_ENGINE_POSTGRES_HOST_PLACE_H

#include "engine/postgres/model/model.h"

/* Makes the directories below DIR/engine, or elsewhere where databases cannot lie there. */
int pg_place_find(struct engine *e, const char *data_dir);

#endif

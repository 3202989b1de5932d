/* How many files this process may have open. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_DESCRIPTORS_H
#define STEWARD_ENGINE_POSTGRES_HOST_DESCRIPTORS_H

#include "engine/postgres/model/model.h"

/* At the start: descriptors for all nodes that lie here, as far as the system gives them. -EMFILE, with the reason in
 * the log: they would not suffice, and running servers could not be told from those that ended. */
must_check int pg_descriptors_ensure(const struct engine *e);

#endif

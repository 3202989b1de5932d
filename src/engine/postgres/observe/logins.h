/* Who has logged in, out of the directory of a log. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_LOGINS_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_LOGINS_H

#include "engine/engine.h"

int pg_logins_read(const char *directory, const struct engine_logins *wanted, struct arena *a,
                   struct engine_login **ret_list, size_t *ret_count);

#endif

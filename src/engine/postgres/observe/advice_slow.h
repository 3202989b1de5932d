/* Slow statements, from the logs. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_ADVICE_SLOW_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_ADVICE_SLOW_H

#include "engine/postgres/model/model.h"

int pg_advice_slow(struct engine *e, const struct engine_slow_question *q, struct arena *a,
                   struct engine_slow **ret_list, size_t *ret_count);

#endif

/* Statements, and what they took. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_ADVICE_STATEMENTS_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_ADVICE_STATEMENTS_H

#include "engine/postgres/model/model.h"

int pg_advice_statements(struct engine *e, const char *cluster_id, struct arena *a,
                         struct engine_statements *ret_statements);

#endif

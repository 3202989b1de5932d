/* Which indexes would help. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_ADVICE_INDEX_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_ADVICE_INDEX_H

#include "engine/postgres/model/model.h"

int pg_advice_indexes(struct engine *e, const char *cluster_id, const struct str *nodes, size_t node_count,
                      const struct engine_statements *statements, const struct engine_namespaces *of, struct arena *a,
                      struct engine_suggestions *ret_suggestions);

#endif

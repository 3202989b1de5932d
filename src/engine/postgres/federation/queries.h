/* The log of an instance's queries, as its endpoint writes it. */
#ifndef STEWARD_ENGINE_POSTGRES_FEDERATION_QUERIES_H
#define STEWARD_ENGINE_POSTGRES_FEDERATION_QUERIES_H

#include "engine/postgres/model/model.h"

int pg_queries_walk(const char *dir, int64_t from_ms, int64_t to_ms, engine_federation_visit *visit, void *ctx,
                    struct arena *a);
void pg_queries_sweep(const char *dir); /* what is older than 30 days */

#endif

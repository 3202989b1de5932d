/* The tables that a cluster's users have pinned: what the sampler reads of them. */
#ifndef STEWARD_API_METRICS_PINS_H
#define STEWARD_API_METRICS_PINS_H

#include "base/arena.h"
#include "store/store.h"

/* Their names, "database.table"; in the arena. */
must_check int pins_load(struct tx *tx, struct arena *a, struct str cluster_id, const char ***ret_names,
                         size_t *ret_count);

#endif

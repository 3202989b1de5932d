/* The engine's settings from the process arguments. */
#ifndef STEWARD_API_CLUSTERS_ARGS_H
#define STEWARD_API_CLUSTERS_ARGS_H

#include "api/clusters/cluster.h"

must_check int process_params(struct tx *tx, struct arena *a, const struct cluster *cluster,
                              struct engine_param **ret_params, size_t *ret_count, bool *ret_quorum);

#endif

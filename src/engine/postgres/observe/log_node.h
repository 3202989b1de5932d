/* A range of a node's log, and who has logged in. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_LOG_NODE_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_LOG_NODE_H

#include "engine/postgres/model/model.h"

int pg_log_follow_node(struct engine *e, const struct engine_log *log, struct engine_log_range *range,
                       engine_log_take *take, void *ctx);
int pg_log_end_node(struct engine *e, const struct engine_log *log, struct engine_log_place *ret_place);
int pg_logins(struct engine *e, const struct engine_logins *wanted, struct arena *a, struct engine_login **ret_list,
              size_t *ret_count);

#endif

/* Where things lie below DIR/engine. */
#ifndef STEWARD_ENGINE_POSTGRES_MODEL_PATHS_H
#define STEWARD_ENGINE_POSTGRES_MODEL_PATHS_H

#include "engine/postgres/model/model.h"

void pg_path_set(char ret_path[PG_PATH], const char *format, ...) printf_like(2, 3);
void pg_node_path(const struct pg_cluster *c, const struct pg_node *n, const char *below, char ret_path[PG_PATH]);
/* Of its sockets. */
void pg_node_run_dir(const struct pg_cluster *c, const struct pg_node *n, char ret_path[PG_PATH]);

#endif

/* What queries of an instance, or of all instances of a project, have read: module/usage.h. */
#ifndef STEWARD_ENGINE_POSTGRES_FEDERATION_USAGE_H
#define STEWARD_ENGINE_POSTGRES_FEDERATION_USAGE_H

#include "engine/postgres/model/model.h"
#include "module/usage.h"

/* Where the file and the log lie. */
void pg_usage_dir(const struct engine *e, const char *id, char ret_path[PG_PATH]);
void pg_usage_project_dir(const struct engine *e, const char *group_id, char ret_path[PG_PATH]);
/* With what lies there already. `queries`: with a place for the log. */
must_check int pg_usage_make(const struct pg_user *u, const char *dir, bool queries);
/* Those of the project, or the others. */
must_check int pg_usage_bound(const char *dir, const struct engine_federation_limit *limits, size_t count,
                              bool project);
must_check int pg_usage_read(const char *dir, struct usage *ret_usage);

#endif

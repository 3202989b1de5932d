/* What of access was applied last. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_ACCESS_MARK_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_ACCESS_MARK_H

#include "engine/postgres/model/model.h"

/* Whether that is what was applied last, with success, to a cluster whose servers are the same since. Unmark: it may
 * not be any more. */
bool pg_access_is_applied(const struct pg_cluster *c, const struct engine_access *access);
void pg_access_unmark(const struct pg_cluster *c);
void pg_access_mark(const struct pg_cluster *c, const struct engine_access *access); /* all of it is in force */

#endif

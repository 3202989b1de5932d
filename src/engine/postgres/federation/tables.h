/* The databases of an instance on its endpoint: foreign tables, as the storage configuration has them. */
#ifndef STEWARD_ENGINE_POSTGRES_FEDERATION_TABLES_H
#define STEWARD_ENGINE_POSTGRES_FEDERATION_TABLES_H

#include "engine/postgres/model/model.h"

struct buf;
struct pg_remotes;

/* Names of all databases that it shall have, in the arena. -EAGAIN: a cluster does not tell its own now. */
must_check int pg_federated_databases(struct pg_remotes *all, const char *const **ret_names, size_t *ret_count,
                                      const char **ret_why);
/* The statements that make one, all anew. What cannot be is left out, and *ret_fault says the first of it. -EAGAIN:
 * some of it because a cluster does not answer now. */
must_check int pg_federated_sql(struct pg_remotes *all, const char *database, struct buf *b, const char **ret_fault);
void pg_literal_add(struct buf *b, const char *text);

#endif

/* Who may connect, and from where: users, rules for addresses, and what of both a cluster's servers have. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_ACCESS_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_ACCESS_H

#include "engine/postgres/model/model.h"

struct buf;

int pg_access_apply(struct pg_cluster *c, const struct engine_access *access, const char **ret_why);
void pg_access_network(struct buf *b, const struct cidr *network); /* as the servers write it */
/* Whether that is what was applied last, with success, to a cluster whose servers are the same since. Unmark: it may
 * not be any more. */
bool pg_access_is_applied(const struct pg_cluster *c, const struct engine_access *access);
void pg_access_unmark(const struct pg_cluster *c);
/* HBA and ident files of a node that has none yet. */
int pg_access_first(struct pg_cluster *c, struct pg_node *n);
int pg_access_write(struct pg_cluster *c, struct pg_node *n, const struct engine_access *access, bool *ret_changed);
/* Keeps a copy: of the users that a server can have. ENGINE_PARTLY: there are others. */
int pg_access_keep(struct pg_cluster *c, const struct engine_access *access, const char **ret_why);
/* The service's own lines of the HBA file. */
void pg_access_own_rules(struct buf *b);
int pg_access_file_write(struct pg_cluster *c, const char *path, const struct buf *b, bool *ret_changed);
#define PG_HBA_MAX (16 << 20)

#endif

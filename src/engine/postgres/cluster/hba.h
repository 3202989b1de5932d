/* The files by which a server lets clients in. With cluster.work held. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_HBA_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_HBA_H

#include "engine/postgres/model/model.h"

struct buf;

#define PG_HBA_MAX (16 << 20)

/* HBA and ident files of a node that has none yet. */
int pg_access_first(struct pg_cluster *c, struct pg_node *n);
int pg_access_write(struct pg_cluster *c, struct pg_node *n, const struct engine_access *access, bool *ret_changed);
void pg_access_network(struct buf *b, const struct cidr *network); /* as the servers write it */
/* The rules for clients, and the map of certificates' subjects to users; NULL: nobody. */
void pg_hba_make(struct buf *b, const struct engine_access *access);
void pg_ident_make(struct buf *b, const struct pg_user *user, const struct engine_access *access);
/* Before a server starts: shut, unless it has all that was last in force. */
int pg_admit_begin(struct pg_cluster *c, struct pg_node *n);
bool pg_admit_is_shut(const struct pg_cluster *c, const struct pg_node *n); /* as its files say */
/* Writes the file that the server reads: shut, or with the rules. Without readable rules a node can still be shut. */
int pg_admit_set(struct pg_cluster *c, struct pg_node *n, bool shut);
/* Whether it shall lead its set, whatever it is. */
bool pg_node_leads(const struct pg_cluster *c, const struct pg_node *n);

#endif

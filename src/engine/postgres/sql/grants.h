/* Users, groups and grants of a set, through a connection to its primary's database postgres. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_GRANTS_H
#define STEWARD_ENGINE_POSTGRES_SQL_GRANTS_H

#include "engine/postgres/model/model.h"

#include <libpq-fe.h>

/* The role by which endpoints of federated instances come in the name of a user: a login of its own without a password,
 * by the socket alone, which is that user at once and can become nobody else. No two clusters have one of the same
 * name: a socket's directory may be another cluster's by the time that an endpoint goes there. */
void pg_shadow_name(const char *cluster_id, const char *user, char ret_name[64]);
/* Whatever the users had and shall not have any more: logins, passwords, memberships, sessions. Nothing that lies in a
 * database is needed for it. */
int pg_grants_revoke(PGconn *conn, const struct engine_access *access, const char **ret_why);
/* And whatever they shall have. Negative: not all of it. */
int pg_grants_give(struct pg_cluster *c, struct pg_node *primary, PGconn *conn, const struct engine_access *access,
                   const char **ret_why);

#endif

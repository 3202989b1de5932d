/* The databases' audit log. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_AUDIT_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_AUDIT_H

#include "engine/postgres/model/model.h"

#include <libpq-fe.h>

struct buf;

void pg_audit_take(struct pg_cluster *c, const struct engine_cluster *want);
/* Whether PostgreSQL of that version has pgaudit; and the lines of a node's configuration. */
int pg_audit_available(const struct engine *e, unsigned version, const char **ret_why);
void pg_audit_configure(struct buf *b, const struct pg_cluster *c);
/* Users who have classes of their own, or had; through a connection to a primary. */
int pg_audit_apply(PGconn *conn, const struct engine_access *access, bool on);

#endif

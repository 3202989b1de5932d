/* Tables that are copied out of a server. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_SQL_COPY_H
#define STEWARD_ENGINE_POSTGRES_SQL_SQL_COPY_H

#include "base/str.h"

#include <libpq-fe.h>

struct pg_copy;
struct pg_stop;

/* COPY ... TO STDOUT in pieces, for as long as it takes. 0: all of it was written, and the connection takes another
 * statement, as it does not after a failure. -EBADMSG: that cannot be copied; -ECONNRESET: the server has ended;
 * -ECANCELED: somebody has asked for the end; or what s->write() returned. */
must_check int pg_sql_copy(PGconn *conn, const char *sql, const struct pg_stop *stop, struct pg_copy *s);

#endif

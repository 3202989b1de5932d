/* What servers load at their start: steward.so and the extensions that advice needs. */
#ifndef STEWARD_ENGINE_POSTGRES_CLUSTER_MODULE_H
#define STEWARD_ENGINE_POSTGRES_CLUSTER_MODULE_H

#include "engine/postgres/model/model.h"

#include <libpq-fe.h>

struct buf;

void pg_modules_prepare(struct engine *e); /* at the engine's start; tells in the log what is missing */
bool pg_module_is_there(const struct engine *e, unsigned version);
void pg_module_missing(const struct engine *e, unsigned version, struct buf *b); /* in words; nothing: all is there */
void pg_module_configure(struct buf *b, const struct pg_cluster *c);             /* a node's lines */
/* Functions and extensions in the schema steward of the database postgres; through a connection to a primary there. */
int pg_module_apply(PGconn *conn);
/* Takes them away, before an upgrade. */
int pg_module_drop(PGconn *conn);
extern const char pg_module_version[];

#endif

/* Who is on the way in to a server. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_LOGINS_H
#define STEWARD_ENGINE_POSTGRES_HOST_LOGINS_H

#include "engine/postgres/model/model.h"

/* Ends who was about to log in under rules that are no more. */
void pg_logins_sweep(const struct pg_node *n);

#endif

/* What the running service does about its host: serve/serve.c calls it. */
#ifndef STEWARD_SERVE_HOSTS_H
#define STEWARD_SERVE_HOSTS_H

#include "base/config.h"
#include "call/service.h"

/* The engine is chosen: says who this host is. `node` is its id. */
must_check int host_start(const struct config *c, struct service *s, const char *node);
/* Where the inner port is to be, and what it shows. */
void host_inner(const struct config *c, struct arena *a, struct http_inner *ret_inner);
/* The ports are known: tells the others. */
must_check int host_tell(const struct config *c, struct arena *a, struct http_server *http);

#endif

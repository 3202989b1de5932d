/* Cloud providers that the running service can reach by tenants' roles. */
#ifndef STEWARD_SERVE_PROVIDERS_H
#define STEWARD_SERVE_PROVIDERS_H

#include "base/config.h"
#include "call/service.h"

/* Words on stderr where a setting is wrong. */
must_check int providers_start(const struct config *c, struct service *v);

#endif

/* Key services for encryption at rest. */
#ifndef STEWARD_SERVE_KEYS_H
#define STEWARD_SERVE_KEYS_H

#include "base/config.h"
#include "call/service.h"

/* After the providers. Words on stderr where a setting is wrong. */
must_check int keys_start(const struct config *c, struct service *v, struct arena *a);

#endif

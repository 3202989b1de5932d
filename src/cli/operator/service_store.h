/* The store of a service, for operators' commands that change what is in it. */
#ifndef STEWARD_CLI_OPERATOR_SERVICE_STORE_H
#define STEWARD_CLI_OPERATOR_SERVICE_STORE_H

#include "store/store.h"

/* Of a service that has been started, with its key, so that what is written there is signed. A message on stderr, and
 * negative, when it cannot be. */
must_check int service_store_open(struct arena *a, const char *data_dir, const char *url, struct store **ret_store);

#endif

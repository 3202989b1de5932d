/* Where the running service keeps backups of the databases, and export buckets. */
#ifndef STEWARD_SERVE_BACKUPS_H
#define STEWARD_SERVE_BACKUPS_H

#include "base/config.h"
#include "call/service.h"

/* Opens both as the configuration says; words on stderr where that cannot be. The arena lives as long as the
 * service. */
must_check int backups_open(const struct config *c, struct service *v, struct tx *reader, struct arena *a);

#endif

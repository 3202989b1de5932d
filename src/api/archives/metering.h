/* Archived rows into the meter. */
#ifndef STEWARD_API_ARCHIVES_METERING_H
#define STEWARD_API_ARCHIVES_METERING_H

#include "api/archives/archive.h"

/* In a write: the archive has so much from now on, as its run says. What is the same is not written again. */
must_check int archive_metered(struct tx *tx, struct arena *a, const struct cluster *cluster, const struct archive *x);
/* It has nothing any more. */
must_check int archive_meter_end(struct tx *tx, struct arena *a, const struct archive *x);

#endif

/* Snapshots into the meter. */
#ifndef STEWARD_API_SNAPSHOTS_METERING_H
#define STEWARD_API_SNAPSHOTS_METERING_H

#include "api/snapshots/snapshot.h"

/* In writes. A snapshot is kept as its document says; it is gone ("": all of the cluster); it was
 * taken; an export of these tables was made. */
must_check int snapshot_metered(struct tx *tx, struct arena *a, const struct snapshot *s);
must_check int snapshot_meter_end(struct tx *tx, struct arena *a, struct str cluster_id, struct str snapshot_id);
must_check int snapshot_meter_taken(struct tx *tx, struct arena *a, const struct backup_line *line,
                                    const struct snapshot *s);
must_check int export_meter(struct tx *tx, struct arena *a, const struct backup_line *line, struct str export_id,
                            const json_t *tables);

#endif

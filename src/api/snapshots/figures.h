/* What /metrics tells of backups: of this host's clusters, as its jobs have found them last. */
#ifndef STEWARD_API_SNAPSHOTS_FIGURES_H
#define STEWARD_API_SNAPSHOTS_FIGURES_H

#include "api/snapshots/snapshot.h"

/* Looked at each minute. */
struct backup_figures {
	uint64_t clusters; /* that shall have backups */
	uint64_t overdue;  /* of them, without a new snapshot for two periods of their schedules */
	uint64_t behind, broken, unproven, spool_bytes;
	int64_t lag_ms;
	int64_t taken_ms;  /* of the cluster whose last snapshot is oldest, when that was; 0: there is none */
	int64_t proven_ms; /* and of the one whose last proof is */
};

/* When the line's last snapshot was complete; 0: it has none. */
must_check int backup_taken(struct tx *tx, struct arena *a, const struct backup_line *line, int64_t *ret_ms);
/* Adds a line of this host. In a read. */
must_check int backup_figures_add(struct tx *tx, struct arena *a, const struct backup_line *line,
                                  struct backup_figures *f);
void backup_figures_show(const struct backup_figures *f);
/* With each sweep: all that lies in the repositories, snapshots of it that the catalogue does not have, and the
 * shortest window; negative: no cluster has one. */
void backup_figures_swept(uint64_t repository_bytes, uint64_t unknown, int64_t window_ms);
/* In a write: what backup_figures_load() reads after a restart. */
must_check int backup_figures_keep(struct tx *tx, struct arena *a, uint64_t repository_bytes, uint64_t unknown);
/* A part of /metrics. In a read, when the service starts: what the last sweep of any host has found, so
 * that nobody is told of empty repositories until the next. */
must_check int backup_figures_load(struct tx *tx, struct arena *a);
/* From any thread; touches no store. */
void backup_figures_write(struct buf *b, const struct service *s);

#endif

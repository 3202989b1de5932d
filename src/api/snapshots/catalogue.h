/* The catalogue: a line for each cluster that has or had backups. snapshots.h tells what its documents have. */
#ifndef STEWARD_API_SNAPSHOTS_CATALOGUE_H
#define STEWARD_API_SNAPSHOTS_CATALOGUE_H

#include "api/snapshots/line.h"

/* Who waits for somebody else's work looks again then. */
#define LOOK_AGAIN_MS 2000
/* What a project no longer has is swept for a while. */
#define RESIDUE_KIND "backup_residue"

extern const struct cluster_part backups_part;
extern const struct job_kinds snapshots_jobs;
/* In a write: the line is as the cluster is, and made where its backups are wanted. -ENOENT: it has none. */
must_check int backup_line_follow(struct tx *tx, struct arena *a, const struct cluster *cluster,
                                  struct backup_line *ret_line);
/* A snapshot begins the window of a cluster whose log is archived, where none has or will. In a write. */
must_check int window_ensure(struct tx *tx, struct arena *a, struct backup_line *line);
/* The one that should have begun it has failed: it is ensured once more later, by the line's clock. In a write. */
must_check int window_again(struct tx *tx, struct arena *a, struct backup_line *line, int64_t now);
must_check int window_look(struct tx *tx, struct arena *a, struct backup_line *line, int64_t now, int64_t *next);

#endif

/* From the repository back into the catalogue. */
#ifndef STEWARD_API_SNAPSHOTS_ADOPT_H
#define STEWARD_API_SNAPSHOTS_ADOPT_H

#include "api/snapshots/snapshot.h"

/* A snapshot that lies in a repository. */
struct found_snapshot {
	struct engine_source of;
	struct engine_snapshot made; /* by its manifests, where there is no record */
	const json_t *record;        /* or NULL: an earlier version wrote none */
};

/* What its record tells goes into `of`. */
void found_fill(struct found_snapshot *f);
/* In a write, for the operator's command: it comes back into the catalogue, for 30 days or longer, as it was meant to
 * be kept and the compliance policy asks for; as a copy, where the catalogue has it of another region. A line of its
 * cluster is made where there is none, if `makes_line`: as of a cluster that is gone. -ENOENT: there is none.
 * -EEXIST: the snapshot is there. */
must_check int snapshot_adopt(struct tx *tx, struct arena *a, const struct found_snapshot *f, bool makes_line);
/* In a write: the project of that id is there again, in that organization, under the name that a record of its backups
 * has (NULL: none). -EEXIST: it is there. */
must_check int project_adopt(struct tx *tx, struct arena *a, struct str org_id, struct str group_id,
                             const json_t *record, struct str *ret_name);
/* In a read: what the catalogue says of the snapshot, for its record. NUL-terminated. */
must_check int snapshot_record(struct tx *tx, struct arena *a, const struct backup_line *line, const struct snapshot *s,
                               struct str *ret_text);
/* What a snapshot's plan has of its positions. */
json_t *snapshot_sets_json(const struct engine_snapshot *made);

#endif

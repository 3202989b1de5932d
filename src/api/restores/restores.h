/* Restore jobs: how snapshots come back. */
#ifndef STEWARD_API_RESTORES_RESTORES_H
#define STEWARD_API_RESTORES_RESTORES_H

#include "api/restores/download.h"
#include "api/restores/job.h"
#include "api/snapshots/snapshots.h"

#define RESTORE_KIND "backup_restore"
#define EXPIRE_JOB "backup_expire" /* of a download; {"id"} */

struct segment;

struct restore {
	struct doc doc;
	json_t *body, *plan;
};

must_check int restore_get(struct tx *tx, struct arena *a, struct str id, struct restore *ret_restore);
must_check int restore_save(struct tx *tx, struct arena *a, struct restore *r);
bool restore_is_over(const struct restore *r);
/* Where the job's data can be read from: as it was asked for, then wherever else its snapshot lies. */
must_check int restore_sources(struct tx *tx, struct arena *a, const struct restore *r, struct engine_source **ret_list,
                               size_t *ret_count);
/* What is to be brought back, and where to. */
struct restore_wish {
	const char *delivery; /* "automated", "pointInTime", "download" */
	struct engine_point point;
	struct engine_source from;
	const struct snapshot *snapshot; /* or NULL */
	struct cluster *target;          /* NULL: a download */
	json_t *only;                    /* of its data; see piece.h; NULL: all of it */
	unsigned hours, downloads;       /* how long and how often it can be fetched; 0: DOWNLOAD_HOURS, always */
};

/* In a write of a call: 409 and 400 for a target that cannot take it; the target is being updated from now on. The body
 * has what the API shows of it, as the caller asked for it. */
must_check int restore_begin(struct call *c, const struct backup_line *line, const struct restore_wish *wish,
                             json_t *body, struct restore *ret_restore);
/* The cluster that a restore goes to: of that project, in which the caller must hold one of the row's roles. 404, 403,
 * with the problem written. */
must_check int restore_target(struct call *c, struct str group_id, struct str name, struct cluster *ret_cluster);
int expire_save(struct tx *tx, struct job_run *r);
struct restore restore_of(struct arena *a, const struct doc *d);
bool restore_is_download(const struct restore *r);
must_check int restore_find(struct call *c, const struct resource *r, struct doc *ret_doc);
must_check int restore_segments(struct call *c, struct segment **ret_list, size_t *ret_count);
/* The body's snapshotId, and the point that was found before the write, into the wish and the document of the job. */
must_check int restore_from_snapshot(struct call *c, struct restore_wish *wish, struct snapshot *s, json_t *body);
must_check int restore_from_point(struct call *c, struct restore_wish *wish, struct snapshot *s, json_t *body);
extern const struct snapshot_user restores_snapshot_user;

#endif

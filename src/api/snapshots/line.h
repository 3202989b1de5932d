/* The line of a cluster in the catalogue: a document that says whose backups they are, and where they lie. */
#ifndef STEWARD_API_SNAPSHOTS_LINE_H
#define STEWARD_API_SNAPSHOTS_LINE_H

#include "api/clusters/clusters.h"

#define LINE_KIND "backup_line"
#define CLOCK_JOB "backup_clock" /* looks at one line: what is due, what is over */
#define WINDOW_DAYS 7            /* of a new schedule */

struct resource;

struct backup_line {
	struct doc doc;
	json_t *body;
};

/* The path's {clusterName}, or {name} of a flex cluster: a cluster of the project that has had backups, or one that is
 * gone. -ENOENT. */
struct str backup_path_name(const struct call *c);
bool backup_path_is_flex(const struct call *c);
must_check int backup_line_load(struct call *c, struct backup_line *ret_line);
/* -ENOENT for what the path's cluster should have: the cluster itself is missing, or this of its own. */
must_check int backup_missing(struct call *c, const struct resource *r, struct str id);
must_check int backup_line_get(struct tx *tx, struct arena *a, struct str cluster_id, struct backup_line *ret_line);
must_check int backup_line_save(struct tx *tx, struct arena *a, struct backup_line *line);
/* Whether the cluster's backups are wanted: backupEnabled, or a flex cluster. */
bool backup_is_wanted(const struct cluster *cluster);
struct str cluster_incarnation(const struct cluster *cluster);
/* Which backups the engine is asked about: of the line's current data, in its own region. */
struct engine_source backup_source(const struct backup_line *line);
/* The subject of jobs that work on the cluster's backups, one after the other, beside its other jobs. */
struct str backup_subject(struct arena *a, struct str cluster_id);
/* An event of the service about the cluster of the line, with a detail unless `text` is empty. */
must_check int backup_event(struct tx *tx, struct arena *a, const char *type, const char *severity,
                            const struct backup_line *line, const char *name, struct str text);
/* In a write: adds a job on the line's host, after those of the cluster's backups that wait. */
must_check int backup_job_add(struct tx *tx, struct arena *a, const char *kind, const struct backup_line *line,
                              json_t *args);
/* From {"group", "cluster", "incarnation", "snapshot", "region"}. */
struct engine_source source_of(const json_t *from);
/* The line's schedule counts from now on: nothing of the past is due by it. */
void running_put(struct backup_line *line);
/* What the line says of its cluster becomes what the cluster is now. */
void backup_line_fill(struct backup_line *line, const struct cluster *cluster);
/* Whether the cluster's log is to be kept, too. */
bool backup_log_is_wanted(const struct cluster *cluster);
/* Whether the schedule is in force: a paused cluster has nothing new to take. */
bool backup_is_running(const struct backup_line *line);
/* Where copies were, a sweep looks also when the last of them is gone. Whether that is new. */
bool backup_region_note(struct backup_line *line, struct str region);
/* The schedule is looked at, at the latest then. In a write. */
must_check int schedule_look(struct tx *tx, struct arena *a, const struct backup_line *line, int64_t at_ms);

#endif

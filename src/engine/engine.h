/* What runs databases, as the sum of what an engine can do. Each capability has a header of its own with its types and
 * the table of its functions:
 *
 *   core.h        clusters: make, change, observe, remove; start and stop       every engine
 *   access.h      users, rights, networks                                       every engine
 *   advice.h      slow statements, indexes to make and to drop                  perhaps
 *   logs.h        the databases' logs                                           perhaps
 *   statistics.h  what is counted and measured                                  perhaps
 *   sampling.h    samples of nodes, databases and disks; or their history       one of the two
 *   disk.h        bounds on what clusters take of the disk                      perhaps
 *   backup.h      snapshots, the archive of the log, restores                   perhaps
 *   query.h       what the service puts into databases, and asks of them        perhaps
 *   index.h       indexes that are built beside running work                    perhaps
 *   lake.h        online archives: rows that leave tables for files             perhaps
 *   federation.h  SQL endpoints that read clusters, archives and stores         perhaps
 *   shapes.h      query shapes: what they took                                  perhaps
 *   sql.h         statements of people, as their own users                      perhaps
 *   activity.h    what sessions do, and what they wait for                      perhaps
 *   control.h     slowness and failures on demand, for tests                    perhaps
 *
 * A capability that is NULL is not offered, and the caller says so; one that is offered has all of its functions.
 * Nobody above this folder asks which engine it is: only what it offers. */
#ifndef STEWARD_ENGINE_ENGINE_H
#define STEWARD_ENGINE_ENGINE_H

#include "engine/access.h"
#include "engine/activity.h"
#include "engine/advice.h"
#include "engine/backup.h"
#include "engine/control.h"
#include "engine/core.h"
#include "engine/disk.h"
#include "engine/federation.h"
#include "engine/index.h"
#include "engine/lake.h"
#include "engine/logs.h"
#include "engine/query.h"
#include "engine/sampling.h"
#include "engine/shapes.h"
#include "engine/sql.h"
#include "engine/statistics.h"

struct engine_ops {
	const char *name;
	const struct engine_core_ops *core;
	const struct engine_access_ops *access;
	const struct engine_advice_ops *advice;
	const struct engine_log_ops *logs;
	const struct engine_statistics_ops *statistics;
	const struct engine_sampling_ops *sampling;
	const struct engine_history_ops *history;
	const struct engine_disk_ops *disk;
	const struct engine_backup_ops *backup;
	const struct engine_query_ops *query;
	const struct engine_index_ops *index;
	const struct engine_lake_ops *lake;
	const struct engine_federation_ops *federation;
	const struct engine_shapes_ops *shapes;
	const struct engine_sql_ops *sql;
	const struct engine_activity_ops *activity;
	const struct engine_control_ops *control;
};

/* By name; NULL when there is none. */
const struct engine_ops *engine_find(const char *name);
/* The one to use when none is named, and why that: the first of the list that can run here. */
const struct engine_ops *engine_default(bool real_clock, struct arena *a, const char **ret_why);
/* What is missing of the logs in a repository, whichever engine has put them there: see engine_backup_ops.check_log. */
must_check int engines_check_log(struct repository *r, void (*fault)(void *ctx, const char *words), void *ctx,
                                 struct repo_check *seen);
/* The name of the one that made the clusters of a data directory, by what lies there. */
const char *engine_of_data(const char *data_dir, struct arena *a);

#endif

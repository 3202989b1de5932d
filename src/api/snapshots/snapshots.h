/* Snapshots: what is kept of clusters, and when it is taken. All that other families may use of it.
 *
 * The catalogue has, for each cluster that has or had backups, a line (kind "backup_line", with the cluster's id),
 * which outlives the cluster:
 *
 *   {"clusterName", "groupId", "provider", "region", "shards", "host", "gone": false, "incarnation",
 *    "made": what each set's data is, "ended": [{"id", "at": ms}], "looked": ms, "archive": true, "windowDays": 7,
 *    "begun": the incarnation whose window was seen to begin, "goneAt": ms, "lostAt": ms, when it was last seen to end,
 *    "copied": [regions that have or had copies], "logCopies": [regions that the log is copied to],
 *    "logged": its log was archived then, under a policy, "taken": ms, when the last snapshot was complete,
 *    "running": ms, since when the schedule is in force, "overdue": true, "proven": ms, when a drill last succeeded,
 *    "drill": {"asked": ms, "snapshot", "pending": true, "failed": true},
 *    "rebuilt": true, where the line was made from what lay in the repository}
 *
 * Below it lie the snapshots and the restore jobs. A snapshot's document is what the API shows; beside it, where
 * documents have what never leaves, is its plan:
 *
 *   {"groupId", "clusterName", "incarnation", "region", "at": ms, "bytes", "stored", "retention": ms,
 *    "sets": [{"set", "timeline", "lsn": "1A2B", "bytes", "stored"}],
 *    "copies": [{"region", "provider", "expires": ms}], "copying": [regions that a copy is being made in],
 *    "proven": ms, "proof": {"files", "bytes", "relations"},
 *    "unproven": {"at": ms, "why"} (of the last drill, if it failed), "began": ms, "ended": ms,
 *    "units": of its position within its second, "standby": true, "doNotDelete": true,
 *    "dataKey": the id of the project's key that it is sealed with, "": none}
 *
 * What the engine keeps is found by these ids alone. The incarnation names the data: it is the cluster's id at first,
 * and a new one after each restore into it. */
#ifndef STEWARD_API_SNAPSHOTS_SNAPSHOTS_H
#define STEWARD_API_SNAPSHOTS_SNAPSHOTS_H

#include "api/snapshots/adopt.h"
#include "api/snapshots/catalogue.h"
#include "api/snapshots/drills.h"
#include "api/snapshots/figures.h"
#include "api/snapshots/jobs.h"
#include "api/snapshots/line.h"
#include "api/snapshots/metering.h"
#include "api/snapshots/points.h"
#include "api/snapshots/protection.h"
#include "api/snapshots/schedule.h"
#include "api/snapshots/snapshot.h"
#include "api/snapshots/take.h"
#include "api/snapshots/times.h"
#include "api/snapshots/timetable.h"

#endif

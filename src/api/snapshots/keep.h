/* What of a project's backups in one region is still wanted, as a pure function of the catalogue. */
#ifndef STEWARD_API_SNAPSHOTS_KEEP_H
#define STEWARD_API_SNAPSHOTS_KEEP_H

#include "base/arena.h"
#include "engine/backup.h"

/* A snapshot that is in the catalogue, in whichever state but failed. */
struct kept_snapshot {
	struct str cluster, id, incarnation;
	bool here;      /* it lies in the region, or is on its way there */
	bool completed; /* and has positions */
	int64_t at_ms;
	const struct engine_position *sets;
	size_t set_count;
	bool coming; /* it does not lie here yet, though it may be on its way */
};

/* The log of one incarnation of a cluster's data, in the region. */
struct kept_line {
	struct str cluster, incarnation;
	int64_t ended_ms;  /* 0: it goes on */
	int64_t window_ms; /* how far back any moment shall be restored; 0: the log is not wanted */
};

/* Kept: all snapshots that are here; and of each line the log since the newest completed snapshot that is not younger
 * than the window's start (all of it while there is none, and of sets that came later). In a region that only copies
 * lie in these count, and where there is none yet, those of the cluster's own region. A line that ended before the
 * window's start, or ended and has no completed snapshot, goes. */
void keep_make(struct arena *a, const struct kept_snapshot *snapshots, size_t snapshot_count,
               const struct kept_line *lines, size_t line_count, int64_t now_ms, struct repo_keep *ret_keep);

#endif

/* What the archive's own files share. The log of a set lies in the repository as a line (struct repo_line): segments,
 * histories of its timelines, and an index that tells which position was reached when. The index is text, one object
 * for each hour, and one for hour 0 that lists the hours:
 *
 *   H FROM TO STILL TIMELINE LSN END   a mark: its record ends at LSN and a commit follows it, both made between FROM
 *                                      and TO, the log is stored up to END; it stood still behind the mark until
 *                                      STILL, if that is not 0. Times are milliseconds, positions hexadecimal.
 *   S FROM TO STILL TIMELINE LSN END   the server was stopped: the record at LSN is the shutdown's checkpoint
 *   C FROM TO SET=TIMELINE/LSN/END...  one point of all sets; in the line of the set PG_COMMON alone
 *
 * and in hour 0:
 *
 *   identity NUMBER                    of the data, so that another's log is never added
 *   broken 0|1                         a gap was met, and no snapshot was taken since
 *   gap NUMBER                         the first segment behind the last gap, or the first of all
 *   listed NUMBER                      holes from this segment on are listed; before it nothing is expected. Where the
 *                                      line is missing an earlier version wrote the index, which listed none: the gap
 *   hole FROM TO                       segments from FROM on, before TO, are lost: it was told, and a snapshot was
 *                                      asked for. Whatever else is not there is missed
 *   back LSN                           the clock was put back far there: commits before have later times than those
 *                                      behind, so that no time is recovered to from a base on the other side
 *   set NAME                           in the line PG_COMMON: the cluster's sets
 *   hour HOUR LSN                      there is an object for that hour, whose first mark is at LSN
 */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_H

#include "base/buf.h"
#include "base/clock.h"
#include "engine/postgres/archive/archive_index.h"
#include "engine/postgres/archive/archive_spool.h"

#include <libpq-fe.h>

struct pg_log_copy;

#define PG_ARCHIVE_TICK_MS 1000 /* between two looks at a cluster whose log goes into the repository */

void pg_archive_configure(struct buf *b, const struct pg_cluster *c, const struct pg_node *n); /* a node's lines */

struct pg_archive_set {
	char name[64];
	unsigned number, term;
	uint64_t identity;
	struct pg_archive_node nodes[ENGINE_NODES_MAX];
	size_t node_count;
	size_t primary; /* of nodes; node_count: none */
	/* The worker's alone. */
	bool here; /* still a set of the cluster */
	bool loaded;
	struct pg_segments known;
	struct pg_index index;
	struct pg_marks marks; /* of the hour that is being written */
	int64_t hour;
	bool index_due, marks_due;
	int64_t marks_put_ms, still_put_ms;
	struct pg_chain chain;
	uint32_t histories; /* stored up to that timeline */
	PGconn *conn;
	pid_t conn_pid;
	bool clean;            /* nothing but the mark's own commit lies behind the last mark */
	uint64_t insert;       /* where the log stood after the last mark */
	struct timespec wrote; /* of the segment that is being written; 0: not looked at since it stood still */
	char writing[PG_WAL_NAME];
	bool stopped;
	/* The host's clock at the last look; up to where it shows times that it has shown before, because it was put
	 * back; and whether it was put back so far that moments begin anew. */
	struct clock_seen clock;
	int64_t twice_ms;
	bool anew;
	uint64_t next; /* number of the segment that is to be completed */
	/* With archive.lock. */
	uint64_t prove; /* the log is to be proven whole from this segment on; 0: it is not asked for */
	uint32_t timeline;
	uint64_t stored; /* without a gap up to here; 0: nothing */
	uint64_t gap;    /* of the index */
	int64_t stored_ms, moved_ms;
	struct pg_mark last;   /* the newest that is in the repository's index */
	uint64_t marked;       /* the newest of all */
	_Atomic bool mark_due; /* somebody waits for a mark, also where the log stands still */
};

struct pg_archive {
	pthread_mutex_t lock;
	bool working, urgent;
	bool on; /* at the last look */
	int64_t due_ms, began_ms;
	int64_t spool_ms; /* when the spools were looked at beside the worker */
	struct pg_log_copy *copies[ENGINE_COPIES_MAX];
	size_t copy_count;
	char group[25], region[48], incarnation[25];
	struct pg_archive_set *sets[PG_SETS_MAX];
	size_t set_count;
	struct repository *repository;
	struct pg_index common;
	bool common_loaded;
	struct buf commons; /* text of the hour that is being written */
	int64_t common_hour, common_ms;
	struct pg_common *pending; /* made, but not all of their log is stored; with the lock */
	size_t pending_count;
	/* For whoever asks. */
	int64_t last_ms, away_ms;
	uint64_t spool_bytes;
	bool crowded, told; /* more than half of what may wait does; and somebody has asked since */
	bool broken, full;
	bool based;   /* a snapshot has begun another window */
	bool proving; /* whether all is there was asked, and not found out yet */
	char why[300];
};

bool pg_archives(const struct pg_cluster *c); /* whether its log goes into the repository */
/* One look at a cluster, by the only one who works on it. */
void pg_archive_tick(struct pg_cluster *c, struct pg_archive *a);
void pg_archive_forget(struct pg_archive *a, bool all); /* sets that are not there any more, or all */
/* A record that marks a place, and a commit behind it, on a connection to a primary; ret_insert: where the log stood
 * then. */
int pg_mark_make(PGconn *conn, struct pg_mark *ret_mark, uint64_t *ret_insert);

#endif

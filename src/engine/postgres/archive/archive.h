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
 *   set NAME                           in the line PG_COMMON: the cluster's sets
 *   hour HOUR LSN                      there is an object for that hour, whose first mark is at LSN
 */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_H

#include "engine/postgres/postgres.h"

#include "base/buf.h"

#define PG_SEGMENT (4ull << 20) /* bytes of a segment, as pool.c makes the data directories */
#define PG_WAL_NAME 48
#define PG_COMMON "_cluster"
#define PG_INDEX_MAX (16u << 20)
#define PG_HOUR_MS 3600000

struct pg_mark {
	char kind;
	int64_t from_ms, to_ms, still_ms;
	uint32_t timeline;
	uint64_t lsn, end;
};

struct pg_marks {
	struct pg_mark *list;
	size_t count, room;
};

/* One point of all sets. */
struct pg_common {
	int64_t from_ms, to_ms;
	size_t count;
	struct pg_common_set {
		char name[64];
		uint32_t timeline;
		uint64_t lsn, end;
	} sets[PG_SETS_MAX];
};

/* Segments that are not there: from the one number on, before the other. */
struct pg_hole {
	uint64_t from, to;
};

struct pg_index {
	uint64_t identity;
	bool broken;
	uint64_t gap;    /* number of the first segment behind the last gap, or of all */
	uint64_t listed; /* what is missing before this one was missing always, or is not known to have been there */
	struct pg_hole *holes; /* that are known, sorted, apart from each other */
	size_t hole_count;
	struct pg_index_hour {
		int64_t hour;
		uint64_t lsn;
	} * hours;
	size_t hour_count;
	char (*sets)[64];
	size_t set_count;
};

/* A stored segment. */
struct pg_segment {
	uint64_t number;
	uint32_t timeline;
	bool complete;
};

struct pg_segments {
	struct pg_segment *list; /* by number, then timeline */
	size_t count, room;
};

/* The timelines that lead to one, oldest first, and where each holds: from `begin`, before `end`. */
struct pg_chain {
	struct pg_chain_part {
		uint32_t timeline;
		uint64_t begin, end;
	} * parts;
	size_t count;
};

/* --- archive_index.c: names, texts, lists; nothing here touches a disk */
enum pg_wal_kind { WAL_NONE, WAL_SEGMENT, WAL_PARTIAL, WAL_HISTORY };
enum pg_wal_kind pg_wal_parse(const char *name, uint32_t *ret_timeline, uint64_t *ret_number);
void pg_wal_name(uint32_t timeline, uint64_t number, bool complete, char ret_name[PG_WAL_NAME]);
void pg_marks_add(struct pg_marks *m, const struct pg_mark *mark);
void pg_marks_parse(struct pg_marks *m, struct str text); /* adds; lines that it does not know are left out */
void pg_mark_write(struct buf *b, const struct pg_mark *m);
bool pg_common_parse(struct str line, struct pg_common *ret_common);
void pg_common_write(struct buf *b, const struct pg_common *m);
void pg_index_parse(struct pg_index *x, struct str text);
void pg_index_write(struct buf *b, const struct pg_index *x);
void pg_index_hour(struct pg_index *x, int64_t hour, uint64_t lsn);
void pg_index_free(struct pg_index *x);
void pg_index_hole(struct pg_index *x, uint64_t number);       /* that segment is lost */
void pg_index_holes_drop(struct pg_index *x, uint64_t before); /* those that end before nobody asks for any more */
/* A timeline begins in that segment: what is missing from there on is missing anew. */
void pg_index_holes_cut(struct pg_index *x, uint64_t fork);
uint64_t pg_index_expects(const struct pg_index *x, uint64_t number); /* the first from there on that is in no hole */
void pg_segments_add(struct pg_segments *s, uint32_t timeline, uint64_t number, bool complete);
const struct pg_segment *pg_segments_find(const struct pg_segments *s, uint32_t timeline, uint64_t number);
/* A record that is the first of a page begins behind the page's header, and log that ends with the page before ends
 * where the page begins: nothing lies between, and both become the page's beginning. Positions are compared so, or a
 * server that was stopped at a boundary seems to lack log. */
uint64_t pg_lsn_plain(uint64_t lsn);
/* From the text of a timeline's history; NULL: it is the first. */
void pg_chain_parse(struct pg_chain *c, uint32_t timeline, const char *history);
/* The part that a segment is read from; NULL: none. */
const struct pg_chain_part *pg_chain_part(const struct pg_chain *c, uint64_t number);
/* The first stretch of segments from `from` on, before `to`, that should be there as a whole and is not. Takes as long
 * as there are segments, however far apart their numbers are. */
bool pg_hole_find(const struct pg_segments *s, const struct pg_chain *c, const struct pg_index *x, uint64_t from,
                  uint64_t to, struct pg_hole *ret_hole);
/* Whether the position, reached on that timeline, is on the way to the chain's last. */
bool pg_chain_has(const struct pg_chain *c, uint32_t timeline, uint64_t lsn);

/* --- archive_spool.c: log that lies on this host */
struct pg_archive_node { /* what is needed of a node, copied: it may go away meanwhile */
	char name[64], run[PG_PATH];
	unsigned port;
	pid_t pid;
};
struct pg_archive_set;
/* Whether a file has the bytes of that segment and database; and whether it has all of them. */
bool pg_wal_is(const char *directory, const char *name, uint64_t identity);
bool pg_wal_is_complete(const char *directory, const char *name, uint64_t identity);
int pg_wal_read(const char *directory, const char *name, char **ret_bytes, size_t *ret_n);
/* Names of a directory, sorted, on the heap; freed with pg_names_free(). None of one that is not there; negative: it
 * cannot be told for want of descriptors or memory, and there is nothing to free. */
must_check int pg_names_list(const char *directory, char ***ret_names, size_t *ret_count);
void pg_names_free(char **names, size_t count);
void pg_spool_dir(const struct pg_cluster *c, const struct pg_node *n, unsigned term, char ret_path[PG_PATH]);
/* Bytes in all spools of a cluster; `discard`: and away with them. */
uint64_t pg_spool_bytes(const struct pg_cluster *c, bool discard);
struct pg_archive;
/* More waits for the repository than may: the window is given up rather than the databases' disk. Not before somebody
 * was told that it comes to that, unless it comes too fast. Asks no repository, and may be called beside the worker. */
void pg_spool_bound(struct pg_cluster *c, struct pg_archive *a);

/* --- archive.c: what is known of a set whose log is being stored */
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

/* --- archive_copy.c: the log in another region, from the repository of the first */
struct pg_copied { /* of one set's line, or of PG_COMMON: how far the copy has come */
	char name[64];
	bool listed;
	int64_t listed_ms;
	uint32_t timeline;
	uint64_t next;   /* number of the segment that is to be copied as a whole */
	uint64_t stored; /* of the first */
	struct pg_mark last;
	char *index; /* text as it was put last */
	int64_t hour;
};

struct pg_log_copy {
	char region[48];
	const void *store; /* that it lies in: see repositories_store() */
	/* With archive.lock. */
	bool wanted, working;
	int64_t due_ms, began_ms;
	int64_t last_ms; /* when it was as far as the first; 0: never */
	char why[300];
	/* The worker's alone. */
	char incarnation[25];
	int64_t left_ms; /* when the archive was seen to have gone on with another incarnation */
	struct pg_copied *sets;
	size_t set_count;
};
/* One look, by the only one who works on it. */
void pg_copy_tick(struct pg_cluster *c, struct pg_archive *a, struct pg_log_copy *k);
void pg_copy_free(struct pg_log_copy *k);

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
/* Whether the nodes' directories are still those of the data whose log is being stored: asked after reading there. A
 * restore says that they are not before it changes them. */
bool pg_archive_is_same(struct pg_cluster *c, const struct pg_archive *a);
/* Puts what was added to the index when it is time, or now. */
int pg_archive_index(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, bool now);
/* Puts what lies in the spools into the repository, a bounded part at a time. *ret_more: there is more. */
int pg_spools_move(struct pg_cluster *c, struct pg_archive *a, bool *ret_more);
/* Completes the set's log from any node's directory, up to the segment before `current`. */
int pg_archive_mend(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, uint64_t current);
int pg_archive_put(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, const char *name,
                   const void *bytes, size_t n);
/* The line of a set, of names that live as long as the arguments. */
struct repo_line pg_archive_line(const struct pg_cluster *c, const struct pg_archive *a, const char *set);
/* A record that marks a place, and a commit behind it, on a connection to a primary; ret_insert: where the log stood
 * then. */
int pg_mark_make(PGconn *conn, struct pg_mark *ret_mark, uint64_t *ret_insert);

/* --- archive_prove.c */
/* Looks whether all is there, of the sets of which it was asked for (pg_backup_prove_log()). */
int pg_archive_prove(struct pg_cluster *c, struct pg_archive *a);
/* What was missing is mended or noted, unless it was asked again since. */
void pg_archive_proven(struct pg_cluster *c, struct pg_archive *a);

/* --- archive_common.c */
void pg_common_tick(struct pg_cluster *c, struct pg_archive *a); /* a point of all sets, when it is time */
int pg_common_store(struct pg_cluster *c, struct pg_archive *a);
void pg_common_tell(const struct pg_common *m, struct arena *a, struct engine_checkpoint *ret_checkpoint);

/* --- archive_read.c */
/* One set's archive, as it lies in the repository. */
struct pg_view {
	struct repository *repository;
	struct repo_line line;
	struct pg_segments known;
	uint32_t newest;
	struct pg_chain chain; /* to the newest timeline */
	struct pg_index index;
	struct pg_marks marks; /* of one hour */
	int64_t hour;
	int64_t left_ms; /* when the newest mark was made that was met and lies behind a fork */
};
/* `of` and `set` outlive it. Without segments: the index alone. */
int pg_view_open(struct engine *e, const struct engine_source *of, const char *set, bool segments, struct pg_view *v);
void pg_view_close(struct pg_view *v);
int pg_view_chain(struct pg_view *v, uint32_t timeline, struct pg_chain *chain); /* that leads to the timeline */
/* 2: all of the segment is there, 1: its beginning, 0: nothing. */
int pg_view_segment(const struct pg_view *v, const struct pg_chain *chain, uint64_t number);
/* What the host of a cluster knows of a set's archive; false: it is not this one. */
struct pg_archive_now {
	struct pg_mark last; /* with how long the log has stood still behind it */
	uint32_t timeline;
	uint64_t stored;
};
bool pg_archive_now(struct engine *e, const struct engine_source *of, const char *set, struct pg_archive_now *ret_now);

#endif

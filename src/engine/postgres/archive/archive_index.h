/* Names, texts and lists of the archive. Nothing here touches a disk. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_INDEX_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_INDEX_H

#include "engine/postgres/model/model.h"

struct buf;

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
	uint64_t *backs; /* positions at which the clock was put back far, sorted */
	size_t back_count;
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
/* The clock was put back far at that position. */
void pg_index_back(struct pg_index *x, uint64_t lsn);
/* A timeline begins at that position: what lay behind it never was. */
void pg_index_backs_cut(struct pg_index *x, uint64_t fork);
/* The first position behind `from`, up to and with `to`, at which the clock was put back far; 0: there is none. */
uint64_t pg_index_back_find(const struct pg_index *x, uint64_t from, uint64_t to);
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

#endif

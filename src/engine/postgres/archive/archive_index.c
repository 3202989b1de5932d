/* Names of segments, the index's texts, and which timeline leads where: see archive.h. */
#include "engine/postgres/archive/archive_index.h"

#include "base/arena.h"
#include "base/buf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PER_ID (0x100000000ull / PG_SEGMENT)
/* Of the log, as PostgreSQL is built: a page, its header, and that of a segment's first page. */
#define PAGE 8192
#define PAGE_HEADER 24
#define LONG_HEADER 40
#define HOLES_MAX 1000 /* that are told from each other */
#define BACKS_MAX 100  /* the same of clocks that were put back */

/* --- names */

static bool hex_take(const char *text, size_t digits, uint64_t *ret_value)
{
	uint64_t value = 0;
	for (size_t i = 0; i < digits; i++) {
		char c = text[i];
		int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
		if (digit < 0)
			return false;
		value = value << 4 | (uint64_t)digit;
	}
	*ret_value = value;
	return true;
}

enum pg_wal_kind pg_wal_parse(const char *name, uint32_t *ret_timeline, uint64_t *ret_number)
{
	uint64_t timeline, high, low;
	if (!hex_take(name, 8, &timeline) || timeline == 0)
		return WAL_NONE;
	*ret_timeline = (uint32_t)timeline;
	*ret_number = 0;
	if (strcmp(name + 8, ".history") == 0)
		return WAL_HISTORY;
	if (!hex_take(name + 8, 8, &high) || !hex_take(name + 16, 8, &low) || low >= PER_ID)
		return WAL_NONE;
	*ret_number = high * PER_ID + low;
	return name[24] == 0 ? WAL_SEGMENT : strcmp(name + 24, ".partial") == 0 ? WAL_PARTIAL : WAL_NONE;
}

void pg_wal_name(uint32_t timeline, uint64_t number, bool complete, char ret_name[PG_WAL_NAME])
{
	snprintf(ret_name, PG_WAL_NAME, "%08X%08X%08X%s", timeline, (unsigned)(number / PER_ID),
	         (unsigned)(number % PER_ID), complete ? "" : ".partial");
}

/* --- marks */

void pg_marks_add(struct pg_marks *m, const struct pg_mark *mark)
{
	if (m->count == m->room) {
		m->room = m->room ? m->room * 2 : 64;
		m->list = must_realloc(m->list, m->room * sizeof *m->list);
	}
	m->list[m->count++] = *mark;
}

static bool line_take(struct str *rest, char *ret_line, size_t size)
{
	struct str line;
	if (rest->n == 0)
		return false;
	str_cut(*rest, '\n', &line, rest);
	snprintf(ret_line, size, "%.*s", (int)(line.n < size ? line.n : size - 1), line.p);
	return true;
}

void pg_marks_parse(struct pg_marks *m, struct str text)
{
	char line[256];
	while (line_take(&text, line, sizeof line)) {
		struct pg_mark k = {0};
		if (sscanf(line, "%c %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNu32 " %" SCNx64 " %" SCNx64, &k.kind,
		           &k.from_ms, &k.to_ms, &k.still_ms, &k.timeline, &k.lsn, &k.end) == 7 &&
		    (k.kind == 'H' || k.kind == 'S'))
			pg_marks_add(m, &k);
	}
}

void pg_mark_write(struct buf *b, const struct pg_mark *m)
{
	buf_printf(b, "%c %" PRId64 " %" PRId64 " %" PRId64 " %" PRIu32 " %" PRIx64 " %" PRIx64 "\n", m->kind,
	           m->from_ms, m->to_ms, m->still_ms, m->timeline, m->lsn, m->end);
}

bool pg_common_parse(struct str line, struct pg_common *ret_common)
{
	char word[160];
	int used = 0;
	struct str rest = line, part;
	snprintf(word, sizeof word, "%.*s", (int)(line.n < 100 ? line.n : 100), line.p);
	*ret_common = (struct pg_common){0};
	if (sscanf(word, "C %" SCNd64 " %" SCNd64 " %n", &ret_common->from_ms, &ret_common->to_ms, &used) != 2 ||
	    used <= 0)
		return false;
	rest = (struct str){line.p + used, line.n - (size_t)used};
	while (rest.n) {
		struct pg_common_set *s = &ret_common->sets[ret_common->count];
		str_cut(rest, ' ', &part, &rest);
		snprintf(word, sizeof word, "%.*s", (int)(part.n < 150 ? part.n : 150), part.p);
		if (ret_common->count == PG_SETS_MAX || sscanf(word, "%63[^=]=%" SCNu32 "/%" SCNx64 "/%" SCNx64,
		                                               s->name, &s->timeline, &s->lsn, &s->end) != 4)
			return false;
		ret_common->count++;
	}
	return ret_common->count > 0;
}

void pg_common_write(struct buf *b, const struct pg_common *m)
{
	buf_printf(b, "C %" PRId64 " %" PRId64, m->from_ms, m->to_ms);
	for (size_t i = 0; i < m->count; i++)
		buf_printf(b, " %s=%" PRIu32 "/%" PRIx64 "/%" PRIx64, m->sets[i].name, m->sets[i].timeline,
		           m->sets[i].lsn, m->sets[i].end);
	buf_c(b, '\n');
}

/* --- the list of the hours */

void pg_index_hour(struct pg_index *x, int64_t hour, uint64_t lsn)
{
	x->hours = must_realloc(x->hours, (x->hour_count + 1) * sizeof *x->hours);
	x->hours[x->hour_count++] = (struct pg_index_hour){hour, lsn};
}

static void hole_insert(struct pg_index *x, size_t at, struct pg_hole hole)
{
	x->holes = must_realloc(x->holes, (x->hole_count + 1) * sizeof *x->holes);
	memmove(&x->holes[at + 1], &x->holes[at], (x->hole_count - at) * sizeof *x->holes);
	x->holes[at] = hole;
	x->hole_count++;
}

/* In place of those that it meets. */
static void hole_add(struct pg_index *x, struct pg_hole hole)
{
	size_t kept = 0, at = 0;
	for (size_t i = 0; i < x->hole_count; i++) {
		const struct pg_hole h = x->holes[i];
		if (h.to >= hole.from && h.from <= hole.to) {
			hole.from = h.from < hole.from ? h.from : hole.from;
			hole.to = h.to > hole.to ? h.to : hole.to;
		} else {
			x->holes[kept++] = h;
		}
	}
	x->hole_count = kept;
	while (at < kept && x->holes[at].from < hole.from)
		at++;
	hole_insert(x, at, hole);
	if (x->hole_count > HOLES_MAX) { /* what lies between the oldest two is not missed any more */
		x->holes[1].from = x->holes[0].from;
		memmove(x->holes, x->holes + 1, --x->hole_count * sizeof *x->holes);
	}
}

void pg_index_hole(struct pg_index *x, uint64_t number)
{
	hole_add(x, (struct pg_hole){number, number + 1});
}

void pg_index_holes_drop(struct pg_index *x, uint64_t before)
{
	size_t kept = 0;
	for (size_t i = 0; i < x->hole_count; i++)
		if (x->holes[i].to > before)
			x->holes[kept++] = x->holes[i];
	x->hole_count = kept;
}

void pg_index_holes_cut(struct pg_index *x, uint64_t fork)
{
	size_t kept = 0;
	for (size_t i = 0; i < x->hole_count; i++) {
		struct pg_hole h = x->holes[i];
		h.to = h.to < fork ? h.to : fork;
		if (h.from < h.to)
			x->holes[kept++] = h;
	}
	x->hole_count = kept;
	x->listed = x->listed < fork ? x->listed : fork;
}

uint64_t pg_index_expects(const struct pg_index *x, uint64_t number)
{
	number = number < x->listed ? x->listed : number;
	for (size_t i = 0; i < x->hole_count; i++)
		if (x->holes[i].from <= number && number < x->holes[i].to)
			number = x->holes[i].to;
	return number;
}

void pg_index_back(struct pg_index *x, uint64_t lsn)
{
	if (x->back_count && x->backs[x->back_count - 1] >= lsn)
		return;
	x->backs = must_realloc(x->backs, (x->back_count + 1) * sizeof *x->backs);
	x->backs[x->back_count++] = lsn;
	if (x->back_count > BACKS_MAX)
		memmove(x->backs, x->backs + 1, --x->back_count * sizeof *x->backs);
}

void pg_index_backs_cut(struct pg_index *x, uint64_t fork)
{
	bool any = false;
	while (x->back_count && x->backs[x->back_count - 1] > fork) {
		x->back_count--;
		any = true;
	}
	if (any) /* times are those of before from there on */
		pg_index_back(x, fork);
}

uint64_t pg_index_back_find(const struct pg_index *x, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < x->back_count; i++)
		if (x->backs[i] > from && x->backs[i] <= to)
			return x->backs[i];
	return 0;
}

void pg_index_parse(struct pg_index *x, struct str text)
{
	char line[256], name[64];
	bool listed = false;
	while (line_take(&text, line, sizeof line)) {
		int64_t hour;
		uint64_t lsn, end;
		int broken;
		if (sscanf(line, "hour %" SCNd64 " %" SCNx64, &hour, &lsn) == 2)
			pg_index_hour(x, hour, lsn);
		else if (sscanf(line, "identity %" SCNu64, &lsn) == 1)
			x->identity = lsn;
		else if (sscanf(line, "gap %" SCNu64, &lsn) == 1)
			x->gap = lsn;
		else if (sscanf(line, "listed %" SCNu64, &x->listed) == 1)
			listed = true;
		else if (sscanf(line, "hole %" SCNu64 " %" SCNu64, &lsn, &end) == 2 && lsn < end)
			hole_add(x, (struct pg_hole){lsn, end});
		else if (sscanf(line, "back %" SCNx64, &lsn) == 1)
			pg_index_back(x, lsn);
		else if (sscanf(line, "broken %d", &broken) == 1)
			x->broken = broken != 0;
		else if (sscanf(line, "set %63s", name) == 1) {
			x->sets = must_realloc(x->sets, (x->set_count + 1) * sizeof *x->sets);
			memcpy(x->sets[x->set_count++], name, sizeof name);
		}
	}
	if (!listed)
		x->listed = x->gap;
}

void pg_index_write(struct buf *b, const struct pg_index *x)
{
	buf_printf(b, "identity %" PRIu64 "\nbroken %d\ngap %" PRIu64 "\nlisted %" PRIu64 "\n", x->identity, x->broken,
	           x->gap, x->listed);
	for (size_t i = 0; i < x->hole_count; i++)
		buf_printf(b, "hole %" PRIu64 " %" PRIu64 "\n", x->holes[i].from, x->holes[i].to);
	for (size_t i = 0; i < x->back_count; i++)
		buf_printf(b, "back %" PRIx64 "\n", x->backs[i]);
	for (size_t i = 0; i < x->set_count; i++)
		buf_printf(b, "set %s\n", x->sets[i]);
	for (size_t i = 0; i < x->hour_count; i++)
		buf_printf(b, "hour %" PRId64 " %" PRIx64 "\n", x->hours[i].hour, x->hours[i].lsn);
}

void pg_index_free(struct pg_index *x)
{
	free(x->hours);
	free(x->sets);
	free(x->holes);
	free(x->backs);
	*x = (struct pg_index){0};
}

/* --- segments */

/* The first that is not before it. */
static size_t segment_place(const struct pg_segments *s, uint32_t timeline, uint64_t number)
{
	size_t from = 0, to = s->count;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct pg_segment *g = &s->list[middle];
		if (g->number < number || (g->number == number && g->timeline < timeline))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

const struct pg_segment *pg_segments_find(const struct pg_segments *s, uint32_t timeline, uint64_t number)
{
	size_t at = segment_place(s, timeline, number);
	return at < s->count && s->list[at].number == number && s->list[at].timeline == timeline ? &s->list[at] : NULL;
}

void pg_segments_add(struct pg_segments *s, uint32_t timeline, uint64_t number, bool complete)
{
	size_t at = segment_place(s, timeline, number);
	if (at < s->count && s->list[at].number == number && s->list[at].timeline == timeline) {
		s->list[at].complete |= complete;
		return;
	}
	if (s->count == s->room) {
		s->room = s->room ? s->room * 2 : 256;
		s->list = must_realloc(s->list, s->room * sizeof *s->list);
	}
	memmove(&s->list[at + 1], &s->list[at], (s->count - at) * sizeof *s->list);
	s->list[at] = (struct pg_segment){number, timeline, complete};
	s->count++;
}

/* --- timelines */

static void chain_add(struct pg_chain *c, uint32_t timeline, uint64_t begin)
{
	c->parts = must_realloc(c->parts, (c->count + 1) * sizeof *c->parts);
	c->parts[c->count++] = (struct pg_chain_part){timeline, begin, UINT64_MAX};
}

void pg_chain_parse(struct pg_chain *c, uint32_t timeline, const char *history)
{
	struct str rest = str_of(history ? history : "");
	uint64_t begin = 0;
	char line[256];
	c->count = 0;
	while (line_take(&rest, line, sizeof line)) {
		uint32_t older, high, low, last = c->count ? c->parts[c->count - 1].timeline : 0;
		if (sscanf(line, "%" SCNu32 " %" SCNx32 "/%" SCNx32, &older, &high, &low) != 3 || older >= timeline)
			continue;
		uint64_t end = (uint64_t)high << 32 | low;
		/* A file that goes backwards is none of the server's: it would make the parts of the chain overlap. */
		if (older <= last || end < begin)
			continue;
		chain_add(c, older, begin);
		begin = c->parts[c->count - 1].end = end;
	}
	chain_add(c, timeline, begin);
}

/* As PostgreSQL looks for it: the newest timeline that had begun in that segment. */
const struct pg_chain_part *pg_chain_part(const struct pg_chain *c, uint64_t number)
{
	for (size_t i = c->count; i > 0; i--)
		if (c->parts[i - 1].begin / PG_SEGMENT <= number)
			return &c->parts[i - 1];
	return NULL;
}

/* Whether the segment is there as a whole, on the timeline that it is read from. */
static bool is_there(const struct pg_segments *s, const struct pg_chain *c, uint64_t number)
{
	const struct pg_chain_part *part = pg_chain_part(c, number);
	const struct pg_segment *g = part ? pg_segments_find(s, part->timeline, number) : NULL;
	return g && g->complete;
}

bool pg_hole_find(const struct pg_segments *s, const struct pg_chain *c, const struct pg_index *x, uint64_t from,
                  uint64_t to, struct pg_hole *ret_hole)
{
	uint64_t at = pg_index_expects(x, from), end = to;
	while (at < to && is_there(s, c, at))
		at = pg_index_expects(x, at + 1);
	if (at >= to)
		return false;
	for (size_t i = segment_place(s, 0, at + 1); i < s->count && s->list[i].number < end; i++)
		if (is_there(s, c, s->list[i].number))
			end = s->list[i].number;
	for (size_t i = 0; i < x->hole_count; i++)
		if (x->holes[i].from > at && x->holes[i].from < end)
			end = x->holes[i].from;
	*ret_hole = (struct pg_hole){at, end};
	return true;
}

uint64_t pg_lsn_plain(uint64_t lsn)
{
	if (lsn % PG_SEGMENT == LONG_HEADER)
		return lsn - LONG_HEADER;
	return lsn % PAGE == PAGE_HEADER ? lsn - PAGE_HEADER : lsn;
}

bool pg_chain_has(const struct pg_chain *c, uint32_t timeline, uint64_t lsn)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->parts[i].timeline == timeline)
			return pg_lsn_plain(lsn) <= pg_lsn_plain(c->parts[i].end);
	return false;
}

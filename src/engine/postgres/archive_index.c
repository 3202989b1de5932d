/* Names of segments, the index's texts, and which timeline leads where: see archive.h. */
#include "engine/postgres/archive.h"

#include "base/arena.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PER_ID (0x100000000ull / PG_SEGMENT)
/* Of the log, as PostgreSQL is built: a page, its header, and that of a segment's first page. */
#define PAGE 8192
#define PAGE_HEADER 24
#define LONG_HEADER 40

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

void pg_index_parse(struct pg_index *x, struct str text)
{
	char line[256], name[64];
	while (line_take(&text, line, sizeof line)) {
		int64_t hour;
		uint64_t lsn;
		int broken;
		if (sscanf(line, "hour %" SCNd64 " %" SCNx64, &hour, &lsn) == 2)
			pg_index_hour(x, hour, lsn);
		else if (sscanf(line, "identity %" SCNu64, &lsn) == 1)
			x->identity = lsn;
		else if (sscanf(line, "gap %" SCNu64, &lsn) == 1)
			x->gap = lsn;
		else if (sscanf(line, "broken %d", &broken) == 1)
			x->broken = broken != 0;
		else if (sscanf(line, "set %63s", name) == 1) {
			x->sets = must_realloc(x->sets, (x->set_count + 1) * sizeof *x->sets);
			memcpy(x->sets[x->set_count++], name, sizeof name);
		}
	}
}

void pg_index_write(struct buf *b, const struct pg_index *x)
{
	buf_printf(b, "identity %" PRIu64 "\nbroken %d\ngap %" PRIu64 "\n", x->identity, x->broken, x->gap);
	for (size_t i = 0; i < x->set_count; i++)
		buf_printf(b, "set %s\n", x->sets[i]);
	for (size_t i = 0; i < x->hour_count; i++)
		buf_printf(b, "hour %" PRId64 " %" PRIx64 "\n", x->hours[i].hour, x->hours[i].lsn);
}

void pg_index_free(struct pg_index *x)
{
	free(x->hours);
	free(x->sets);
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

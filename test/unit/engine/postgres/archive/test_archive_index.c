/* What is missing of a log, told from the names of its segments, its timelines and what was noted: held against a model
 * that asks of each segment by itself. And positions around each boundary of the log. */
#include "base/buf.h"
#include "check.h"
#include "engine/postgres/archive/archive_index.h"

#include <stdlib.h>

#define NUMBERS 24
#define ROUNDS 4000

static unsigned dice(unsigned sides)
{
	return (unsigned)rand() % sides;
}

/* --- the index */

static bool is_noted(const struct pg_index *x, uint64_t number)
{
	return pg_index_expects(x, number) != number;
}

static void index_texts(void)
{
	struct pg_index x = {0}, y = {0};
	struct buf b = {0};
	x.gap = 9;
	x.listed = 3;
	for (const uint64_t *n = (const uint64_t[]){7, 5, 6, 20, 0}; *n; n++)
		pg_index_hole(&x, *n);
	CHECK(x.hole_count == 2 && x.holes[0].from == 5 && x.holes[0].to == 8 && x.holes[1].from == 20);
	pg_index_write(&b, &x);
	pg_index_parse(&y, buf_view(&b));
	CHECK(y.hole_count == 2 && y.listed == 3 && y.gap == 9 && y.holes[0].to == 8 && y.holes[1].to == 21);
	CHECK(is_noted(&y, 2) && !is_noted(&y, 3) && is_noted(&y, 7) && !is_noted(&y, 8) && is_noted(&y, 20));
	/* What a timeline begins with is missing anew; what nobody needs is forgotten. */
	pg_index_holes_cut(&y, 6);
	CHECK(y.hole_count == 1 && y.holes[0].to == 6 && y.listed == 3);
	pg_index_holes_drop(&x, 8);
	CHECK(x.hole_count == 1 && x.holes[0].from == 20);
	pg_index_free(&y);
	/* Earlier versions listed no holes, but where the last one ended. */
	pg_index_parse(&y, STR("identity 1\nbroken 0\ngap 12\nhour 5 c0\n"));
	CHECK(y.listed == 12 && is_noted(&y, 11) && !is_noted(&y, 12));
	pg_index_free(&y);
	for (uint64_t i = 0; i < 5000; i++)
		pg_index_hole(&y, 2 * i + 1);
	CHECK(y.hole_count <= 1000 && is_noted(&y, 1) && is_noted(&y, 9999) && !is_noted(&y, 9998));
	buf_free(&b);
	pg_index_free(&x);
	pg_index_free(&y);
}

/* Where the clock was put back far. */
static void backs(void)
{
	struct pg_index x = {0}, y = {0};
	struct buf b = {0};
	pg_index_back(&x, 0x500);
	pg_index_back(&x, 0x900);
	pg_index_back(&x, 0x900); /* told again after a crash */
	pg_index_write(&b, &x);
	pg_index_parse(&y, buf_view(&b));
	CHECK(y.back_count == 2 && y.backs[0] == 0x500 && y.backs[1] == 0x900);
	CHECK(pg_index_back_find(&y, 0, 0x4ff) == 0 && pg_index_back_find(&y, 0, 0x500) == 0x500);
	CHECK(pg_index_back_find(&y, 0x500, 0x900) == 0x900 && pg_index_back_find(&y, 0x900, UINT64_MAX) == 0);
	/* Of a timeline that begins before, times go on where it begins. */
	pg_index_backs_cut(&y, 0x700);
	CHECK(y.back_count == 2 && y.backs[1] == 0x700);
	pg_index_backs_cut(&y, 0x700);
	pg_index_backs_cut(&y, 0x100);
	CHECK(y.back_count == 1 && y.backs[0] == 0x100);
	for (uint64_t i = 0; i < 5000; i++)
		pg_index_back(&y, 0x1000 + i);
	CHECK(y.back_count <= 100 && y.backs[y.back_count - 1] == 0x1000 + 4999);
	buf_free(&b);
	pg_index_free(&x);
	pg_index_free(&y);
}

/* --- holes */

struct world {
	struct pg_segments s;
	struct pg_chain c;
	struct pg_index x;
};

/* Up to three timelines, segments of which some are there in part or not at all, and some of those are noted. */
static void world_make(struct world *w)
{
	char history[120] = "";
	unsigned timelines = 1 + dice(3), at = 0;
	*w = (struct world){0};
	for (unsigned i = 1; i < timelines; i++) {
		at += dice(12);
		snprintf(history + strlen(history), sizeof history - strlen(history), "%u\t0/%X\tx\n", i,
		         (unsigned)(at * PG_SEGMENT + dice(3) * 100));
	}
	pg_chain_parse(&w->c, timelines, history);
	for (uint64_t n = 1; n < NUMBERS; n++)
		for (unsigned t = 1; t <= timelines; t++)
			if (dice(8))
				pg_segments_add(&w->s, t, n, dice(10) != 0);
	w->x.listed = dice(6);
	for (unsigned i = dice(4); i > 0; i--)
		pg_index_hole(&w->x, 1 + dice(NUMBERS));
}

static bool is_missed(const struct world *w, uint64_t number)
{
	const struct pg_chain_part *part = pg_chain_part(&w->c, number);
	const struct pg_segment *g = part ? pg_segments_find(&w->s, part->timeline, number) : NULL;
	return !is_noted(&w->x, number) && !(g && g->complete);
}

static void holes_as_the_model(void)
{
	bool good = true;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct world w;
		struct pg_hole hole;
		world_make(&w);
		uint64_t from = dice(NUMBERS), to = from + dice(NUMBERS), at = from;
		while (pg_hole_find(&w.s, &w.c, &w.x, at, to, &hole)) {
			good &= hole.from >= at && hole.from < hole.to && hole.to <= to;
			for (; good && at < hole.from; at++)
				good = !is_missed(&w, at);
			for (; good && at < hole.to; at++)
				good = is_missed(&w, at);
			if (!good)
				break;
		}
		for (; good && at < to; at++)
			good = !is_missed(&w, at);
		free(w.s.list);
		free(w.c.parts);
		pg_index_free(&w.x);
		if (!good) {
			fprintf(stderr, "round %u\n", round);
			break;
		}
	}
	CHECK(good);
	/* However far apart they are. */
	struct world far = {0};
	struct pg_hole hole;
	pg_chain_parse(&far.c, 1, NULL);
	pg_segments_add(&far.s, 1, 1, true);
	pg_segments_add(&far.s, 1, UINT64_C(1) << 41, true);
	CHECK(pg_hole_find(&far.s, &far.c, &far.x, 1, UINT64_C(1) << 41, &hole) && hole.from == 2 &&
	      hole.to == UINT64_C(1) << 41);
	free(far.s.list);
	free(far.c.parts);
}

/* --- positions */

#define PAGE 8192

static uint64_t header_of(uint64_t page)
{
	return page % PG_SEGMENT == 0 ? 40 : 24;
}

/* Somewhere that a record ends or begins: not within a page's header; often at a boundary, or beside one. */
static uint64_t position_make(void)
{
	uint64_t page = PG_SEGMENT + (dice(2) ? dice(3) * PG_SEGMENT : (uint64_t)dice(1500) * PAGE);
	switch (dice(5)) {
	case 0: return page;
	case 1: return page + header_of(page);
	case 2: return page + header_of(page) + 8;
	case 3: return page - 8;
	default: return page + header_of(page) + 8 * (uint64_t)dice(1000);
	}
}

/* Where a page begins and behind its header is the same place; all others are in the order that they have. */
static void positions_in_order(void)
{
	bool good = true;
	for (unsigned round = 0; good && round < 20 * ROUNDS; round++) {
		uint64_t a = position_make(), b = position_make(), low = a < b ? a : b, high = a < b ? b : a;
		bool same = low == high || (low % PAGE == 0 && high == low + header_of(low));
		good = same ? pg_lsn_plain(low) == pg_lsn_plain(high) : pg_lsn_plain(low) < pg_lsn_plain(high);
		/* And so they are on a timeline that is left there, or they are not. */
		char history[60];
		struct pg_chain c = {0};
		snprintf(history, sizeof history, "1\t%X/%X\tx\n", (unsigned)(a >> 32), (unsigned)a);
		pg_chain_parse(&c, 2, history);
		good &= pg_chain_has(&c, 1, b) == (same || b < a) && pg_chain_has(&c, 2, b);
		good &= pg_chain_part(&c, a / PG_SEGMENT)->timeline == 2 &&
		        (a < PG_SEGMENT || pg_chain_part(&c, a / PG_SEGMENT - 1)->timeline == 1);
		free(c.parts);
		if (!good)
			fprintf(stderr, "%llx and %llx\n", (unsigned long long)a, (unsigned long long)b);
	}
	CHECK(good);
}

int main(void)
{
	unsigned seed = getenv("STEWARD_SEED") ? (unsigned)strtoul(getenv("STEWARD_SEED"), NULL, 10) : 20261118;
	srand(seed);
	printf("seed %u\n", seed);
	index_texts();
	backs();
	holes_as_the_model();
	positions_in_order();
	return CHECK_DONE();
}

/* What a sweep leaves: whatever is in the catalogue, every kept point has its snapshot and all log since, and nothing
 * else is named. */
#include "api/snapshots/keep.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>

#define DAY 86400000LL
#define NOW (400 * DAY)
#define SEGMENT (4ull << 20)

static const struct repo_keep_wal *wal_of(const struct repo_keep *k, const char *incarnation)
{
	for (size_t i = 0; i < k->wal_count; i++)
		if (strcmp(k->wal[i].line.incarnation, incarnation) == 0)
			return &k->wal[i];
	return NULL;
}

static bool names(const struct repo_keep *k, const char *name)
{
	for (size_t i = 0; i < k->snapshot_count; i++)
		if (strcmp(k->snapshots[i], name) == 0)
			return true;
	return false;
}

static void test_lines(struct arena *a)
{
	struct engine_position at[] = {{.set = "0", .timeline = 1, .lsn = 7 * SEGMENT + 5},
	                               {.set = "0", .timeline = 1, .lsn = (1ull << 32) + SEGMENT}};
	struct kept_snapshot list[] = {
	        {STR("c"), STR("s1"), STR("i1"), true, true, NOW - 9 * DAY, &at[0], 1},
	        {STR("c"), STR("s2"), STR("i1"), true, true, NOW - 8 * DAY, &at[1], 1},
	        {STR("c"), STR("s3"), STR("i1"), true, true, NOW - DAY, &at[1], 1},
	        {STR("c"), STR("s4"), STR("i1"), true, false, 0, NULL, 0},
	        {STR("d"), STR("s5"), STR("i9"), false, true, NOW - DAY, &at[0], 1},
	};
	struct kept_line lines[] = {{STR("c"), STR("i1"), 0, 7 * DAY},
	                            {STR("c"), STR("i0"), NOW - 8 * DAY, 7 * DAY},
	                            {STR("c"), STR("i2"), NOW - 6 * DAY, 7 * DAY},
	                            {STR("d"), STR("i9"), 0, 0}};
	struct repo_keep k;
	keep_make(a, list, 5, lines, 4, NOW, &k);
	CHECK(k.snapshot_count == 4 && names(&k, "c/s1") && names(&k, "c/s4") && !names(&k, "d/s5"));
	const struct repo_keep_wal *own = wal_of(&k, "i1"), *other = wal_of(&k, "i2");
	CHECK(own && own->from && strcmp(own->from, "0000000100000001") == 0 && strcmp(own->line.set, "0") == 0);
	CHECK(!wal_of(&k, "i0")); /* it ended before the window */
	CHECK(!other);            /* ended, and nothing it could be restored from */
	CHECK(own->from_ms == NOW - 8 * DAY);
	CHECK(!wal_of(&k, "i9"));                     /* its log is not wanted */
	keep_make(a, list + 2, 1, lines, 1, NOW, &k); /* all are younger than the window's start */
	CHECK(k.wal_count == 1 && strcmp(k.wal[0].from, "0000000100000001") == 0);
	keep_make(a, list, 1, lines, 1, NOW, &k);
	CHECK(k.wal_count == 1 && strcmp(k.wal[0].from, "0000000000000007") == 0);
	/* Where copies lie, the log is kept since one of these; while there is none, as at home. */
	list[1].coming = list[2].coming = true;
	keep_make(a, list, 5, lines, 1, NOW, &k);
	CHECK(k.wal_count == 1 && strcmp(k.wal[0].from, "0000000000000007") == 0);
	list[0].coming = true;
	keep_make(a, list, 5, lines, 1, NOW, &k);
	CHECK(k.wal_count == 1 && strcmp(k.wal[0].from, "0000000100000001") == 0);
	list[0].coming = list[1].coming = list[2].coming = false;
	struct engine_position two[] = {at[1], {.set = "1", .timeline = 1, .lsn = SEGMENT}};
	struct kept_snapshot grown[] = {list[0], list[2]};
	grown[1].sets = two;
	grown[1].set_count = 2;
	keep_make(a, grown, 2, lines, 1, NOW, &k);
	CHECK(k.wal_count == 2 && k.wal[0].from && strcmp(k.wal[1].line.set, "1") == 0 && !k.wal[1].from);
	keep_make(a, NULL, 0, NULL, 0, NOW, &k);
	CHECK(k.snapshot_count == 0 && k.wal_count == 0);
}

#define MANY 40

/* At random: any moment of the window that some kept snapshot precedes can be restored from what is kept. */
static void test_any(struct arena *a)
{
	srandom(11);
	for (int round = 0; round < 300; round++) {
		struct kept_snapshot list[MANY];
		struct engine_position at[MANY];
		static const struct str ids[] = {{"i0", 2}, {"i1", 2}, {"i2", 2}};
		size_t count = (size_t)random() % MANY;
		int64_t window = (1 + random() % 10) * DAY;
		struct kept_line lines[3];
		struct repo_keep k;
		for (size_t i = 0; i < count; i++) {
			int64_t then = NOW - random() % (20 * DAY);
			at[i] = (struct engine_position){.set = "0", .timeline = 1, .lsn = (uint64_t)then};
			list[i] = (struct kept_snapshot){STR("c"),
			                                 (struct str){"s", 1},
			                                 ids[random() % 3],
			                                 random() % 4 != 0,
			                                 random() % 5 != 0,
			                                 then,
			                                 &at[i],
			                                 1};
		}
		for (size_t i = 0; i < 3; i++)
			lines[i] =
			        (struct kept_line){STR("c"), ids[i], i == 2 ? 0 : NOW - random() % (15 * DAY), window};
		keep_make(a, list, count, lines, 3, NOW, &k);
		size_t here = 0;
		for (size_t i = 0; i < count; i++)
			here += list[i].here;
		CHECK(k.snapshot_count == here);
		for (size_t i = 0; i < 3; i++) {
			const struct repo_keep_wal *w = wal_of(&k, ids[i].p);
			bool any = false;
			for (size_t n = 0; n < count; n++)
				any |= list[n].completed && str_eq(list[n].incarnation, ids[i]);
			bool over = lines[i].ended_ms && (lines[i].ended_ms < NOW - window || !any);
			CHECK((w == NULL) == over);
			if (!w || !w->from)
				continue;
			unsigned long long log = 0, segment = 0;
			CHECK(sscanf(w->from, "%8llX%8llX", &log, &segment) == 2);
			uint64_t first = (log * 1024 + segment) * SEGMENT;
			bool kept_begins = false;
			for (size_t n = 0; n < count; n++) {
				if (!list[n].completed || !str_eq(list[n].incarnation, ids[i]))
					continue;
				/* Nothing that the window needs starts before what is kept, but older ones may. */
				CHECK(list[n].at_ms <= NOW - window || at[n].lsn >= first);
				kept_begins |= at[n].lsn / SEGMENT == first / SEGMENT;
			}
			CHECK(kept_begins);
		}
		arena_reset(a);
	}
}

int main(void)
{
	struct arena *a = arena_new();
	test_lines(a);
	test_any(a);
	arena_free(a);
	return CHECK_DONE();
}

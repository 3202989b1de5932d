/* What was seen when something is followed: each thing once, and no more is remembered than the overlap needs. */
#include "cli/follow.h"

#include "base/clock.h"
#include "check.h"
#include "cli/cli.h"
#include "cli/moment.h"

#include <errno.h>
#include <stdio.h>

#define SECOND 1000
#define HOUR (3600 * SECOND)

static struct str text(unsigned number, char *room, size_t size)
{
	int n = snprintf(room, size, "line %u", number);
	return (struct str){room, (size_t)n};
}

static void test_since(void)
{
	int64_t ms = 0, at = 0;
	CHECK(clock_parse(STR("2026-11-16T03:00:00Z"), &at));
	CHECK(follow_since("90s", at, &ms) == 0 && ms == at - 90 * SECOND);
	CHECK(follow_since("15m", at, &ms) == 0 && ms == at - 900 * SECOND);
	CHECK(follow_since("2h", at, &ms) == 0 && ms == at - 2 * HOUR);
	CHECK(follow_since("3d", at, &ms) == 0 && ms == at - 72 * INT64_C(1) * HOUR);
	CHECK(follow_since("2026-11-16T03:00:00Z", 0, &ms) == 0 && ms == at);
	ms = 7;
	CHECK(moment_parse("to", "10 minutes ago", at, &ms) == 0 && ms == at - 600 * SECOND);
	CHECK(moment_parse("to", "1 hour ago", at, &ms) == 0 && ms == at - HOUR);
	CHECK(moment_parse("to", " 2days ", at, &ms) == 0 && ms == at - 48 * HOUR);
	CHECK(moment_parse("to", "now", at, &ms) == 0 && ms == at);
	ms = 7;
	CHECK(moment_parse("to", "ago", at, &ms) < 0 && moment_parse("to", " ago", at, &ms) < 0);
	CHECK(moment_parse("to", "5 ago", at, &ms) < 0 && moment_parse("to", "5 minutes hence", at, &ms) < 0);
	CHECK(follow_since("soon", at, &ms) < 0 && follow_since("", at, &ms) < 0 && follow_since("h", at, &ms) < 0);
	CHECK(follow_since("-1h", at, &ms) < 0 && follow_since("1000000d", at, &ms) < 0 && ms == 7);
}

/* Two answers that overlap. */
static void test_each_once(void)
{
	struct follow_seen s = {.list = NULL};
	char room[32];
	unsigned fresh = 0;
	for (unsigned i = 0; i < 10; i++)
		fresh += follow_is_new(&s, text(i, room, sizeof room), HOUR + i * SECOND);
	CHECK(fresh == 10);
	CHECK(follow_turn(&s) == HOUR + 9 * SECOND - 5 * SECOND);
	for (unsigned i = 4; i < 12; i++)
		fresh += follow_is_new(&s, text(i, room, sizeof room), HOUR + i * SECOND);
	CHECK(fresh == 12);
	follow_turn(&s);
	CHECK(!follow_is_new(&s, text(11, room, sizeof room), HOUR + 11 * SECOND));
	/* The same text in one answer is two lines that say the same. */
	CHECK(follow_is_new(&s, STR("again"), HOUR + 12 * SECOND) &&
	      follow_is_new(&s, STR("again"), HOUR + 12 * SECOND));
	follow_free(&s);
	CHECK(s.list == NULL && s.count == 0);
}

/* The second in which the overlap begins is asked for from its beginning. */
static void test_parts_of_a_second(void)
{
	struct follow_seen s = {.list = NULL};
	CHECK(follow_is_new(&s, STR("first"), HOUR + 7486) && follow_is_new(&s, STR("last"), HOUR + 12676));
	for (unsigned turn = 0; turn < 3; turn++) {
		CHECK(follow_turn(&s) == HOUR + 7 * SECOND);
		CHECK(!follow_is_new(&s, STR("first"), HOUR + 7486) && !follow_is_new(&s, STR("last"), HOUR + 12676));
	}
	follow_free(&s);
}

/* A day's log in one answer: what is older than the overlap is forgotten while it is read. */
static void test_long_answers(void)
{
	struct follow_seen s = {.list = NULL};
	char room[32];
	for (unsigned i = 0; i < 1000000; i++)
		if (!follow_is_new(&s, text(i, room, sizeof room), HOUR + (int64_t)i * 10))
			CHECK(false);
	CHECK(s.room <= 4096);
	int64_t next = follow_turn(&s);
	CHECK(s.count <= 602 && s.sorted == s.count); /* six seconds at most: whole ones are asked for */
	unsigned fresh = 0, from = (unsigned)((next - HOUR) / 10);
	for (unsigned i = from; i < 1000001; i++)
		fresh += follow_is_new(&s, text(i, room, sizeof room), HOUR + (int64_t)i * 10);
	CHECK(fresh == 1);
	follow_free(&s);
}

static void test_nothing_yet(void)
{
	struct follow_seen s = {.list = NULL};
	CHECK(follow_turn(&s) < 0);
	follow_free(&s);
}

/* A service that is away is asked again for a minute; one that is busy says for how long to leave it alone. */
static void test_patience(void)
{
	struct follow f = {.unreached = 0};
	struct client_answer well = {.status = 200}, busy = {.status = 503, .retry_after = 7};
	for (int i = 0; i < FOLLOW_PATIENCE; i++)
		CHECK(follow_step(&f, NULL, -EHOSTUNREACH, &well) == FOLLOW_ON && f.pause_ms == 2000);
	CHECK(follow_step(&f, NULL, -EHOSTUNREACH, &well) == EXIT_UNREACHED);
	CHECK(follow_step(&f, NULL, 0, &well) == FOLLOW_ON && f.unreached == 0);
	CHECK(follow_step(&f, NULL, 0, &busy) == FOLLOW_ON && f.pause_ms == 7000);
	CHECK(follow_step(&f, NULL, -EACCES, &well) == EXIT_NOT_DONE);
}

int main(void)
{
	test_since();
	test_each_once();
	test_parts_of_a_second();
	test_long_answers();
	test_nothing_yet();
	test_patience();
	return CHECK_DONE();
}

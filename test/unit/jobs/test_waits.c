/* Answers that wait for jobs: which job has seen which change, what is said of those that fail, and the end. */
#include "check.h"

#include "base/clock.h"
#include "base/log.h"
#include "jobs/waits.h"

#include <stdlib.h>
#include <unistd.h>

static char dir[64];
static unsigned sent;
static size_t left;
static char said[WAIT_WHY_MAX];

static void note(const struct wait *w)
{
	sent++;
	left = w->count;
	snprintf(said, sizeof said, "%s", w->behind);
}

/* A call whose write is on disk, and that waits for these subjects; the last may be NULL. */
static void hold(struct arena *a, const char *first, const char *second)
{
	struct call *c = arena_new_of(a, struct call);
	struct waited *subjects = arena_new_array(a, struct waited, 2);
	subjects[0].id = str_of(first);
	subjects[1].id = str_of(second);
	c->arena = a;
	wait_hold(&(struct wait){.call = c, .kind = "k", .subjects = subjects, .count = second ? 2 : 1, .send = note});
	sent = 0;
	c->held(c, c->held_arg);
}

static void test_stamps(struct arena *a)
{
	uint64_t before = wait_stamp();
	hold(a, "one", "two");
	/* A job that has read before the write cannot have seen it. */
	wait_done(STR("one"), before);
	wait_done(STR("two"), before);
	CHECK(sent == 0);
	uint64_t after = wait_stamp();
	CHECK(after > before);
	wait_done(STR("one"), after);
	wait_done(STR("one"), after);
	wait_done(STR("other"), after);
	CHECK(sent == 0);
	wait_done(STR("two"), after);
	CHECK(sent == 1 && left == 0 && !said[0]);
	wait_done(STR("two"), wait_stamp());
	CHECK(sent == 1);
}

static void test_behind(struct arena *a)
{
	uint64_t before = wait_stamp();
	hold(a, "one", NULL);
	wait_behind(STR("one"), before, "of an earlier change");
	wait_behind(STR("other"), wait_stamp(), "of another subject");
	wait_done(STR("one"), wait_stamp());
	CHECK(sent == 1 && !said[0]);
	hold(a, "one", NULL);
	wait_behind(STR("one"), wait_stamp(), "no room");
	CHECK(sent == 0);
	wait_done(STR("one"), wait_stamp());
	CHECK(sent == 1 && str_is(str_of(said), "no room"));
	hold(a, "one", NULL);
	wait_behind(STR("one"), wait_stamp(), "no room");
	wait_behind(STR("one"), wait_stamp(), NULL);
	wait_done(STR("one"), wait_stamp());
	CHECK(sent == 1 && !said[0]);
}

static int add_run(struct tx *tx, void *ctx)
{
	struct job job = {.kind = STR("k"), .subject = STR("busy")};
	return tx_job_add(tx, &job);
}

/* Jobs that another process has run are seen by their absence. */
static void test_poll(struct arena *a, struct store *s)
{
	struct tx *reader = store_reader(s);
	CHECK(store_write_wait(s, add_run, NULL) == 0);
	hold(a, "busy", NULL);
	waits_poll(reader);
	CHECK(sent == 0);
	wait_done(STR("busy"), wait_stamp());
	CHECK(sent == 1);
	hold(a, "gone", NULL);
	waits_poll(reader);
	CHECK(sent == 1 && left == 0);
	tx_rest(reader);
	store_reader_free(reader);
}

/* Nothing is held while the service stops. */
static void test_close(struct arena *a)
{
	hold(a, "one", "two");
	waits_close();
	CHECK(sent == 1 && left == 2);
	hold(a, "one", NULL);
	CHECK(sent == 1 && left == 1);
}

static void dir_clear(void)
{
	const char *const names[] = {"steward.db", "steward.db-wal", "steward.db-shm"};
	char path[128];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

int main(void)
{
	struct arena *a = arena_new();
	struct store *s = NULL;
	snprintf(dir, sizeof dir, "/tmp/test_waits.XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	log_setup(LOG_ERROR, false);
	struct store_options o = {.data_dir = dir, .node = "unit"};
	if (store_open(&o, &s) < 0)
		return 1;
	test_stamps(a);
	test_behind(a);
	test_poll(a, s);
	test_close(a);
	store_close(s);
	dir_clear();
	arena_free(a);
	return CHECK_DONE();
}

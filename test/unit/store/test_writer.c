/* The writer's batches: how many writes of one tenant they have, whose turn it is, when they end, and who waits apart. */
#include "check.h"

#include "base/arena.h"
#include "base/log.h"
#include "store/store.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MANY 200
#define EACH 64    /* of one key in a batch */
#define LONG_MS 25 /* longer than a batch lasts */
#define GREEDY 11
#define OTHER 12
#define SLOW 13

static struct store *s;
static atomic_int runs, dones;

struct one {
	struct write w;
	sem_t *entered, *leave; /* it says that it runs, and waits; or NULL */
	long sleep_ms;
	bool undone; /* after it has changed something */
	int turn, batch, result;
};

static struct one many[MANY], first, other;

static int one_run(struct tx *tx, void *ctx)
{
	struct one *o = ctx;
	o->turn = atomic_fetch_add(&runs, 1);
	if (o->entered) {
		sem_post(o->entered);
		sem_wait(o->leave);
		o->entered = NULL; /* a batch may be run again */
	}
	nanosleep(&(struct timespec){.tv_nsec = o->sleep_ms * 1000000}, NULL);
	int r = o->undone ? tx_meta_put(tx, "writer.test", STR("x")) : 0;
	return r < 0 ? r : o->undone ? -ECANCELED : 0;
}

static void one_done(void *ctx, int result)
{
	struct one *o = ctx;
	struct store_stats stats;
	store_stats(s, &stats);
	o->batch = (int)stats.commits;
	o->result = result;
	atomic_fetch_add(&dones, 1);
}

static void one_add(struct one *o, uint64_t key)
{
	o->w = (struct write){.run = one_run, .done = one_done, .ctx = o, .item.key = key};
	CHECK(store_write(s, &o->w));
}

static void done_wait(int count)
{
	while (atomic_load(&dones) < count)
		usleep(200);
	atomic_store(&dones, 0);
}

/* Holds the writer in one write until sem_post(leave). */
static void writer_hold(struct one *o, uint64_t key, sem_t *entered, sem_t *leave)
{
	sem_init(entered, 0, 0);
	sem_init(leave, 0, 0);
	*o = (struct one){.entered = entered, .leave = leave};
	one_add(o, key);
	sem_wait(entered);
}

static void test_few_of_one(void)
{
	sem_t entered, leave;
	int most = 0;
	writer_hold(&first, 0, &entered, &leave);
	for (int i = 0; i < MANY; i++) {
		many[i] = (struct one){.turn = 0};
		one_add(&many[i], GREEDY);
	}
	other = (struct one){.turn = 0};
	one_add(&other, OTHER);
	sem_post(&leave);
	done_wait(MANY + 2);
	for (int i = 0; i < MANY; i++) {
		int same = 0;
		for (int k = 0; k < MANY; k++)
			same += many[k].batch == many[i].batch;
		most = same > most ? same : most;
		CHECK(many[i].result == 0);
	}
	CHECK(most <= EACH && most > EACH / 2);
	CHECK(other.result == 0 && other.batch == many[0].batch);
}

/* Who comes while a batch runs gets the next turn in it. */
static void test_turns(void)
{
	sem_t entered, leave, within, go_on;
	writer_hold(&first, 0, &entered, &leave);
	sem_init(&within, 0, 0);
	sem_init(&go_on, 0, 0);
	for (int i = 0; i < 20; i++) {
		many[i] = (struct one){.turn = 0};
		if (i == 2) {
			many[i].entered = &within;
			many[i].leave = &go_on;
		}
		one_add(&many[i], GREEDY);
	}
	sem_post(&leave);
	sem_wait(&within);
	other = (struct one){.turn = 0};
	one_add(&other, OTHER);
	sem_post(&go_on);
	done_wait(22);
	CHECK(other.turn > many[2].turn && other.turn <= many[4].turn);
	/* The batch may have ended before: then it waits for the next, and no longer. */
	CHECK(other.batch <= many[2].batch + 1);
}

/* Each of these is longer than a batch may be: so each has one of its own, and another tenant waits for one of them. */
static void test_time(void)
{
	sem_t entered, leave;
	writer_hold(&first, 0, &entered, &leave);
	for (int i = 0; i < 4; i++) {
		many[i] = (struct one){.sleep_ms = LONG_MS};
		one_add(&many[i], SLOW);
	}
	other = (struct one){.turn = 0};
	one_add(&other, OTHER);
	sem_post(&leave);
	done_wait(6);
	for (int i = 0; i < 3; i++)
		CHECK(many[i].batch < many[i + 1].batch);
	CHECK(other.turn < many[1].turn && other.batch <= many[1].batch);
}

/* Whose writes take long waits by itself: another tenant waits for the one that runs, and shares no batch with it or the
 * next. An invitation to two hundred projects was such a write. */
static void test_long(void)
{
	sem_t entered, leave, within, go_on;
	for (int i = 0; i < 4; i++) {
		many[i] = (struct one){.sleep_ms = LONG_MS};
		one_add(&many[i], SLOW);
	}
	done_wait(4);
	writer_hold(&first, 0, &entered, &leave);
	sem_init(&within, 0, 0);
	sem_init(&go_on, 0, 0);
	for (int i = 0; i < 4; i++) {
		many[i] = (struct one){.sleep_ms = 6};
		if (i == 1) {
			many[i].entered = &within;
			many[i].leave = &go_on;
		}
		one_add(&many[i], SLOW);
	}
	sem_post(&leave);
	sem_wait(&within);
	other = (struct one){.turn = 0};
	one_add(&other, OTHER);
	sem_post(&go_on);
	done_wait(6);
	CHECK(other.turn == many[1].turn + 1);
	CHECK(other.batch == many[1].batch + 1 && other.batch < many[2].batch);
	/* Once its writes are short again it waits with the others. */
	for (int i = 0; i < MANY / 4; i++) {
		many[i] = (struct one){.turn = 0};
		one_add(&many[i], SLOW);
		done_wait(1);
	}
	writer_hold(&first, 0, &entered, &leave);
	for (int i = 0; i < 20; i++) {
		many[i] = (struct one){.turn = 0};
		one_add(&many[i], SLOW);
	}
	other = (struct one){.turn = 0};
	one_add(&other, OTHER);
	sem_post(&leave);
	done_wait(22);
	CHECK(other.turn == many[0].turn + 1);
}

/* Where undone writes make a batch run again, who has had some waits behind the others and in other batches. */
static void test_apart(bool remote)
{
	sem_t entered, leave;
	for (int i = 0; i < 2; i++) {
		many[i] = (struct one){.undone = true};
		one_add(&many[i], GREEDY);
		done_wait(1);
		CHECK(many[i].result == -ECANCELED);
	}
	writer_hold(&first, 0, &entered, &leave);
	for (int i = 0; i < 20; i++) {
		many[i] = (struct one){.undone = i % 2};
		one_add(&many[i], GREEDY);
	}
	other = (struct one){.turn = 0};
	one_add(&other, OTHER);
	sem_post(&leave);
	done_wait(22);
	int batches = 0;
	for (int i = 0; i < 20; i++) {
		CHECK(many[i].result == (i % 2 ? -ECANCELED : 0));
		CHECK(!remote || many[i].turn > other.turn);
		batches += i && many[i].batch != many[i - 1].batch;
	}
	CHECK(!remote || other.batch < many[0].batch);
	CHECK(!remote || batches >= 2); /* eight of a key each */
	if (!remote)
		CHECK(other.turn == many[0].turn + 1);
}

int main(void)
{
	char dir[64] = "/tmp/steward-writer-XXXXXX", path[96];
	const char *url = getenv("TEST_STORE_URL");
	if (!mkdtemp(dir))
		return 1;
	log_setup(LOG_WARN, false);
	struct store_options o = {.url = url, .data_dir = dir};
	if (store_open(&o, &s) < 0)
		return 1;
	test_few_of_one();
	test_turns();
	test_time();
	test_long();
	test_apart(url);
	store_close(s);
	static const char *const names[] = {"steward.db", "steward.db-wal", "steward.db-shm"};
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
	return CHECK_DONE();
}

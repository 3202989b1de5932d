/* A rate is kept, and tenants take turns whatever each of them has waiting. */
#include "base/clock.h"
#include "base/pace.h"
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

#define PIECE 20000
#define RATE 2000000 /* a piece takes ten milliseconds */
#define MANY 6
#define PIECES 12

static struct pace *pace;
static atomic_uint of_many, of_one, taken;
static atomic_bool over;

static void *many_run(void *arg)
{
	(void)arg;
	while (!over) {
		pace_take(pace, STR("many"), PIECE);
		of_many++;
		taken++;
	}
	return NULL;
}

static void test_turns(void)
{
	pthread_t threads[MANY];
	pace = pace_new(RATE);
	int64_t began = clock_mono_us();
	for (size_t i = 0; i < MANY; i++)
		CHECK(pthread_create(&threads[i], NULL, many_run, NULL) == 0);
	while (of_many < 2)
		pace_take(pace, STR("none"), 1);
	/* One thread of another tenant waits for at most two pieces each time: one that is under way, and one turn. */
	for (; of_one < PIECES; of_one++) {
		unsigned before = of_many;
		pace_take(pace, STR("one"), PIECE);
		taken++;
		CHECK(of_many - before <= 3);
	}
	over = true;
	for (size_t i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
	/* The last piece is waited for by nobody. */
	CHECK(clock_mono_us() - began >= (int64_t)(taken - 1) * PIECE * 1000000 / RATE);
	pace_free(pace);
}

static void test_no_bound(void)
{
	struct pace *none = pace_new(0);
	for (unsigned i = 0; i < 1000; i++) {
		pace_take(none, STR("one"), SIZE_MAX / 2);
		pace_take(NULL, STR("one"), SIZE_MAX / 2);
	}
	CHECK(true);
	pace_free(none);
	pace_free(NULL);
}

int main(void)
{
	test_turns();
	test_no_bound();
	return CHECK_DONE();
}

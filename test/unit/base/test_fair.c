/* The fair queue: order, turns, bounds of waiting and of running, and that nothing is lost or counted twice. */
#include "check.h"

#include "base/arena.h"
#include "base/fair.h"

#include <stdlib.h>

#define ITEMS 4000

static struct fair_item items[ITEMS];

/* How many of a key go in before it is refused. */
static unsigned fill(struct fair *f, unsigned from, uint64_t key)
{
	unsigned n = 0;
	while (from + n < ITEMS && fair_add(f, &items[from + n], key))
		n++;
	return n;
}

static void drain(struct fair *f)
{
	for (struct fair_item *i; (i = fair_take(f));)
		fair_done(f, i->key);
}

static void test_turns(void)
{
	struct fair *f = fair_new(100, 0);
	for (unsigned i = 0; i < 6; i++)
		CHECK(fair_add(f, &items[i], 1));
	CHECK(fair_add(f, &items[6], 2) && fair_add(f, &items[7], 3) && fair_add(f, &items[8], 2));
	/* Each line keeps its own order, and lines take turns: the key that came last is served third, not ninth. */
	static const unsigned order[] = {0, 6, 7, 1, 8, 2, 3, 4, 5};
	for (unsigned i = 0; i < 9; i++)
		CHECK(fair_take(f) == &items[order[i]]);
	CHECK(!fair_take(f) && fair_waiting(f) == 0);
	fair_free(f);
}

static void test_waiting(void)
{
	struct fair *f = fair_new(1000, 0);
	/* One key alone gets half, the second half of the rest, and so on: there is always something left. */
	unsigned from = 0, most = 500;
	for (uint64_t key = 1; key <= 8; key++, most /= 2) {
		unsigned n = fill(f, from, key);
		CHECK(n >= most - 1 && n <= most + 1);
		CHECK(fair_has_room(f, key + 1) && !fair_has_room(f, key));
		from += n;
	}
	drain(f);
	CHECK(fill(f, 0, 1) == 500);
	drain(f);
	CHECK(fill(f, 0, 0) == 1000); /* the service's own */
	drain(f);
	fair_free(f);
}

static void test_running(void)
{
	struct fair *f = fair_new(1000, 64);
	struct fair_item *i;
	unsigned of_one = 0, of_two = 0;
	CHECK(fill(f, 0, 1) == 500);
	while ((i = fair_take(f)))
		of_one += i->key == 1;
	/* Sixteen of 64 places stay free, however many items of the first key wait. */
	CHECK(of_one == 48 && fair_running(f) == 48);
	unsigned n = fill(f, 500, 2);
	CHECK(n > 200);
	while ((i = fair_take(f)))
		of_two += i->key == 2;
	CHECK(of_two >= 11 && of_two <= 13 && fair_running(f) < 64);
	/* When items of the first key end, the second key may run until it has as many. */
	for (; of_one > 30; of_one--)
		fair_done(f, 1);
	while ((i = fair_take(f)))
		of_two += i->key == 2, of_one += i->key == 1;
	CHECK(of_two >= 20 && fair_running(f) == of_one + of_two);
	for (; of_one; of_one--)
		fair_done(f, 1);
	for (; of_two; of_two--)
		fair_done(f, 2);
	drain(f);
	fair_free(f);
}

static void test_places(void)
{
	struct fair *f = fair_new(0, 5);
	unsigned n = 0;
	while (fair_enter(f, 7))
		n++;
	CHECK(n == 4 && fair_enter(f, 8) && !fair_enter(f, 9) && !fair_enter(f, 8));
	fair_done(f, 8);
	CHECK(!fair_enter(f, 7) && fair_enter(f, 9));
	fair_done(f, 9);
	while (n--)
		fair_done(f, 7);
	CHECK(fair_running(f) == 0);
	fair_free(f);
}

static void test_return(void)
{
	struct fair *f = fair_new(10, 2);
	CHECK(fair_add(f, &items[0], 1) && fair_add(f, &items[1], 1));
	struct fair_item *first = fair_take(f);
	CHECK(first == &items[0]);
	fair_return(f, first);
	CHECK(fair_waiting(f) == 2 && fair_running(f) == 0);
	CHECK(fair_take(f) == &items[0]);
	fair_done(f, 1);
	CHECK(fair_take(f) == &items[1] && !fair_take(f));
	fair_return(f, &items[1]);
	CHECK(fair_take(f) == &items[1]);
	fair_done(f, 1);
	fair_free(f);
}

/* Random steps, compared with plain counters. */
static void test_random(void)
{
	enum { KEYS = 12, MAX = 200, RUN = 20 };
	struct fair *f = fair_new(MAX, RUN);
	unsigned waiting[KEYS] = {0}, running[KEYS] = {0}, all_waiting = 0, all_running = 0, seed = 1;
	struct fair_item *spare[MAX + RUN];
	unsigned spares = 0;
	for (; spares < MAX + RUN; spares++)
		spare[spares] = &items[spares];
	struct fair_item *running_list[RUN];
	for (int step = 0; step < 200000; step++) {
		seed = seed * 1103515245u + 12345u;
		unsigned key = 1 + (seed >> 16) % (KEYS - 1), dice = (seed >> 8) % 3;
		if (dice == 0 && spares) {
			bool room = all_waiting < MAX && waiting[key] < MAX - all_waiting;
			CHECK(fair_has_room(f, key) == room);
			if (fair_add(f, spare[spares - 1], key) != room)
				CHECK(false);
			if (room) {
				spares--;
				waiting[key]++;
				all_waiting++;
			}
		} else if (dice == 1 && all_running < RUN) {
			struct fair_item *i = fair_take(f);
			if (i) {
				CHECK(running[i->key] < 3 * (RUN - all_running));
				running_list[all_running++] = i;
				waiting[i->key]--;
				running[i->key]++;
				all_waiting--;
			}
		} else if (dice == 2 && all_running) {
			struct fair_item *i = running_list[--all_running];
			running[i->key]--;
			fair_done(f, i->key);
			spare[spares++] = i;
		}
		CHECK(fair_waiting(f) == all_waiting && fair_running(f) == all_running);
	}
	while (all_running)
		fair_done(f, running_list[--all_running]->key);
	drain(f);
	CHECK(fair_waiting(f) == 0 && fair_running(f) == 0);
	fair_free(f);
}

static void test_each(void)
{
	struct fair *f = fair_new(100, 20);
	fair_limit_each(f, 3);
	for (unsigned i = 0; i < 10; i++)
		CHECK(fair_add(f, &items[i], 1));
	for (unsigned i = 0; i < 3; i++)
		CHECK(fair_take(f) == &items[i]);
	CHECK(!fair_take(f));
	/* Another's turn comes all the same, and what is done makes room. */
	CHECK(fair_add(f, &items[10], 2) && fair_take(f) == &items[10] && !fair_take(f));
	fair_done(f, 1);
	CHECK(fair_take(f) == &items[3] && !fair_take(f));
	for (unsigned i = 0; i < 3; i++)
		fair_done(f, 1);
	fair_done(f, 2);
	drain(f);
	fair_free(f);
}

int main(void)
{
	CHECK(fair_key(STR("a")) == fair_key(STR("a")) && fair_key(STR("a")) != fair_key(STR("b")) &&
	      fair_key(STR("0123456789abcdef01234567")) != fair_key(STR("0123456789abcdef01234568")));
	test_turns();
	test_waiting();
	test_running();
	test_places();
	test_return();
	test_each();
	test_random();
	fair_free(NULL);
	return CHECK_DONE();
}

/* Failed sign-ins: what is counted, what is dropped, and who is still let in. */
#include "identity/attempts.h"

#include "base/clock.h"
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

static struct ip address(unsigned n)
{
	struct ip ip = {{[10] = 0xff, [11] = 0xff, [12] = 10}};
	ip.b[13] = (unsigned char)(n >> 16);
	ip.b[14] = (unsigned char)(n >> 8);
	ip.b[15] = (unsigned char)n;
	return ip;
}

/* A flood of made-up names from many addresses must not push out the name that is being guessed, nor use more
 * memory. */
static void test_flood(void)
{
	struct attempts *a = attempts_new();
	struct ip here = address(1), there = address(2);
	unsigned seconds;
	char name[32];
	clock_make_virtual();
	CHECK(attempt_ask(a, STR("me"), &here, &seconds) == ATTEMPT_OPEN);
	for (int i = 0; i < ATTEMPTS_PER_NAME; i++) {
		CHECK(attempt_ask(a, STR("me"), &here, &seconds) == ATTEMPT_OPEN);
		attempt_failed(a, STR("me"), &here);
	}
	CHECK(attempt_ask(a, STR("me"), &here, &seconds) == ATTEMPT_REFUSED && seconds == 60);
	for (unsigned i = 0; i < 200000; i++) {
		struct ip other = address(i + 10);
		snprintf(name, sizeof name, "name-%u", i);
		attempt_failed(a, str_of(name), &other);
	}
	CHECK(attempt_ask(a, STR("me"), &here, &seconds) == ATTEMPT_REFUSED);
	CHECK(attempt_ask(a, STR("me"), &there, &seconds) == ATTEMPT_OPEN);
	CHECK(attempt_ask(a, STR("you"), &here, &seconds) == ATTEMPT_OPEN);
	attempt_succeeded(a, STR("me"), &here);
	CHECK(attempt_ask(a, STR("me"), &here, &seconds) == ATTEMPT_KNOWN);
	clock_advance_ms(60000);
	CHECK(attempt_ask(a, STR("me"), &here, &seconds) == ATTEMPT_OPEN);
	attempts_free(a);
}

struct guesser {
	struct attempts *attempts;
	atomic_uint *open;
};

static void *guess(void *arg)
{
	struct guesser *g = arg;
	struct ip here = address(1);
	unsigned seconds;
	for (int i = 0; i < 200; i++)
		*g->open += attempt_begin(g->attempts, STR("me"), &here, &seconds) == ATTEMPT_OPEN;
	return NULL;
}

/* Guesses that come together, on several threads, are as many as those that come one by one. */
static void test_together(void)
{
	clock_make_virtual();
	for (int round = 0; round < 20; round++) {
		atomic_uint open = 0;
		struct guesser g = {attempts_new(), &open};
		pthread_t threads[4];
		for (int i = 0; i < 4; i++)
			CHECK(pthread_create(&threads[i], NULL, guess, &g) == 0);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		CHECK(open == ATTEMPTS_PER_NAME);
		struct ip here = address(1);
		unsigned seconds;
		attempt_take_back(g.attempts, STR("me"), &here);
		CHECK(attempt_begin(g.attempts, STR("me"), &here, &seconds) == ATTEMPT_OPEN);
		CHECK(attempt_begin(g.attempts, STR("me"), &here, &seconds) == ATTEMPT_REFUSED);
		attempts_free(g.attempts);
	}
}

/* A counter of /metrics must not fall: one that is begun is counted when it was wrong, and not before. */
static void test_counts(void)
{
	struct attempts *a = attempts_new();
	struct attempts_stats stats;
	struct ip here = address(1);
	unsigned seconds;
	for (int i = 0; i < 3; i++)
		CHECK(attempt_begin(a, STR("me"), &here, &seconds) == ATTEMPT_OPEN);
	attempt_take_back(a, STR("me"), &here);
	attempts_stats(a, &stats);
	CHECK(stats.failed == 0 && stats.signed_in == 0);
	attempt_wrong(a);
	attempt_failed(a, STR("me"), &here);
	attempt_signed_in(a);
	attempts_stats(a, &stats);
	CHECK(stats.failed == 2 && stats.signed_in == 1);
	attempts_free(a);
}

/* An IPv6 caller counts by its network: another address in it is not a new caller. */
static void test_networks(void)
{
	struct attempts *a = attempts_new();
	struct ip ip = {{0x20, 0x01, 0x0d, 0xb8}};
	unsigned seconds;
	for (unsigned i = 0; i < ATTEMPTS_PER_ADDRESS; i++) {
		ip.b[15] = (unsigned char)i;
		ip.b[14] = (unsigned char)(i >> 8);
		attempt_failed(a, STR_NONE, &ip);
	}
	ip.b[8] = 7;
	CHECK(attempt_ask(a, STR("me"), &ip, &seconds) == ATTEMPT_REFUSED);
	ip.b[7] = 1;
	CHECK(attempt_ask(a, STR("me"), &ip, &seconds) == ATTEMPT_OPEN);
	struct attempts_stats stats;
	attempts_stats(a, &stats);
	CHECK(stats.failed == ATTEMPTS_PER_ADDRESS && stats.refused == 1);
	attempts_reset(a);
	ip.b[7] = 0;
	CHECK(attempt_ask(a, STR("me"), &ip, &seconds) == ATTEMPT_OPEN);
	attempts_free(a);
}

static void fail_often(struct attempts *a, const struct ip *peer)
{
	for (int i = 0; i < ATTEMPTS_PER_NAME; i++)
		attempt_failed(a, STR("me"), peer);
}

/* Who was told of with a mark is known from there, and only from there; after a reset it is told again. */
static void test_mark(void)
{
	struct attempts *a = attempts_new();
	struct ip here = address(1), there = address(2);
	struct attempt_mark mark = {0};
	unsigned seconds;
	attempt_succeeded_again(a, STR("me"), &here, &mark);
	attempt_succeeded_again(a, STR("me"), &here, &mark);
	fail_often(a, &here);
	fail_often(a, &there);
	CHECK(attempt_ask(a, STR("me"), &here, &seconds) == ATTEMPT_KNOWN);
	CHECK(attempt_ask(a, STR("me"), &there, &seconds) == ATTEMPT_REFUSED);
	attempt_succeeded_again(a, STR("me"), &there, &mark);
	CHECK(attempt_ask(a, STR("me"), &there, &seconds) == ATTEMPT_KNOWN);
	attempts_reset(a);
	attempt_succeeded_again(a, STR("me"), &there, &mark);
	fail_often(a, &there);
	CHECK(attempt_ask(a, STR("me"), &there, &seconds) == ATTEMPT_KNOWN);
	attempts_free(a);
}

/* Passwords of a name that are tried from many addresses. */
static void test_anywhere(void)
{
	struct attempts *a = attempts_new();
	struct ip mine = address(1);
	unsigned seconds = 0;
	attempt_succeeded(a, STR("me"), &mine);
	for (unsigned i = 0; i < ATTEMPTS_PER_NAME; i++) {
		struct ip other = address(100 + i);
		CHECK(attempt_anywhere(a, STR("me"), &other, &seconds));
		CHECK(attempt_ask(a, STR("me"), &other, &seconds) == ATTEMPT_OPEN);
	}
	struct ip next = address(999);
	CHECK(!attempt_anywhere(a, STR("me"), &next, &seconds) && seconds == 60);
	CHECK(attempt_anywhere(a, STR("you"), &next, &seconds));
	CHECK(attempt_anywhere(a, STR("me"), &mine, &seconds));
	attempt_anywhere_right(a, STR("me"));
	CHECK(!attempt_anywhere(a, STR("me"), &next, &seconds));
	attempt_anywhere_right(a, STR("me"));
	CHECK(attempt_anywhere(a, STR("me"), &next, &seconds));
	clock_advance_ms(60000);
	CHECK(attempt_anywhere(a, STR("me"), &next, &seconds));
	attempts_free(a);
}

int main(void)
{
	test_flood();
	test_networks();
	test_mark();
	test_anywhere();
	test_together();
	test_counts();
	return CHECK_DONE();
}

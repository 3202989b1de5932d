/* Buckets: discrete refill, overrides, the bound, and exactness under many threads. */
#include "limit/limit.h"

#include "base/clock.h"
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

static const struct bucket_set small = {
        .id = "T1", .name = "small", .scope = SCOPE_GROUP, .capacity = 3, .refill = 2, .seconds = 60};
static const struct bucket_set large = {
        .id = "T2", .name = "large", .scope = SCOPE_USER, .capacity = 1000, .refill = 500, .seconds = 60};

static struct limit_answer take(struct limiter *l, const struct bucket_set *set, const char *scope)
{
	struct limit_answer a;
	limiter_take(l, set, str_of(scope), &a);
	return a;
}

static void test_refill(void)
{
	struct limiter *l = limiter_new(0);
	struct limit_answer a = take(l, &small, "p");
	CHECK(a.granted && a.remaining == 2 && a.capacity == 3 && a.refill == 2 && a.seconds == 60);
	clock_advance_ms(20500);
	CHECK(take(l, &small, "p").remaining == 1);
	CHECK(take(l, &small, "p").granted);
	a = take(l, &small, "p");
	CHECK(!a.granted && a.remaining == 0 && a.retry_after == 40);
	CHECK(take(l, &small, "q").granted);
	CHECK(take(l, &large, "p").remaining == 999);
	clock_advance_ms(39499);
	a = take(l, &small, "p");
	CHECK(!a.granted && a.retry_after == 1);
	clock_advance_ms(1);
	a = take(l, &small, "p");
	CHECK(a.granted && a.remaining == 1);
	CHECK(take(l, &small, "p").granted && !take(l, &small, "p").granted);
	clock_advance_ms(120000);
	CHECK(take(l, &small, "p").remaining == 2); /* two refills, cut at the capacity */
	clock_advance_ms(59999);
	CHECK(take(l, &small, "p").remaining == 1);
	clock_advance_ms(1); /* steps are counted from the first use */
	CHECK(take(l, &small, "p").remaining == 2);
	clock_advance_ms((int64_t)400 * 365 * 86400 * 1000);
	CHECK(take(l, &small, "p").remaining == 2);
	clock_reset(); /* back in time */
	CHECK(take(l, &small, "p").remaining == 1);
	clock_advance_ms(60000);
	CHECK(take(l, &small, "p").remaining == 2);
	limiter_free(l);
}

static void test_peek_and_reset(void)
{
	struct limiter *l = limiter_new(0);
	struct limit_answer a;
	struct limiter_stats stats;
	limiter_peek(l, &small, STR("p"), &a);
	CHECK(a.granted && a.remaining == 3);
	limiter_stats(l, &stats);
	CHECK(stats.buckets == 0);
	for (int i = 0; i < 4; i++)
		take(l, &small, "p");
	limiter_peek(l, &small, STR("p"), &a);
	CHECK(!a.granted && a.retry_after == 60);
	limiter_stats(l, &stats);
	CHECK(stats.buckets == 1 && stats.granted == 3 && stats.refused == 1);
	limiter_reset(l);
	CHECK(take(l, &small, "p").remaining == 2);
	limiter_free(l);
}

static void test_rules(void)
{
	struct limiter *l = limiter_new(0);
	unsigned capacity, refill;
	const struct limit_rule rules[] = {
	        {NULL, STR_NONE, 7, 1},
	        {NULL, STR("b"), 8, 2},
	        {&small, STR_NONE, 9, 3},
	        {&small, STR("b"), 10, 4},
	};
	take(l, &small, "a");
	limiter_set_rules(l, rules, 4);
	limiter_effective(l, &large, STR("a"), &capacity, &refill);
	CHECK(capacity == 7 && refill == 1);
	limiter_effective(l, &large, STR("b"), &capacity, &refill);
	CHECK(capacity == 8 && refill == 2);
	limiter_effective(l, &small, STR("a"), &capacity, &refill);
	CHECK(capacity == 9 && refill == 3);
	limiter_effective(l, &small, STR("b"), &capacity, &refill);
	CHECK(capacity == 10 && refill == 4);
	/* Two of three were left; the capacity grew by six. */
	struct limit_answer a = take(l, &small, "a");
	CHECK(a.remaining == 7 && a.capacity == 9 && a.refill == 3);
	limiter_set_rules(l, (struct limit_rule[]){{&small, STR_NONE, 1, 1}}, 1);
	a = take(l, &small, "a");
	CHECK(a.granted && a.remaining == 0 && a.capacity == 1);
	CHECK(!take(l, &small, "a").granted);
	limiter_set_rules(l, NULL, 0);
	a = take(l, &small, "a");
	CHECK(a.granted && a.remaining == 1 && a.capacity == 3);
	limiter_set_rules(l, (struct limit_rule[]){{&small, STR_NONE, 0, 0}}, 1);
	CHECK(!take(l, &small, "a").granted && !take(l, &small, "z").granted);
	limiter_free(l);
}

static void test_bound(void)
{
	struct limiter *l = limiter_new(1024);
	struct limiter_stats stats;
	char scope[32];
	for (int i = 0; i < 3; i++)
		take(l, &small, "poor");
	CHECK(!take(l, &small, "poor").granted);
	for (int i = 0; i < 50000; i++) {
		snprintf(scope, sizeof scope, "%024d", i);
		take(l, &small, scope);
	}
	limiter_stats(l, &stats);
	CHECK(stats.buckets <= 1024 && stats.evicted >= 48000);
	/* An empty bucket is the last to be dropped: nobody can refill a bucket by filling the table. */
	CHECK(!take(l, &small, "poor").granted);
	char long_scope[200];
	memset(long_scope, 'x', sizeof long_scope);
	struct limit_answer a;
	limiter_take(l, &small, (struct str){long_scope, sizeof long_scope}, &a);
	CHECK(a.granted);
	limiter_take(l, &small, STR_NONE, &a);
	CHECK(a.granted);
	limiter_free(l);
}

static void test_full_go_first(void)
{
	struct limiter *l = limiter_new(64 * 8);
	struct limiter_stats stats;
	char scope[32];
	for (int i = 0; i < 64 * 8; i++) {
		snprintf(scope, sizeof scope, "old-%d", i);
		take(l, &small, scope);
	}
	clock_advance_ms(60000);
	for (int i = 0; i < 200; i++) {
		snprintf(scope, sizeof scope, "new-%d", i);
		take(l, &large, scope);
	}
	int kept = 0;
	for (int i = 0; i < 200; i++) {
		struct limit_answer a;
		snprintf(scope, sizeof scope, "new-%d", i);
		limiter_peek(l, &large, str_of(scope), &a);
		kept += a.remaining == 999;
	}
	CHECK(kept > 190);
	limiter_stats(l, &stats);
	CHECK(stats.buckets <= 64 * 8);
	limiter_free(l);
}

struct crowd {
	struct limiter *l;
	atomic_int granted;
	atomic_bool stop;
};

static void *crowd_take(void *arg)
{
	struct crowd *c = arg;
	char own[32];
	for (int i = 0; i < 2000; i++) {
		if (take(c->l, &large, "shared").granted)
			c->granted++;
		snprintf(own, sizeof own, "%p-%d", (void *)own, i);
		take(c->l, &small, own);
	}
	return NULL;
}

static void *crowd_rules(void *arg)
{
	struct crowd *c = arg;
	const struct limit_rule rule = {&small, STR("nobody"), 5, 5};
	while (!c->stop) {
		unsigned capacity, refill;
		struct limiter_stats stats;
		limiter_set_rules(c->l, &rule, 1);
		limiter_effective(c->l, &small, STR("nobody"), &capacity, &refill);
		limiter_set_rules(c->l, NULL, 0);
		limiter_stats(c->l, &stats);
	}
	return NULL;
}

static void test_threads(void)
{
	struct crowd c = {.l = limiter_new(1 << 20)};
	pthread_t threads[8], changer;
	pthread_create(&changer, NULL, crowd_rules, &c);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, crowd_take, &c);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	c.stop = true;
	pthread_join(changer, NULL);
	CHECK(c.granted == 1000);
	limiter_free(c.l);
}

int main(void)
{
	clock_make_virtual();
	test_refill();
	test_peek_and_reset();
	test_rules();
	test_bound();
	test_full_go_first();
	test_threads();
	return CHECK_DONE();
}

/* Buckets in a real Redis: the same counts as in memory, exact for many threads and several limiters, and what happens
 * while Redis cannot be reached. */
#include "limit/redis.h"

#include "base/clock.h"
#include "check.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct bucket_set small = {
        .id = "T1", .name = "small", .scope = SCOPE_GROUP, .capacity = 3, .refill = 2, .seconds = 60};
static const struct bucket_set large = {
        .id = "T2", .name = "large", .scope = SCOPE_USER, .capacity = 1000, .refill = 500, .seconds = 60};

static char port[8], url[64];
static pid_t redis;

static void port_pick(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&at, &n) == 0);
	close(fd);
	snprintf(port, sizeof port, "%d", ntohs(at.sin_port));
	snprintf(url, sizeof url, "redis://127.0.0.1:%s/2", port);
}

static void redis_start(void)
{
	redis = fork();
	if (redis == 0) {
		FILE *null = freopen("/dev/null", "w", stdout);
		execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
		       "--appendonly", "no", "--dir", "/tmp", (char *)NULL);
		_exit(null ? 127 : 126);
	}
}

static void redis_stop(void)
{
	kill(redis, SIGKILL);
	waitpid(redis, NULL, 0);
}

static bool up_within(struct redis_limits *r, bool wanted, int ms)
{
	while (redis_limits_up(r) != wanted && ms > 0) {
		usleep(5000);
		ms -= 5;
	}
	return redis_limits_up(r) == wanted;
}

static struct limit_answer take(struct limiter *l, const struct bucket_set *set, const char *scope)
{
	struct limit_answer a;
	limiter_take(l, set, str_of(scope), &a);
	return a;
}

/* A limiter in memory and one in Redis get the same calls and must give the same answers. */
static void test_same(struct limiter *shared)
{
	struct limiter *own = limiter_new(0);
	unsigned random = 12345, wrong = 0;
	for (int i = 0; i < 2000; i++) {
		struct limit_answer a, b;
		const struct bucket_set *set = i % 3 ? &small : &large;
		const char *scope = i % 5 ? "p" : "q";
		random = random * 1103515245u + 12345u;
		clock_advance_ms((random >> 16) % 30000);
		if (i % 7 == 0) {
			limiter_peek(own, set, str_of(scope), &a);
			limiter_peek(shared, set, str_of(scope), &b);
		} else {
			a = take(own, set, scope);
			b = take(shared, set, scope);
		}
		wrong += a.granted != b.granted || a.remaining != b.remaining || a.retry_after != b.retry_after ||
		         a.capacity != b.capacity || a.refill != b.refill || a.seconds != b.seconds;
		if (i == 1000) {
			const struct limit_rule rule[] = {{.set = &small, .capacity = 5, .refill = 1}};
			limiter_set_rules(own, rule, 1);
			limiter_set_rules(shared, rule, 1);
		}
	}
	CHECK(wrong == 0);
	limiter_set_rules(shared, NULL, 0);
	limiter_free(own);
}

static atomic_uint granted;

static void *taker(void *l)
{
	for (int i = 0; i < 400; i++)
		granted += take(l, &large, "crowd").granted;
	return NULL;
}

/* 4,000 takes by ten threads on two limiters: exactly the capacity is granted. */
static void test_exact(struct limiter *one, struct limiter *two)
{
	pthread_t threads[10];
	for (int i = 0; i < 10; i++)
		CHECK(pthread_create(&threads[i], NULL, taker, i % 2 ? one : two) == 0);
	for (int i = 0; i < 10; i++)
		pthread_join(threads[i], NULL);
	CHECK(granted == large.capacity);
}

static void test_away(struct limiter *l, struct redis_limits *r)
{
	struct limiter_stats stats;
	while (take(l, &small, "away").granted)
		;
	redis_stop();
	/* The limiter's own buckets are still full. */
	CHECK(take(l, &small, "away").remaining == 2);
	CHECK(up_within(r, false, 30000));
	limiter_stats(l, &stats);
	CHECK(stats.shared && !stats.shared_up);
	CHECK(take(l, &small, "away").remaining == 1);
	redis_start();
	CHECK(up_within(r, true, 30000));
	/* A new Redis knows neither the script nor the buckets. */
	CHECK(take(l, &small, "away").remaining == 2 && take(l, &small, "away").remaining == 1);
	CHECK(redis_limits_up(r));
	limiter_reset(l);
	CHECK(take(l, &small, "away").remaining == 2);
}

int main(void)
{
	struct redis_limits *r = NULL, *second = NULL, *none = NULL;
	clock_make_virtual();
	static const char *const malformed[] = {"http://127.0.0.1:1", "redis://127.0.0.1:1/x", "rediss:127.0.0.1",
	                                        "redis://u@127.0.0.1:1", "rediss://127.0.0.1:1/0?verify=none"};
	for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
		CHECK(redis_limits_open(&(struct redis_options){.url = malformed[i]}, "t:", &none) < 0);
	const struct redis_options here = {.url = url};
	port_pick();
	redis_start();
	CHECK(redis_limits_open(&here, "t:", &r) == 0);
	CHECK(redis_limits_open(&here, "t:", &second) == 0);
	CHECK(up_within(r, true, 30000) && up_within(second, true, 30000));
	struct limiter *one = limiter_new(0), *two = limiter_new(0);
	limiter_share(one, r);
	limiter_share(two, second);
	test_same(one);
	test_exact(one, two);
	test_away(one, r);
	limiter_free(one);
	limiter_free(two);
	redis_limits_close(r);
	redis_limits_close(second);
	redis_stop();
	return CHECK_DONE();
}

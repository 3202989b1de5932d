/* Metrics: counting, sums over loops, the text format, and a scrape while loops count. */
#include "trail/metrics.h"

#include "base/clock.h"
#include "call/service.h"
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

static struct service service;
static struct loop_state loops[2];

/* The value of a series, or -1 when the page does not have it. */
static double series(const struct buf *page, const char *name)
{
	size_t n = strlen(name);
	struct str rest = buf_view(page), line;
	while (rest.n > 0) {
		str_cut(rest, '\n', &line, &rest);
		if (line.n > n && memcmp(line.p, name, n) == 0 && line.p[n] == ' ') {
			char text[64];
			snprintf(text, sizeof text, "%.*s", (int)(line.n - n - 1), line.p + n + 1);
			return strtod(text, NULL);
		}
	}
	return -1;
}

static double of_op(const struct buf *page, const char *format, unsigned op)
{
	char name[256];
	snprintf(name, sizeof name, format, catalog_ops[op].id);
	return series(page, name);
}

/* Each sample belongs to the metric whose TYPE came last, and each metric comes once. */
static void format_check(const struct buf *page)
{
	struct str rest = buf_view(page), line, metric = STR_NONE, word, tail;
	struct str seen[128];
	size_t count = 0;
	unsigned strays = 0, twice = 0;
	CHECK(page->n > 0 && page->p[page->n - 1] == '\n');
	while (rest.n > 0) {
		str_cut(rest, '\n', &line, &rest);
		if (str_starts(line, STR("# HELP ")))
			continue;
		if (str_starts(line, STR("# TYPE "))) {
			str_cut((struct str){line.p + 7, line.n - 7}, ' ', &metric, &tail);
			for (size_t i = 0; i < count; i++)
				twice += str_eq(seen[i], metric);
			if (count < 128)
				seen[count++] = metric;
			continue;
		}
		str_cut(line, ' ', &word, &tail);
		strays += !str_starts(word, metric);
	}
	CHECK(strays == 0 && twice == 0 && count > 5);
}

static void test_counts(void)
{
	struct buf page = {0};
	metrics_observe(loops[0].metrics, 0, 200, 99);
	metrics_observe(loops[0].metrics, 0, 200, 100);
	metrics_observe(loops[1].metrics, 0, 200, 101);
	metrics_observe(loops[1].metrics, 0, 429, 20000000);
	metrics_observe(loops[0].metrics, -1, 404, 1000);
	metrics_observe(loops[0].metrics, 1, 299, -5);
	metrics_observe(loops[0].metrics, 1000000, 200, 1);
	metrics_observe(NULL, 0, 200, 1);
	metrics_write(&page, &service);
	format_check(&page);
	CHECK(of_op(&page, "steward_requests_total{operation=\"%s\",status=\"200\"}", 0) == 3);
	CHECK(of_op(&page, "steward_requests_total{operation=\"%s\",status=\"429\"}", 0) == 1);
	CHECK(of_op(&page, "steward_requests_total{operation=\"%s\",status=\"404\"}", 0) == -1);
	CHECK(of_op(&page, "steward_requests_total{operation=\"%s\",status=\"other\"}", 1) == 1);
	CHECK(series(&page, "steward_requests_total{operation=\"other\",status=\"404\"}") == 1);
	CHECK(series(&page, "steward_requests_total{operation=\"other\",status=\"200\"}") == 1);
	CHECK(of_op(&page, "steward_request_duration_seconds_bucket{operation=\"%s\",le=\"0.0001\"}", 0) == 2);
	CHECK(of_op(&page, "steward_request_duration_seconds_bucket{operation=\"%s\",le=\"0.00025\"}", 0) == 3);
	CHECK(of_op(&page, "steward_request_duration_seconds_bucket{operation=\"%s\",le=\"10\"}", 0) == 3);
	CHECK(of_op(&page, "steward_request_duration_seconds_bucket{operation=\"%s\",le=\"+Inf\"}", 0) == 4);
	CHECK(of_op(&page, "steward_request_duration_seconds_count{operation=\"%s\"}", 0) == 4);
	double sum = of_op(&page, "steward_request_duration_seconds_sum{operation=\"%s\"}", 0);
	CHECK(sum > 20.0002 && sum < 20.0004);
	/* Never called: not there. */
	CHECK(of_op(&page, "steward_request_duration_seconds_count{operation=\"%s\"}", 2) == -1);
	CHECK(series(&page, "process_resident_memory_bytes") > 100000);
	CHECK(series(&page, "steward_uptime_seconds") >= 0);
	CHECK(series(&page, "steward_build_info{version=\"" STEWARD_VERSION "\",engine=\"simulated\"}") == 1);
	CHECK(series(&page, "steward_buckets") == 0);
	buf_free(&page);
}

static atomic_bool stop;

static void *loop_run(void *ctx)
{
	struct op_metrics *m = ctx;
	for (int i = 0; i < 20000; i++)
		metrics_observe(m, 2, 200, i);
	return NULL;
}

static void *scrape(void *ctx)
{
	while (!stop) {
		struct buf page = {0};
		metrics_write(&page, &service);
		buf_free(&page);
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[3];
	struct buf page = {0};
	pthread_create(&threads[0], NULL, loop_run, loops[0].metrics);
	pthread_create(&threads[1], NULL, loop_run, loops[1].metrics);
	pthread_create(&threads[2], NULL, scrape, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	stop = true;
	pthread_join(threads[2], NULL);
	metrics_write(&page, &service);
	CHECK(of_op(&page, "steward_request_duration_seconds_count{operation=\"%s\"}", 2) == 40000);
	buf_free(&page);
}

int main(void)
{
	service.loops = 2;
	service.loop = loops;
	service.engine = "simulated";
	service.started_us = clock_mono_us();
	service.limiter = limiter_new(0);
	for (int i = 0; i < 2; i++)
		loops[i].metrics = metrics_new(catalog_op_count);
	test_counts();
	test_threads();
	for (int i = 0; i < 2; i++)
		metrics_free(loops[i].metrics);
	limiter_free(service.limiter);
	return CHECK_DONE();
}

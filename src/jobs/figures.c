/* The last count is kept as it will be written. */
#include "jobs/figures.h"

#include "trail/metrics.h"

#include <pthread.h>

#define KINDS_MAX 128 /* with their states */

static struct buf shown;
static pthread_mutex_t shown_lock = PTHREAD_MUTEX_INITIALIZER;

int jobs_figures_count(struct tx *tx)
{
	struct arena *a = arena_new();
	struct job_tally *list;
	size_t count = 0;
	int r = tx_job_tally(tx, a, &list, &count);
	pthread_mutex_lock(&shown_lock);
	if (r == 0)
		shown.n = 0;
	for (size_t i = 0; r == 0 && i < count && i < KINDS_MAX; i++) {
		struct str state = str_is(list[i].state, "queued") ? STR("waiting") : list[i].state;
		buf_printf(&shown, "steward_jobs{kind=\"%.*s\",state=\"%.*s\"} %lld\n", STR_ARG(list[i].kind),
		           STR_ARG(state), (long long)list[i].count);
	}
	pthread_mutex_unlock(&shown_lock);
	arena_free(a);
	return r;
}

void jobs_figures_write(struct buf *b, const struct jobs *j)
{
	uint64_t steps, retries, failed;
	metrics_head(b, "steward_jobs", "gauge",
	             "Jobs in the store by kind and state; failed ones are kept for a week.");
	pthread_mutex_lock(&shown_lock);
	if (shown.n)
		buf_str(b, buf_view(&shown));
	pthread_mutex_unlock(&shown_lock);
	if (!j)
		return;
	jobs_stats(j, &steps, &retries, &failed);
	metrics_number(b, "steward_job_steps_total", "counter", "Steps of jobs that this process has done.", steps);
	metrics_number(b, "steward_job_failures_total", "counter",
	               "Of them, those that failed and are tried again or given up.", retries);
}

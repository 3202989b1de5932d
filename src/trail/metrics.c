/* Counters by operation and the Prometheus page.
 *
 * A counter has one writer, its loop, so a relaxed load and store are enough and no cache line is shared. The tables
 * are flat arrays; the kernel gives them memory only where an operation was really called. */
#include "trail/metrics.h"

#include "base/clock.h"
#include "call/service.h"
#include "identity/attempts.h"
#include "trail/live.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Statuses that we send; all others count as the last, "other". */
static const short statuses[] = {200, 201, 202, 204, 206, 302, 304, 400, 401, 403, 404, 405, 406, 408, 409, 412,
                                 413, 414, 415, 421, 422, 428, 429, 431, 500, 501, 502, 503, 504, 505, 0};
#define STATUSES (sizeof statuses / sizeof *statuses)

static const int64_t bounds_us[] = {100,   250,    500,    1000,   2500,    5000,    10000,   25000,
                                    50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000};
/* As Prometheus wants them: seconds. */
static const char *const bounds_text[] = {"0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025",
                                          "0.05",   "0.1",     "0.25",   "0.5",   "1",      "2.5",   "5",    "10"};
#define BOUNDS (sizeof bounds_us / sizeof *bounds_us)

typedef _Atomic uint64_t counter;

struct row {
	counter by_status[STATUSES];
	counter by_latency[BOUNDS + 1]; /* not cumulative; the last has no bound */
	counter micros;
};

struct op_metrics {
	unsigned operations;
	struct row rows[]; /* one per operation, and a last one for everything else */
};

struct op_metrics *metrics_new(unsigned operations)
{
	struct op_metrics *m = must_calloc(1, sizeof *m + (operations + 1) * sizeof m->rows[0]);
	m->operations = operations;
	return m;
}

void metrics_free(struct op_metrics *m)
{
	free(m);
}

static void count(counter *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static uint64_t value(const counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

static size_t status_slot(int status)
{
	size_t i = 0;
	while (i < STATUSES - 1 && statuses[i] != status)
		i++;
	return i;
}

static size_t latency_slot(int64_t micros)
{
	size_t i = 0;
	while (i < BOUNDS && micros > bounds_us[i])
		i++;
	return i;
}

void metrics_observe(struct op_metrics *m, int op, int status, int64_t micros)
{
	if (!m)
		return;
	struct row *row = &m->rows[op < 0 || (unsigned)op > m->operations ? m->operations : (unsigned)op];
	count(&row->by_status[status_slot(status)], 1);
	count(&row->by_latency[latency_slot(micros)], 1);
	count(&row->micros, micros > 0 ? (uint64_t)micros : 0);
}

/* The sums of one operation over all loops. */
struct sums {
	uint64_t by_status[STATUSES], by_latency[BOUNDS + 1], micros, requests;
};

static void sums_take(const struct service *s, unsigned op, struct sums *ret_sums)
{
	struct sums sums = {0};
	for (unsigned l = 0; l < s->loops; l++) {
		const struct op_metrics *m = s->loop[l].metrics;
		if (!m || op > m->operations)
			continue;
		const struct row *row = &m->rows[op];
		for (size_t i = 0; i < STATUSES; i++)
			sums.by_status[i] += value(&row->by_status[i]);
		for (size_t i = 0; i <= BOUNDS; i++)
			sums.by_latency[i] += value(&row->by_latency[i]);
		sums.micros += value(&row->micros);
	}
	/* Not the sum of the statuses: a request that is counted meanwhile must not make +Inf and _count differ. */
	for (size_t i = 0; i <= BOUNDS; i++)
		sums.requests += sums.by_latency[i];
	*ret_sums = sums;
}

static const char *op_name(unsigned op)
{
	return op < catalog_op_count ? catalog_ops[op].id : "other";
}

void metrics_head(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void requests_write(struct buf *b, const struct sums *all)
{
	metrics_head(b, "steward_requests_total", "counter", "Answered requests by operation and status.");
	for (unsigned op = 0; op <= catalog_op_count; op++)
		for (size_t i = 0; i < STATUSES; i++) {
			if (!all[op].by_status[i])
				continue;
			buf_printf(b, "steward_requests_total{operation=\"%s\",status=\"", op_name(op));
			if (statuses[i])
				buf_printf(b, "%d", statuses[i]);
			else
				buf_z(b, "other");
			buf_printf(b, "\"} %llu\n", (unsigned long long)all[op].by_status[i]);
		}
}

static void latency_write(struct buf *b, const struct sums *all)
{
	static const char name[] = "steward_request_duration_seconds";
	metrics_head(b, name, "histogram", "From the end of the header block to the answer, by operation.");
	for (unsigned op = 0; op <= catalog_op_count; op++) {
		uint64_t so_far = 0;
		if (!all[op].requests)
			continue;
		for (size_t i = 0; i <= BOUNDS; i++) {
			so_far += all[op].by_latency[i];
			buf_printf(b, "%s_bucket{operation=\"%s\",le=\"%s\"} %llu\n", name, op_name(op),
			           i < BOUNDS ? bounds_text[i] : "+Inf", (unsigned long long)so_far);
		}
		buf_printf(b, "%s_sum{operation=\"%s\"} %.6f\n", name, op_name(op), (double)all[op].micros / 1e6);
		buf_printf(b, "%s_count{operation=\"%s\"} %llu\n", name, op_name(op), (unsigned long long)so_far);
	}
}

void metrics_number(struct buf *b, const char *name, const char *type, const char *help, uint64_t n)
{
	metrics_head(b, name, type, help);
	buf_printf(b, "%s %llu\n", name, (unsigned long long)n);
}

static void seconds(struct buf *b, const char *name, const char *type, const char *help, double s)
{
	metrics_head(b, name, type, help);
	buf_printf(b, "%s %.6f\n", name, s);
}

/* Two series of one name that differ in one label. */
static void labelled(struct buf *b, const char *name, const char *label, const char *one, uint64_t n, const char *two,
                     uint64_t m)
{
	buf_printf(b, "%s{%s=\"%s\"} %llu\n%s{%s=\"%s\"} %llu\n", name, label, one, (unsigned long long)n, name, label,
	           two, (unsigned long long)m);
}

static void http_write(struct buf *b, const struct http_server *server)
{
	struct http_stats h;
	if (!server)
		return;
	http_stats(server, &h);
	metrics_number(b, "steward_connections_open", "gauge", "Open connections.", h.connections_open);
	metrics_number(b, "steward_connections_accepted_total", "counter", "Accepted connections.",
	               h.connections_accepted);
	metrics_number(b, "steward_connections_refused_total", "counter", "Connections over a limit.",
	               h.connections_refused);
	metrics_head(b, "steward_tls_handshakes_total", "counter", "Completed TLS handshakes.");
	labelled(b, "steward_tls_handshakes_total", "kind", "full", h.handshakes_full, "resumed", h.handshakes_resumed);
	metrics_number(b, "steward_tls_handshake_failures_total", "counter", "Failed TLS handshakes.",
	               h.handshakes_failed);
	metrics_head(b, "steward_http_requests_total", "counter", "Requests by protocol.");
	labelled(b, "steward_http_requests_total", "protocol", "http/1.1", h.requests_http1, "h2", h.requests_http2);
	metrics_number(b, "steward_http_timeouts_total", "counter", "Connections cut at a deadline.", h.timeouts);
	metrics_number(b, "steward_http_protocol_errors_total", "counter",
	               "Requests or frames that broke the protocol.", h.protocol_errors);
	metrics_number(b, "steward_received_bytes_total", "counter", "Bytes received.", h.bytes_in);
	metrics_number(b, "steward_sent_bytes_total", "counter", "Bytes sent.", h.bytes_out);
}

static void limiter_write(struct buf *b, struct limiter *l)
{
	struct limiter_stats t;
	if (!l)
		return;
	limiter_stats(l, &t);
	metrics_head(b, "steward_bucket_tokens_total", "counter", "Tokens asked of the rate-limit buckets.");
	labelled(b, "steward_bucket_tokens_total", "result", "granted", t.granted, "refused", t.refused);
	metrics_number(b, "steward_buckets", "gauge", "Rate-limit buckets in memory.", t.buckets);
	metrics_number(b, "steward_buckets_evicted_total", "counter", "Buckets forgotten because the table was full.",
	               t.evicted);
	if (t.shared)
		metrics_number(b, "steward_buckets_shared", "gauge",
		               "1 while the buckets are those in Redis; 0 while this node limits by itself.",
		               t.shared_up);
}

static void attempts_write(struct buf *b, struct attempts *a)
{
	struct attempts_stats t;
	if (!a)
		return;
	attempts_stats(a, &t);
	metrics_number(b, "steward_sign_ins_total", "counter", "People who have signed in with a browser.",
	               t.signed_in);
	metrics_number(b, "steward_sign_in_failures_total", "counter", "Sign-ins with a wrong credential.", t.failed);
	metrics_number(b, "steward_sign_ins_refused_total", "counter",
	               "Sign-ins refused unseen after too many failures.", t.refused);
}

static void batches_write(struct buf *b, const struct store_stats *t)
{
	static const char name[] = "steward_store_batch_seconds";
	static const int bounds_ms[] = STORE_BATCH_BOUNDS;
	uint64_t so_far = 0;
	metrics_head(b, name, "histogram", "For how long the store's one writer was held by a batch of writes.");
	for (int i = 0; i < STORE_BATCH_TIMES - 1; i++) {
		so_far += t->batch_times[i];
		buf_printf(b, "%s_bucket{le=\"%g\"} %llu\n", name, bounds_ms[i] / 1000.0, (unsigned long long)so_far);
	}
	so_far += t->batch_times[STORE_BATCH_TIMES - 1];
	buf_printf(b, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)so_far);
	buf_printf(b, "%s_sum %.6f\n%s_count %llu\n", name, (double)t->batch_micros / 1e6, name,
	           (unsigned long long)so_far);
}

static void store_write_stats(struct buf *b, const struct store *store)
{
	struct store_stats t;
	if (!store)
		return;
	store_stats(store, &t);
	metrics_number(b, "steward_store_reads_total", "counter", "Reads of the store.", t.reads);
	metrics_number(b, "steward_store_writes_total", "counter", "Writes to the store.", t.writes);
	metrics_number(b, "steward_store_failed_writes_total", "counter", "Writes that were undone.", t.failed);
	metrics_number(b, "steward_store_commits_total", "counter", "Commits; several writes share one.", t.commits);
	seconds(b, "steward_store_commit_seconds_total", "counter", "Time spent in commits.",
	        (double)t.commit_micros / 1e6);
	batches_write(b, &t);
	metrics_number(b, "steward_store_round_trips_total", "counter",
	               "How often the writer waited for an answer of a remote store.", t.round_trips);
	metrics_number(b, "steward_store_queue_depth", "gauge", "Writes that wait.", t.queue_depth);
	metrics_number(b, "steward_store_checks_total", "counter", "Passes of the slow check over all of the store.",
	               t.passes);
	metrics_number(b, "steward_store_damage", "gauge",
	               "How often something damaged was met since it was first; 0: nothing is.",
	               store_damage(store, NULL, 0));
	metrics_number(b, "steward_store_full", "gauge", "1 while the store has no room for writes.",
	               store_is_full(store));
}

static void buffers_write(struct buf *b, const struct http_server *server)
{
	size_t used, max;
	struct http_stats h;
	if (!server)
		return;
	http_stats(server, &h);
	http_buffered(server, &used, &max);
	metrics_number(b, "steward_buffer_bytes", "gauge", "Memory of requests and answers that wait for clients.",
	               used);
	metrics_number(b, "steward_buffer_limit_bytes", "gauge", "The most that these may take.", max);
	metrics_number(b, "steward_buffer_refusals_total", "counter", "Requests refused because too much waited.",
	               h.busy);
}

static void streams_write(struct buf *b, struct live *live)
{
	struct live_stats l;
	if (!live)
		return;
	live_stats(live, &l);
	metrics_number(b, "steward_event_streams", "gauge", "Clients that listen to events.", l.listeners);
	metrics_number(b, "steward_event_streams_bytes", "gauge", "Memory of the events that they share.",
	               l.ring_bytes);
	metrics_number(b, "steward_event_streams_resyncs_total", "counter",
	               "How often one had missed too much, and was told to load anew.", l.resyncs);
	metrics_number(b, "steward_event_streams_refused_total", "counter", "Clients refused because of too many.",
	               l.refused);
}

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	if (!f)
		return 0;
	if (fscanf(f, "%*u %llu", &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void repeated_write(struct buf *b, const struct service *s)
{
	uint64_t all = 0;
	for (unsigned l = 0; l < s->lanes; l++)
		all += atomic_load_explicit(&s->loop[l].repeated, memory_order_relaxed);
	metrics_number(b, "steward_answers_kept_total", "counter",
	               "Answers that were given again as they were, because nothing had changed.", all);
}

static void process_write(struct buf *b, const struct service *s)
{
	struct rusage use;
	metrics_head(b, "steward_build_info", "gauge", "Always 1; the labels say what runs.");
	buf_printf(b, "steward_build_info{version=\"%s\",engine=\"%s\"} 1\n", STEWARD_VERSION,
	           s->engine ? s->engine : "");
	seconds(b, "steward_uptime_seconds", "gauge", "Time since the start.",
	        (double)(clock_mono_us() - s->started_us) / 1e6);
	metrics_number(b, "process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes());
	if (getrusage(RUSAGE_SELF, &use) == 0)
		seconds(b, "process_cpu_seconds_total", "counter", "User and system time.",
		        (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
		                (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6);
}

static void access_write(struct buf *b, const struct service *s)
{
	metrics_number(b, "steward_access_failures_total", "counter",
	               "Attempts that failed to bring users, roles and networks to a cluster.", s->access_failures);
	metrics_number(b, "steward_access_behind", "gauge", "Clusters whose last such attempt failed.",
	               s->access_behind);
	metrics_number(b, "steward_access_unconfirmed_total", "counter",
	               "Answers that said that rights taken away may still be in force.", s->access_unconfirmed);
}

void metrics_write(struct buf *b, struct service *s)
{
	struct sums *all = must_calloc(catalog_op_count + 1, sizeof *all);
	for (unsigned op = 0; op <= catalog_op_count; op++)
		sums_take(s, op, &all[op]);
	process_write(b, s);
	requests_write(b, all);
	repeated_write(b, s);
	latency_write(b, all);
	http_write(b, s->http);
	buffers_write(b, s->http);
	streams_write(b, s->live);
	limiter_write(b, s->limiter);
	attempts_write(b, s->attempts);
	store_write_stats(b, s->store);
	access_write(b, s);
	if (s->metrics_more)
		s->metrics_more(b, s);
	free(all);
}

/* The page. Normally each scrape gets a fresh page. When many have asked and not read it yet, everybody gets the
 * existing one: 4,000 copies for clients that did not read took 3 GB. */

#define PAGE_WAITING 8     /* this many requests have a page and have not read it */
#define PAGE_US 1000000    /* how long the existing page is then good enough */
#define PAGES_A_SECOND 50u /* new pages per second, however fast they are read */

struct page {
	atomic_uint refs;
	int64_t made_us;
	struct buf text;
};

static pthread_mutex_t page_lock = PTHREAD_MUTEX_INITIALIZER;
static struct page *page_kept;
static int64_t page_second;
static unsigned page_count; /* made in that second */

static void page_unref(void *arg)
{
	struct page *p = arg;
	if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	buf_free(&p->text);
	free(p);
}

/* The existing page with a reference, or NULL: a new one has to be made. */
static struct page *page_find(void)
{
	int64_t now = clock_mono_us();
	struct page *p = NULL;
	pthread_mutex_lock(&page_lock);
	if (now / 1000000 != page_second) {
		page_second = now / 1000000;
		page_count = 0;
	}
	bool recent = page_kept && now - page_kept->made_us < PAGE_US;
	if (recent && (atomic_load(&page_kept->refs) > PAGE_WAITING || page_count >= PAGES_A_SECOND)) {
		p = page_kept;
		atomic_fetch_add(&p->refs, 1);
	} else {
		page_count++;
	}
	pthread_mutex_unlock(&page_lock);
	return p;
}

struct str metrics_page(struct service *s, struct arena *a)
{
	struct page *p = page_find();
	if (!p) {
		p = must_calloc(1, sizeof *p);
		atomic_init(&p->refs, 2);
		p->made_us = clock_mono_us();
		metrics_write(&p->text, s);
		pthread_mutex_lock(&page_lock);
		struct page *old = page_kept;
		page_kept = p;
		pthread_mutex_unlock(&page_lock);
		page_unref(old);
	}
	arena_defer(a, page_unref, p);
	return buf_view(&p->text);
}

void metrics_teardown(void)
{
	page_unref(page_kept);
	page_kept = NULL;
}

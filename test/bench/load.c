/* A load client over TLS, with HTTP/1.1 or HTTP/2, for what the usual ones cannot do: digest calls, creates with unique
 * names, full handshakes only, connections that are held idle, and the latency of one request after the other.
 *
 *	load HOST PORT PATH [option value]...     prints one line of JSON
 *	load flush DIR COUNT                     microseconds of a flush (fdatasync) after an append of 4 KB: the middle
 *
 * Certificates are not checked, as wrk and h2load do not. Counting starts once every connection has had an answer. */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SETTLE_SECONDS 20
#define FLUSH_MAX 10000

uint64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static _Noreturn void stop(const char *why, const char *what)
{
	fprintf(stderr, "load: %s %s\n", why, what);
	exit(2);
}

static void *worker_run(void *ctx)
{
	struct worker *w = ctx;
	struct epoll_event events[64];
	for (unsigned i = 0; i < w->link_count; i++)
		link_drive(&w->links[i]);
	while (atomic_load(w->phase) != PHASE_OVER) {
		int n = epoll_wait(w->poll, events, 64, 20);
		for (int i = 0; i < n; i++)
			link_drive(events[i].data.ptr);
		/* Those that were cut, or that open anew for each request. */
		if (w->plan->reconnect || n == 0)
			for (unsigned i = 0; i < w->link_count; i++)
				if (w->links[i].state == LINK_DOWN)
					link_drive(&w->links[i]);
	}
	return NULL;
}

static int micros_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void tally_add(struct tally *to, const struct tally *from)
{
	to->requests += from->requests;
	to->challenges += from->challenges;
	to->broken += from->broken;
	to->body_bytes += from->body_bytes;
	for (int i = 0; i < STATUS_MAX; i++)
		to->statuses[i] += from->statuses[i];
	to->micros = realloc(to->micros, (to->sample_count + from->sample_count + 1) * sizeof *to->micros);
	if (!to->micros)
		stop("out of", "memory");
	if (from->sample_count)
		memcpy(to->micros + to->sample_count, from->micros, from->sample_count * sizeof *to->micros);
	to->sample_count += from->sample_count;
}

static uint32_t percentile(const struct tally *t, double share)
{
	return t->sample_count ? t->micros[(size_t)(share * (double)(t->sample_count - 1))] : 0;
}

static void tally_print(struct tally *t, double seconds, const char *tls)
{
	if (t->sample_count)
		qsort(t->micros, t->sample_count, sizeof *t->micros, micros_compare);
	printf("{\"requests\": %llu, \"seconds\": %.3f, \"rate\": %.1f, \"challenges\": %llu, \"broken\": %llu, "
	       "\"bodyBytes\": %llu, \"p50us\": %u, \"p90us\": %u, \"p99us\": %u, \"tls\": \"%s\", \"statuses\": {",
	       (unsigned long long)t->requests, seconds, (double)t->requests / seconds,
	       (unsigned long long)t->challenges, (unsigned long long)t->broken, (unsigned long long)t->body_bytes,
	       percentile(t, 0.5), percentile(t, 0.9), percentile(t, 0.99), tls);
	const char *comma = "";
	for (int i = 0; i < STATUS_MAX; i++) {
		if (!t->statuses[i])
			continue;
		printf("%s\"%d\": %llu", comma, i, (unsigned long long)t->statuses[i]);
		comma = ", ";
	}
	printf("}}\n");
	fflush(stdout);
}

/* Version, cipher and key exchange of a connection, to show that both sides do the same work. */
static void tls_describe(const struct worker *w, char *ret_text, size_t size)
{
	ret_text[0] = '\0';
	for (unsigned i = 0; i < w->link_count; i++) {
		const SSL *ssl = w->links[i].ssl;
		if (!ssl || !SSL_is_init_finished(ssl))
			continue;
		int group = (int)SSL_get_negotiated_group(w->links[i].ssl);
		const char *name = OBJ_nid2sn(group);
		snprintf(ret_text, size, "%s %s %s", SSL_get_version(ssl), SSL_get_cipher_name(ssl), name ? name : "?");
		return;
	}
}

static void wait_until(uint64_t until, const struct plan *p, atomic_ullong *done)
{
	while (now_us() < until && (!p->count || atomic_load(done) < p->count))
		usleep(p->count ? 500 : 5000);
}

/* All connections have had an answer. */
static void wait_settled(const struct plan *p, atomic_uint *settled)
{
	uint64_t until = now_us() + SETTLE_SECONDS * 1000000ull;
	while (atomic_load(settled) < p->connections) {
		if (now_us() > until) {
			fprintf(stderr, "load: only %u of %u connections had an answer within %d s\n",
			        atomic_load(settled), p->connections, SETTLE_SECONDS);
			exit(3);
		}
		usleep(500);
	}
	usleep((useconds_t)(p->settle * 1e6));
}

static void worker_setup(struct worker *w, const struct plan *p, SSL_CTX *tls, unsigned first, unsigned count)
{
	w->plan = p;
	w->tls = tls;
	w->poll = epoll_create1(EPOLL_CLOEXEC);
	w->link_count = count;
	w->links = calloc(count ? count : 1, sizeof *w->links);
	if (!w->links || w->poll < 0)
		stop("out of", "memory");
	for (unsigned i = 0; i < count; i++)
		w->links[i] = (struct link){.worker = w, .number = first + i, .fd = -1};
}

static void plan_run(const struct plan *p)
{
	atomic_uint settled = 0;
	atomic_int phase = PHASE_SETTLING;
	atomic_ullong done = 0, made = 0;
	struct worker *workers = calloc(p->threads, sizeof *workers);
	pthread_t *threads = calloc(p->threads, sizeof *threads);
	SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
	struct tally sum = {0};
	char described[128], byte;
	if (!workers || !threads || !tls)
		stop("out of", "memory");
	SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
	if (p->streams && SSL_CTX_set_alpn_protos(tls, (const unsigned char *)"\2h2", 3) != 0)
		stop("no ALPN", "h2");
	SSL_CTX_set_read_ahead(tls, 1); /* one read for a record, not one for its header and one for the rest */
	for (unsigned i = 0; i < p->threads; i++) {
		unsigned first = p->connections * i / p->threads, last = p->connections * (i + 1) / p->threads;
		worker_setup(&workers[i], p, tls, first, last - first);
		workers[i].settled = &settled;
		workers[i].phase = &phase;
		workers[i].done = &done;
		workers[i].made = &made;
		if (pthread_create(&threads[i], NULL, worker_run, &workers[i]) != 0)
			stop("cannot start", "a thread");
	}
	wait_settled(p, &settled);
	if (p->hold) {
		printf("{\"held\": %u}\n", p->connections);
		fflush(stdout);
		while (read(0, &byte, 1) > 0)
			continue;
	}
	uint64_t start = now_us();
	atomic_store(&phase, PHASE_COUNTING);
	if (!p->hold)
		wait_until(start + (uint64_t)(p->seconds * 1e6), p, &done);
	atomic_store(&phase, PHASE_OVER);
	double seconds = (double)(now_us() - start + 1) / 1e6;
	for (unsigned i = 0; i < p->threads; i++) {
		pthread_join(threads[i], NULL);
		tally_add(&sum, &workers[i].tally);
	}
	tls_describe(&workers[0], described, sizeof described);
	tally_print(&sum, seconds, described);
	for (unsigned i = 0; i < p->threads; i++) {
		for (unsigned k = 0; k < workers[i].link_count; k++)
			link_down(&workers[i].links[k]);
		free(workers[i].links);
		free(workers[i].tally.micros);
		close(workers[i].poll);
	}
	SSL_CTX_free(tls);
	free(workers);
	free(threads);
	free(sum.micros);
}

static double number_of(const char *name, const char *text, double max)
{
	char *end;
	double value = strtod(text, &end);
	if (*end || end == text || !(value >= 0 && value <= max))
		stop("not a number that fits:", name);
	return value;
}

static void option_take(struct plan *p, const char *name, const char *value)
{
	const struct {
		const char *name;
		const char **text;
		unsigned *number;
		bool *yes;
	} rows[] = {
	        {"accept", &p->accept},
	        {"bearer", &p->bearer},
	        {"user", &p->user},
	        {"password", &p->password},
	        {"post", &p->post},
	        {"run", &p->run},
	        {"connections", .number = &p->connections},
	        {"threads", .number = &p->threads},
	        {"streams", .number = &p->streams},
	        {"reconnect", .yes = &p->reconnect},
	        {"hold", .yes = &p->hold},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		if (rows[i].text)
			*rows[i].text = value;
		else if (rows[i].number)
			*rows[i].number = (unsigned)number_of(name, value, 100000);
		else
			*rows[i].yes = strcmp(value, "yes") == 0;
		return;
	}
	if (strcmp(name, "seconds") == 0)
		p->seconds = number_of(name, value, 3600);
	else if (strcmp(name, "settle") == 0)
		p->settle = number_of(name, value, 60);
	else if (strcmp(name, "count") == 0)
		p->count = (uint64_t)number_of(name, value, 1e12);
	else
		stop("no such option:", name);
}

static void flush_measure(const char *dir, unsigned count)
{
	static uint32_t micros[FLUSH_MAX];
	char path[4096], block[4096] = {1};
	snprintf(path, sizeof path, "%s/flush.XXXXXX", dir);
	int fd = mkstemp(path);
	if (fd < 0)
		stop("cannot write in", dir);
	unlink(path);
	count = count < 1 ? 1 : count > FLUSH_MAX ? FLUSH_MAX : count;
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = now_us();
		if (write(fd, block, sizeof block) != (ssize_t)sizeof block || fdatasync(fd) < 0)
			stop("cannot flush:", strerror(errno));
		micros[i] = (uint32_t)(now_us() - start);
	}
	close(fd);
	qsort(micros, count, sizeof *micros, micros_compare);
	printf("{\"flushes\": %u, \"p50us\": %u, \"p90us\": %u}\n", count, micros[count / 2], micros[count * 9 / 10]);
}

int main(int argc, char **argv)
{
	static struct plan plan = {
	        .accept = "application/json", .run = "0", .connections = 16, .threads = 2, .seconds = 5};
	signal(SIGPIPE, SIG_IGN);
	if (argc == 4 && strcmp(argv[1], "flush") == 0) {
		flush_measure(argv[2], (unsigned)strtoul(argv[3], NULL, 10));
		return 0;
	}
	if (argc < 4 || argc % 2 != 0)
		stop("usage:", "load HOST PORT PATH [option value]... | load flush DIR COUNT");
	plan.host = argv[1];
	plan.port = argv[2];
	plan.path = argv[3];
	for (int i = 4; i + 1 < argc; i += 2)
		option_take(&plan, argv[i], argv[i + 1]);
	if (!plan.connections || !plan.threads || !plan.user != !plan.password)
		stop("no connections, no threads, or a user without", "password");
	if (plan.streams && (plan.user || plan.reconnect || plan.hold))
		stop("streams are for calls with a bearer token on connections that stay", "");
	if (plan.threads > plan.connections)
		plan.threads = plan.connections;
	plan_prepare(&plan);
	plan_run(&plan);
	return 0;
}

/* Start, stop, drain, statistics. Each loop has its own listening socket on the same port (SO_REUSEPORT), so that the
 * kernel distributes connections and no loop waits for another. */
#include "http/loop.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define INNER_MAX 4096 /* connections of the inner port */
#define INNER_PER_ADDRESS 1024
/* A hundred requests that came in one piece were a millisecond for which all others of the loop waited. */
#define REQUESTS_A_TURN 32

struct http_server {
	struct http_app app;
	struct http_options options;
	struct tls *tls, *inner_tls;
	struct peers *peers, *inner_peers;
	struct budget *budget;
	int port, inner_port;
	unsigned loop_count;
	struct loop **loops;
	sem_t started;
};

static void env_post(struct conn_env *env, struct post *p)
{
	loop_post(env->owner, p);
}

/* "127.0.0.1:8443", "[::1]:8443", ":8443". */
static int address_resolve(const char *listen_on, struct addrinfo **ret_list)
{
	char host[256];
	const char *colon = strrchr(listen_on, ':');
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	size_t n = colon ? (size_t)(colon - listen_on) : sizeof host;
	if (n >= sizeof host) {
		fprintf(stderr, "steward: listen: must be HOST:PORT, not %s\n", listen_on);
		return -EINVAL;
	}
	bool bracketed = n >= 2 && listen_on[0] == '[' && colon[-1] == ']';
	snprintf(host, sizeof host, "%.*s", (int)(bracketed ? n - 2 : n), listen_on + bracketed);
	int e = getaddrinfo(host[0] ? host : NULL, colon + 1, &hints, ret_list);
	if (e) {
		fprintf(stderr, "steward: listen: %s: %s\n", listen_on, gai_strerror(e));
		return -EINVAL;
	}
	return 0;
}

static int port_of(int fd)
{
	struct sockaddr_storage ss = {0};
	socklen_t n = sizeof ss;
	if (getsockname(fd, (struct sockaddr *)&ss, &n) < 0)
		return -1;
	if (ss.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&ss)->sin6_port);
	return ntohs(((struct sockaddr_in *)&ss)->sin_port);
}

static void port_set(struct addrinfo *a, int port)
{
	if (a->ai_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)a->ai_addr)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)(void *)a->ai_addr)->sin_port = htons((uint16_t)port);
}

/* `shared`: with SO_REUSEPORT, listening. Otherwise it only binds, to check that the port is free: with SO_REUSEPORT
 * alone a second server of the same user would silently take half of the connections. */
static int socket_bind(const struct addrinfo *a, bool shared)
{
	int one = 1, fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (shared)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
	if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || (shared && listen(fd, 4096) < 0)) {
		int e = errno;
		close(fd);
		return -e;
	}
	return fd;
}

static int listeners_open(struct http_server *s, const char *address, bool inner)
{
	struct addrinfo *a;
	int r = address_resolve(address, &a), *port = inner ? &s->inner_port : &s->port;
	if (r < 0)
		return r;
	int probe = socket_bind(a, false);
	if (probe >= 0) {
		*port = port_of(probe);
		port_set(a, *port);
		close(probe);
	}
	r = probe;
	for (unsigned i = 0; r >= 0 && i < s->loop_count; i++) {
		r = socket_bind(a, true);
		*(inner ? &s->loops[i]->inner : &s->loops[i]->listener) = r;
	}
	freeaddrinfo(a);
	if (r < 0) {
		fprintf(stderr, "steward: cannot listen on %s: %s\n", address, strerrordesc_np(-r));
		return r;
	}
	return 0;
}

static void loops_make(struct http_server *s)
{
	s->loops = must_calloc(s->loop_count, sizeof *s->loops);
	for (unsigned i = 0; i < s->loop_count; i++) {
		struct loop *l = s->loops[i] = must_calloc(1, sizeof *l);
		l->env = conn_env_new(&s->app, &s->options, i);
		l->env->budget = s->budget;
		l->env->wake = sock_wake;
		l->env->requests_a_turn = REQUESTS_A_TURN;
		l->env->post = env_post;
		l->env->owner = l;
		l->tls = s->tls;
		l->inner_tls = s->inner_tls;
		l->peers = s->peers;
		l->inner_peers = s->inner_peers;
		l->started = &s->started;
		l->epoll = l->wakeup = l->listener = l->inner = -1;
	}
}

static void loop_free(struct loop *l)
{
	if (l->epoll >= 0)
		close(l->epoll);
	if (l->wakeup >= 0)
		close(l->wakeup);
	if (l->listener >= 0)
		close(l->listener);
	if (l->inner >= 0)
		close(l->inner);
	conn_env_free(l->env);
	free(l);
}

static void server_free(struct http_server *s)
{
	bool abandoned = false;
	for (unsigned i = 0; s->loops && i < s->loop_count; i++) {
		if (s->loops[i]->abandoned)
			abandoned = true;
		else
			loop_free(s->loops[i]);
	}
	free(s->loops);
	tls_free(s->tls);
	tls_free(s->inner_tls);
	peers_free(s->peers);
	peers_free(s->inner_peers);
	sem_destroy(&s->started);
	/* A request that was never answered may still be answered, and that would use this memory. */
	if (!abandoned) {
		budget_free(s->budget);
		free(s);
	}
}

/* Signals go to the main thread only; SIGPIPE is ignored. */
static int loops_start(struct http_server *s)
{
	sigset_t all, old;
	unsigned started = 0;
	int r = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (started < s->loop_count && r == 0)
		if ((r = loop_start(s->loops[started])) == 0)
			started++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	for (unsigned i = 0; i < started; i++)
		while (sem_wait(&s->started) < 0)
			;
	if (r == 0)
		return 0;
	fprintf(stderr, "steward: cannot start a thread: %s\n", strerrordesc_np(-r));
	for (unsigned i = 0; i < started; i++) {
		loop_drain(s->loops[i], 1);
		pthread_join(s->loops[i]->thread, NULL);
	}
	return r;
}

static void files_raise(unsigned want)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < (rlim_t)want + 512 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max < (rlim_t)want + 512 ? l.rlim_max : (rlim_t)want + 512;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

int http_start(const struct http_options *options, const struct http_app *app, struct http_server **ret_server)
{
	struct http_server *s = must_calloc(1, sizeof *s);
	s->app = *app;
	s->options = *options;
	http_options_default(&s->options);
	s->loop_count = s->options.threads;
	sem_init(&s->started, 0, 0);
	files_raise(s->options.connections_max + (options->inner ? INNER_MAX : 0));
	s->peers = peers_new(s->options.connections_max, s->options.connections_per_address);
	/* Those who fill the public port keep no host out. */
	s->inner_peers = options->inner ? peers_new(INNER_MAX, INNER_PER_ADDRESS) : NULL;
	s->budget = budget_new(s->options.buffer_max);
	int r = tls_new(options->cert_file, options->key_file, &s->tls);
	if (r == 0 && options->inner)
		r = tls_new_inner(options->inner, &s->inner_tls);
	if (r == 0) {
		loops_make(s);
		r = listeners_open(s, s->options.listen, false);
	}
	if (r == 0 && options->inner)
		r = listeners_open(s, options->inner->listen, true);
	s->options.inner = NULL;
	if (r == 0 && s->options.bound)
		s->options.bound(s->options.bound_ctx, s->port);
	if (r == 0)
		r = loops_start(s);
	if (r < 0) {
		server_free(s);
		return r;
	}
	*ret_server = s;
	return 0;
}

int http_port(const struct http_server *s)
{
	return s->port;
}

int http_inner_port(const struct http_server *s)
{
	return s->inner_port;
}

int http_inner_renew(struct http_server *s, const struct http_inner *inner)
{
	return s->inner_tls ? tls_renew_inner(s->inner_tls, inner) : 0;
}

int http_reload_certificate(struct http_server *s)
{
	return tls_reload(s->tls);
}

void http_rotate_keys(struct http_server *s)
{
	tls_rotate(s->tls);
	if (s->inner_tls)
		tls_rotate(s->inner_tls);
}

void http_drain_and_stop(struct http_server *s, unsigned seconds)
{
	if (!s)
		return;
	int64_t until = clock_mono_us() + (int64_t)seconds * 1000000;
	for (unsigned i = 0; i < s->loop_count; i++)
		loop_drain(s->loops[i], until);
	for (unsigned i = 0; i < s->loop_count; i++) {
		pthread_join(s->loops[i]->thread, NULL);
		if (s->loops[i]->abandoned)
			log_warn("stopped while %zu requests were still being worked on", s->loops[i]->env->live);
	}
	server_free(s);
}

void http_stats(const struct http_server *s, struct http_stats *ret_stats)
{
	enum { FIELDS = sizeof(struct http_stats) / sizeof(uint64_t) };
	uint64_t sum[FIELDS] = {0};
	for (unsigned i = 0; i < s->loop_count; i++) {
		const uint64_t *from = (const uint64_t *)(const void *)&s->loops[i]->env->stats;
		for (size_t f = 0; f < FIELDS; f++)
			sum[f] += __atomic_load_n(&from[f], __ATOMIC_RELAXED);
	}
	memcpy(ret_stats, sum, sizeof sum);
}

void http_buffered(const struct http_server *s, size_t *ret_bytes, size_t *ret_max)
{
	*ret_bytes = budget_used(s->budget);
	*ret_max = budget_max(s->budget);
}

struct visit {
	struct post post;
	void (*fn)(void *ctx, unsigned loop);
	void *ctx;
	unsigned loop;
	sem_t *done;
};

static void run_visit(struct post *p)
{
	struct visit *v = (struct visit *)(void *)p;
	v->fn(v->ctx, v->loop);
	sem_post(v->done);
}

void http_each_loop(struct http_server *s, void (*fn)(void *ctx, unsigned loop), void *ctx)
{
	sem_t done;
	sem_init(&done, 0, 0);
	struct visit *visits = must_calloc(s->loop_count, sizeof *visits);
	for (unsigned i = 0; i < s->loop_count; i++) {
		visits[i] = (struct visit){{.run = run_visit}, fn, ctx, i, &done};
		loop_post(s->loops[i], &visits[i].post);
	}
	for (unsigned i = 0; i < s->loop_count; i++)
		while (sem_wait(&done) < 0)
			;
	sem_destroy(&done);
	free(visits);
}

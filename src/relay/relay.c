/* The ports, and the threads. The first thread accepts; connections go to the one that has the fewest. */
#include "relay/relay.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "relay/pass.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 64
#define SWEEP_US INT64_C(1000000)
#define WAITING 512 /* that the kernel keeps at a port until they are taken */

/* --- threads */

static bool turn(struct loop *l, const struct epoll_event *events, int count)
{
	bool stops = false;
	for (int i = 0; i < count; i++) {
		enum waits waits = *(const enum waits *)events[i].data.ptr;
		if (waits == WAITS_END)
			pass_turn(l, events[i].data.ptr, events[i].events);
		else if (waits == WAITS_RELAY)
			passes_accept(events[i].data.ptr);
		stops |= waits == WAITS_STOP;
	}
	return stops;
}

static void *loop_run(void *ctx)
{
	struct loop *l = ctx;
	struct epoll_event events[EVENTS];
	int64_t swept = clock_mono_us();
	bool stops = false;
	while (!stops) {
		int count = epoll_wait(l->epoll, events, EVENTS, (int)(SWEEP_US / 1000));
		stops = turn(l, events, count < 0 ? 0 : count);
		int64_t now = clock_mono_us();
		bool sweep = now - swept >= SWEEP_US;
		passes_tidy(l, sweep);
		swept = sweep ? now : swept;
	}
	return NULL;
}

static int loop_start(struct relays *all, struct loop *l)
{
	static enum waits stop = WAITS_STOP;
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &stop};
	l->relays = all;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, all->stop, &ev) < 0)
		return -errno;
	/* A peer that is gone shall not end the process. */
	sigset_t blocked, before;
	sigfillset(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	int r = -pthread_create(&l->thread, NULL, loop_run, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static unsigned threads_usual(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	return n < 1 ? 1 : n > 4 ? 4 : (unsigned)n;
}

/* Descriptors of a connection: its ends. */
#define DESCRIPTORS 2

/* Asks for them, beside what there is. Connections that there can be: the rest of the process needs some too. */
static unsigned descriptors_ask(unsigned connections)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return connections;
	rlim_t before = l.rlim_cur, want = before + (rlim_t)DESCRIPTORS * connections;
	l.rlim_cur = want < l.rlim_max ? want : l.rlim_max;
	rlim_t more = l.rlim_cur > before && setrlimit(RLIMIT_NOFILE, &l) == 0 ? l.rlim_cur - before : 0;
	rlim_t can = (more > before / 2 ? more : before / 2) / DESCRIPTORS;
	return can < connections ? (unsigned)can + 1 : connections;
}

int relays_start(const struct relays_options *o, struct relays **ret_relays)
{
	struct relays *all = must_calloc(1, sizeof *all);
	all->options = *o;
	struct relays_options *mine = &all->options;
	mine->connections = o->connections ? o->connections : 10000;
	mine->connections_one = o->connections_one ? o->connections_one : 4000;
	mine->connect_ms = o->connect_ms ? o->connect_ms : 5000;
	mine->stall_ms = o->stall_ms ? o->stall_ms : 900000;
	all->loop_count = o->threads ? o->threads : threads_usual();
	if (all->loop_count > LOOPS_MAX)
		all->loop_count = LOOPS_MAX;
	pthread_mutex_init(&all->lock, NULL);
	for (size_t i = 0; i < LOOPS_MAX; i++) {
		pthread_mutex_init(&all->loops[i].lock, NULL);
		all->loops[i].epoll = -1;
	}
	mine->connections = descriptors_ask(mine->connections);
	all->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	all->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int r = all->stop < 0 || all->reserve < 0 ? -errno : 0;
	for (; r == 0 && all->started < all->loop_count; all->started += r == 0)
		r = loop_start(all, &all->loops[all->started]);
	if (r < 0) {
		log_error("relay: cannot start: %s", strerror(-r));
		relays_stop(all);
		return r;
	}
	*ret_relays = all;
	return 0;
}

/* --- ports */

struct sockaddr_in relay_address(const struct ip *ip, unsigned port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	memcpy(&at.sin_addr, ip->b + 12, 4);
	return at;
}

static int port_bind(struct relay *r)
{
	struct sockaddr_in at = relay_address(&r->address, r->port);
	static const int on = 1;
	socklen_t size = sizeof at;
	int fd = ip_is_v4(&r->address) ? socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
	if (fd < 0)
		return ip_is_v4(&r->address) ? -errno : -EAFNOSUPPORT;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, WAITING) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &size) < 0) {
		int error = -errno;
		close(fd);
		return error;
	}
	r->port = ntohs(at.sin_port);
	r->fd = fd;
	return 0;
}

static struct relay *relay_find(struct relays *all, const char *name)
{
	for (struct relay *r = all->list; r; r = r->next)
		if (r->open && strcmp(r->name, name) == 0)
			return r;
	return NULL;
}

/* A closed one whose connections have all ended, or a new one. */
static struct relay *relay_make(struct relays *all)
{
	for (struct relay *r = all->list; r; r = r->next)
		if (!r->open && atomic_load(&r->connections) == 0)
			return r;
	struct relay *r = must_calloc(1, sizeof *r);
	*r = (struct relay){.waits = WAITS_RELAY, .relays = all, .fd = -1, .next = all->list};
	pthread_mutex_init(&r->lock, NULL);
	all->list = r;
	return r;
}

static void allowed_set(struct relay *r, const struct relay_wish *wish)
{
	struct cidr *allowed = must_calloc(wish->allowed_count + 1, sizeof *allowed);
	if (wish->allowed_count)
		memcpy(allowed, wish->allowed, wish->allowed_count * sizeof *allowed);
	pthread_mutex_lock(&r->lock);
	free(r->allowed);
	r->allowed = allowed;
	r->allowed_count = wish->allowed_count;
	r->open = true;
	pthread_mutex_unlock(&r->lock);
}

/* Nobody new, then nobody at all. */
static void relay_shut(struct relays *all, struct relay *r)
{
	pthread_mutex_lock(&r->lock);
	r->open = false;
	close(r->fd);
	pthread_mutex_unlock(&r->lock);
	passes_cut(all, r, true);
}

static int relay_begin(struct relays *all, const struct relay_wish *wish)
{
	struct relay *r = relay_make(all);
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = r};
	str_copy(str_of(wish->name), r->name, sizeof r->name);
	r->address = wish->address;
	r->source = wish->source;
	r->port = wish->port;
	int result = port_bind(r);
	if (result < 0)
		return result;
	allowed_set(r, wish);
	if (epoll_ctl(all->loops[0].epoll, EPOLL_CTL_ADD, r->fd, &ev) < 0) {
		result = -errno;
		relay_shut(all, r);
	}
	return result;
}

int relay_open(struct relays *all, const struct relay_wish *wish, unsigned *ret_port)
{
	int result = 0;
	pthread_mutex_lock(&all->lock);
	struct relay *r = relay_find(all, wish->name);
	bool moves = r && (!ip_equal(&r->address, &wish->address) || !ip_equal(&r->source, &wish->source) ||
	                   (wish->port && r->port != wish->port));
	if (moves)
		relay_shut(all, r);
	if (!r || moves) {
		result = relay_begin(all, wish);
	} else {
		allowed_set(r, wish);
		passes_cut(all, r, false);
	}
	r = relay_find(all, wish->name);
	*ret_port = r ? r->port : 0;
	pthread_mutex_unlock(&all->lock);
	return result;
}

static bool is_named(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

void relays_keep(struct relays *all, const char *prefix, const char *const *names, size_t count)
{
	pthread_mutex_lock(&all->lock);
	for (struct relay *r = all->list; r; r = r->next)
		if (r->open && str_starts(str_of(r->name), str_of(prefix)) && !is_named(r->name, names, count))
			relay_shut(all, r);
	pthread_mutex_unlock(&all->lock);
}

void relays_review(struct relays *all, relay_allowed *allowed, void *ctx)
{
	pthread_mutex_lock(&all->lock);
	for (struct relay *r = all->list; r; r = r->next) {
		struct relay_wish wish = {0};
		if (!r->open || !allowed(ctx, r->name, &wish.allowed, &wish.allowed_count))
			continue;
		if (wish.allowed_count) {
			allowed_set(r, &wish);
			passes_cut(all, r, false);
		} else {
			relay_shut(all, r);
		}
	}
	pthread_mutex_unlock(&all->lock);
}

struct relays_figures relays_figures(struct relays *all)
{
	struct relays_figures f = {.taken = atomic_load(&all->taken),
	                           .refused = atomic_load(&all->refused),
	                           .failed = atomic_load(&all->failed)};
	pthread_mutex_lock(&all->lock);
	for (const struct relay *r = all->list; r; r = r->next)
		f.relays += r->open;
	pthread_mutex_unlock(&all->lock);
	for (size_t i = 0; i < all->loop_count; i++)
		f.connections += atomic_load(&all->loops[i].count);
	return f;
}

void relays_stop(struct relays *all)
{
	if (!all)
		return;
	if (all->stop >= 0)
		(void)!eventfd_write(all->stop, 1);
	for (size_t i = 0; i < all->started; i++)
		pthread_join(all->loops[i].thread, NULL);
	for (size_t i = 0; i < all->loop_count; i++) {
		passes_free(&all->loops[i]);
		if (all->loops[i].epoll >= 0)
			close(all->loops[i].epoll);
	}
	while (all->list) {
		struct relay *r = all->list;
		all->list = r->next;
		if (r->open)
			close(r->fd);
		free(r->allowed);
		pthread_mutex_destroy(&r->lock);
		free(r);
	}
	for (size_t i = 0; i < LOOPS_MAX; i++)
		pthread_mutex_destroy(&all->loops[i].lock);
	pthread_mutex_destroy(&all->lock);
	if (all->stop >= 0)
		close(all->stop);
	if (all->reserve >= 0)
		close(all->reserve);
	free(all);
}

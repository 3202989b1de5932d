/* One thread's event loop. Other threads reach it through its mailbox: a lock-free list and an eventfd that is written
 * only when the list was empty. Deadlines are checked four times a second.
 *
 * Everybody's requests wait for the turn that is under way, so a turn is short whatever strangers do. Connections that
 * are open come first. New ones and their handshakes, of which one takes as long as ten requests, come after them, for
 * a moment in each turn and for a third of the time when there is much of both. A connection gets some requests and
 * some output a turn, and the deadlines are checked for a few connections at a time. Two thousand hostile connections
 * used to make the 99th percentile of another's requests five times as long: four times a second a check of all
 * deadlines took 2.4 ms, and requests stood behind a row of handshakes of half a millisecond each. */
#include "http/loop.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_US 250000
#define EVENTS 256
#define ACCEPTS_A_TURN 8
/* New connections get so much of a turn, or one handshake, and then this many times as long passes without them while
 * open connections have work. */
#define NEWCOMERS_US 200
#define NEWCOMERS_PAUSE 2
/* After the drain's deadline the application gets this long to return the requests that it holds. */
#define ABANDON_US 10000000

static void loop_wake(struct loop *l)
{
	uint64_t one = 1;
	ssize_t ignored = write(l->wakeup, &one, sizeof one);
	(void)ignored; /* it fails only when the counter is full, and then the loop wakes anyway */
}

void loop_post(struct loop *l, struct post *p)
{
	struct post *head = atomic_load_explicit(&l->mailbox, memory_order_relaxed);
	do
		p->next = head;
	while (!atomic_compare_exchange_weak_explicit(&l->mailbox, &head, p, memory_order_acq_rel,
	                                              memory_order_relaxed));
	if (!head)
		loop_wake(l);
}

static void mailbox_run(struct loop *l)
{
	struct post *newest = atomic_exchange_explicit(&l->mailbox, NULL, memory_order_acq_rel), *oldest = NULL;
	while (newest) {
		struct post *p = newest;
		newest = p->next;
		p->next = oldest;
		oldest = p;
	}
	while (oldest) {
		struct post *p = oldest;
		oldest = p->next;
		p->run(p);
	}
}

static void listen_set(struct loop *l, bool on)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = &l->listener},
	                   inner = {.events = EPOLLIN, .data.ptr = &l->inner};
	if (l->listening == on || l->listener < 0)
		return;
	epoll_ctl(l->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, l->listener, &e);
	if (l->inner >= 0)
		epoll_ctl(l->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, l->inner, &inner);
	l->listening = on;
}

static void accept_some(struct loop *l, int listener)
{
	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
		struct sockaddr_storage from;
		socklen_t n = sizeof from;
		int fd = accept4(listener, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
				/* Pause accepting for a moment: otherwise epoll would wake the loop for it again and
				 * again. */
				log_warn("cannot accept connections: %s", strerrordesc_np(errno));
				listen_set(l, false);
			}
			return;
		}
		struct ip peer = ip_from_sockaddr((struct sockaddr *)&from);
		sock_accept(l, fd, &peer, listener == l->inner);
	}
}

static void tick(struct loop *l)
{
	if (!l->tick_next && l->env->now_us - l->last_tick_us >= TICK_US) {
		l->last_tick_us = l->env->now_us;
		if (!l->draining)
			listen_set(l, true);
		l->tick_next = l->socks;
	}
	if (l->tick_next)
		socks_tick(l);
}

static void drain_begin(struct loop *l)
{
	l->draining = l->env->draining = true;
	listen_set(l, false);
	close(l->listener);
	if (l->inner >= 0)
		close(l->inner);
	l->listener = l->inner = -1;
	socks_drain(l);
}

/* True when the loop may end. */
static bool drain_step(struct loop *l)
{
	int64_t until = atomic_load(&l->drain_until_us), now = l->env->now_us;
	if (!until)
		return false;
	if (!l->draining)
		drain_begin(l);
	if (l->socks && now < until)
		return false;
	socks_close_all(l);
	if (l->env->live == 0)
		return true;
	if (!l->abandon_us)
		l->abandon_us = now + ABANDON_US;
	l->abandoned = now > l->abandon_us;
	return l->abandoned;
}

static void turn_end(const struct loop *l)
{
	const struct http_app *app = l->env->app;
	if (app->turn_end)
		app->turn_end(app->ctx, l->env->loop);
}

/* What has happened to open connections. Returns how many events are left, which are those of new ones: they come to
 * the front of the array. */
static int events_run(struct loop *l, struct epoll_event *events, int n)
{
	int left = 0;
	for (int i = 0; i < n; i++) {
		void *what = events[i].data.ptr;
		if (what == &l->wakeup) {
			uint64_t count;
			ssize_t ignored = read(l->wakeup, &count, sizeof count);
			(void)ignored;
		} else if (what == &l->listener || what == &l->inner || !sock_is_open(what)) {
			events[left++] = events[i];
		} else {
			sock_event(what, events[i].events);
		}
	}
	return left;
}

/* Connections that come, shake hands or linger. What there is no time for is reported again by the next epoll_wait(),
 * in the same order: so each turn begins with another one. `others`: open connections had work in this turn. */
static void newcomers_run(struct loop *l, const struct epoll_event *events, int n, bool others)
{
	int64_t began = clock_mono_us(), now = began;
	if (n == 0 || (others && began < l->newcomers_after_us))
		return;
	unsigned first = l->newcomers_turn++ % (unsigned)n;
	for (int i = 0; i < n && now - began < NEWCOMERS_US; i++) {
		const struct epoll_event *e = &events[(first + (unsigned)i) % (unsigned)n];
		if (e->data.ptr == &l->listener)
			accept_some(l, l->listener);
		else if (e->data.ptr == &l->inner)
			accept_some(l, l->inner);
		else
			sock_event(e->data.ptr, e->events);
		now = clock_mono_us();
	}
	l->newcomers_after_us = now + NEWCOMERS_PAUSE * (now - began);
	turn_end(l);
}

static void *loop_main(void *arg)
{
	struct loop *l = arg;
	struct conn_env *env = l->env;
	struct epoll_event events[EVENTS];
	if (env->app->loop_start)
		env->app->loop_start(env->app->ctx, env->loop);
	listen_set(l, true);
	sem_post(l->started);
	do {
		int timeout = l->ready || l->tick_next ? 0 : TICK_US / 1000;
		int n = epoll_wait(l->epoll, events, EVENTS, l->draining && timeout ? 10 : timeout);
		env->now_us = clock_mono_us();
		int newcomers = events_run(l, events, n);
		mailbox_run(l);
		socks_run_ready(l);
		turn_end(l);
		newcomers_run(l, events, newcomers, newcomers < n || l->ready);
		tick(l);
	} while (!drain_step(l));
	return NULL;
}

int loop_start(struct loop *l)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = &l->wakeup};
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->wakeup = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (l->epoll < 0 || l->wakeup < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->wakeup, &e) < 0)
		return -errno;
	return -pthread_create(&l->thread, NULL, loop_main, l);
}

/* Not by a post, which a loop that ends meanwhile would never take: it leaked at some shutdowns. */
void loop_drain(struct loop *l, int64_t until_us)
{
	atomic_store(&l->drain_until_us, until_us);
	loop_wake(l);
}

/* Connections through a relay. Each has two ends, and a flow from each to the other. Bytes are received into a buffer
 * of the thread and sent at once. Two thirds of what a message costs here is the kernel's TCP in that send; splice()
 * through a pipe costs a little more for the messages of databases, and no less for long results, which come by 8 KB,
 * and needs four more descriptors. A flow has memory of its own only while the other end does not take what was
 * received: an idle connection costs two descriptors and no buffer. An end is read only when its flow holds nothing,
 * so that a slow reader slows the writer down. */
#include "relay/pass.h"

#include "base/arena.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TURNS 16 /* chunks of one flow before others have their turn */
#define ACCEPTS 64
#define FULL_US 5000

struct end {
	enum waits waits;
	struct pass *pass;
	int fd;
	uint32_t armed;
};

struct flow {
	char *kept;        /* what the other end has not taken yet; NULL: nothing */
	size_t sent, held; /* of it: gone, and still to go */
	bool ended, shut;  /* nothing more comes; and the other end was told so */
};

struct pass {
	struct pass *prev, *next;
	struct loop *loop;
	struct relay *relay;
	struct ip client;
	struct end ends[2];   /* the client's, the target's */
	struct flow flows[2]; /* from that end to the other */
	bool connecting, over;
	_Atomic bool cut;
	int64_t moved_ms; /* when it was begun, or bytes came or went last */
};

static int64_t now_ms(void)
{
	return clock_mono_us() / 1000;
}

/* --- the end of one */

/* Closed without a farewell, so that nothing stays behind, nor goes on being sent from the kernel's buffers. */
static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

static void pass_end(struct pass *p)
{
	struct loop *l = p->loop;
	if (p->over)
		return;
	p->over = true;
	pthread_mutex_lock(&l->lock);
	if (p->prev)
		p->prev->next = p->next;
	else
		l->passes = p->next;
	if (p->next)
		p->next->prev = p->prev;
	for (int i = 0; i < 2; i++) {
		if (atomic_load(&p->cut))
			setsockopt(p->ends[i].fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		close(p->ends[i].fd);
	}
	pthread_mutex_unlock(&l->lock);
	for (int i = 0; i < 2; i++)
		free(p->flows[i].kept);
	atomic_fetch_sub(&p->relay->connections, 1);
	atomic_fetch_sub(&l->count, 1);
	p->next = l->ended;
	l->ended = p;
}

/* --- bytes */

/* Sends what it can. -EAGAIN: nothing, now. */
static ssize_t bytes_send(int to, const char *bytes, size_t size)
{
	ssize_t n = send(to, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n < 0 ? -errno : n == 0 ? -EPIPE : n;
}

/* Receives once and sends it on. What the other end does not take is kept. How much came; 0: nothing more comes. */
static ssize_t flow_copy(struct loop *l, struct flow *f, int from, int to)
{
	ssize_t came = recv(from, l->buffer, sizeof l->buffer, MSG_DONTWAIT);
	if (came <= 0)
		return came < 0 ? -errno : 0;
	ssize_t went = bytes_send(to, l->buffer, (size_t)came);
	if (went < 0 && went != -EAGAIN && went != -EINTR)
		return went;
	went = went < 0 ? 0 : went;
	if (went == came)
		return came;
	f->held = (size_t)(came - went);
	f->sent = 0;
	f->kept = must_malloc(f->held);
	memcpy(f->kept, l->buffer + went, f->held);
	return came;
}

/* Sends what was kept. 1: some of it waits for the other end still. */
static int flow_flush(struct flow *f, int to)
{
	while (f->held) {
		ssize_t n = bytes_send(to, f->kept + f->sent, f->held);
		if (n == -EAGAIN || n == -EINTR)
			return 1;
		if (n < 0)
			return (int)n;
		f->sent += (size_t)n;
		f->held -= (size_t)n;
	}
	free(f->kept);
	f->kept = NULL;
	return 0;
}

/* The sender has ended, and all of it was sent on: so the other end is told. */
static int flow_shut(struct flow *f, int to)
{
	if (!f->ended || f->held || f->shut)
		return 0;
	f->shut = true;
	return shutdown(to, SHUT_WR) < 0 && errno != ENOTCONN ? -errno : 0;
}

/* Negative: the connection is over. */
static int flow_move(struct pass *p, int i)
{
	struct flow *f = &p->flows[i];
	int from = p->ends[i].fd, to = p->ends[1 - i].fd;
	if (f->held) {
		size_t before = f->held;
		int r = flow_flush(f, to);
		if (f->held < before)
			p->moved_ms = now_ms();
		if (r != 0)
			return r < 0 ? r : 0;
	}
	for (int turn = 0; turn < TURNS && !f->ended && !f->held; turn++) {
		ssize_t n = flow_copy(p->loop, f, from, to);
		if (n == -EAGAIN || n == -EINTR)
			break;
		if (n < 0)
			return (int)n;
		f->ended = n == 0;
		p->moved_ms = n > 0 ? now_ms() : p->moved_ms;
		if ((size_t)n < sizeof p->loop->buffer)
			break; /* there is more only if the kernel says so again */
	}
	return flow_shut(f, to);
}

/* An end from which nothing is wanted now is not waited for: it would be told to have hung up, again and again. */
static void end_arm(struct pass *p, int i)
{
	struct end *e = &p->ends[i];
	const struct flow *out = &p->flows[i], *in = &p->flows[1 - i];
	uint32_t want = (!out->ended && !out->held ? EPOLLIN : 0) | (in->held ? EPOLLOUT : 0);
	if (p->connecting)
		want = i == 1 ? EPOLLOUT : 0;
	struct epoll_event ev = {.events = want, .data.ptr = e};
	int how = !want ? EPOLL_CTL_DEL : e->armed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	if (want != e->armed && epoll_ctl(p->loop->epoll, how, e->fd, &ev) == 0)
		e->armed = want;
}

static int connected(struct pass *p)
{
	int error = 0;
	socklen_t size = sizeof error;
	if (getsockopt(p->ends[1].fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error)
		return -1;
	p->connecting = false;
	return 0;
}

void pass_turn(struct loop *l, void *end, uint32_t events)
{
	struct end *e = end;
	struct pass *p = e->pass;
	int i = (int)(e - p->ends), r = 0;
	if (p->over)
		return;
	if (atomic_load(&p->cut) || ((events & EPOLLERR) && !(events & EPOLLIN)) ||
	    (p->connecting && (events & (EPOLLERR | EPOLLHUP)))) {
		if (p->connecting && i == 1)
			atomic_fetch_add(&l->relays->failed, 1);
		pass_end(p);
		return;
	}
	if (p->connecting)
		r = i == 1 ? connected(p) : 0;
	if (r == 0 && !p->connecting && (events & (EPOLLIN | EPOLLHUP)) && !p->flows[i].ended)
		r = flow_move(p, i);
	if (r == 0 && !p->connecting && (events & EPOLLOUT))
		r = flow_move(p, 1 - i);
	if (r < 0 || (p->flows[0].shut && p->flows[1].shut)) {
		pass_end(p);
		return;
	}
	end_arm(p, 0);
	end_arm(p, 1);
}

/* --- new ones */

static void socket_ready(int fd)
{
	static const int on = 1, idle = 60, every = 15, times = 4;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

/* From the relay's own source, or not at all: the target tells by it who comes. */
static int target_connect(const struct relay *r)
{
	const struct relays_options *o = &r->relays->options;
	static const int on = 1;
	struct ip ip;
	unsigned port;
	if (!o->target(o->ctx, r->name, &ip, &port) || !ip_is_v4(&ip))
		return -ENOENT;
	struct sockaddr_in to = relay_address(&ip, port), from = relay_address(&r->source, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&from, sizeof from) < 0 ||
	    (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)) {
		int error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

static void connection_refuse(struct relay *r, int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(fd);
	atomic_fetch_add(&r->relays->refused, 1);
	atomic_fetch_sub(&r->connections, 1);
}

static bool relay_allows(const struct relay *r, const struct ip *ip)
{
	for (size_t i = 0; i < r->allowed_count; i++)
		if (cidr_contains(&r->allowed[i], ip))
			return true;
	return false;
}

static bool is_welcome(struct relay *r, const struct ip *ip)
{
	pthread_mutex_lock(&r->lock);
	bool welcome = r->open && relay_allows(r, ip);
	pthread_mutex_unlock(&r->lock);
	return welcome;
}

static bool is_room(const struct relay *r)
{
	const struct relays *all = r->relays;
	unsigned count = 0;
	for (size_t i = 0; i < all->loop_count; i++)
		count += atomic_load(&all->loops[i].count);
	return count < all->options.connections && atomic_load(&r->connections) <= all->options.connections_one;
}

static struct loop *loop_choose(struct relays *all)
{
	struct loop *best = &all->loops[0];
	for (size_t i = 1; i < all->loop_count; i++)
		if (atomic_load(&all->loops[i].count) < atomic_load(&best->count))
			best = &all->loops[i];
	return best;
}

/* Whoever is taken in is in the list of its loop before who may pass can change: see passes_cut(). */
static bool pass_begin(struct relay *r, int client, int target, const struct ip *ip)
{
	struct loop *l = loop_choose(r->relays);
	struct pass *p = must_calloc(1, sizeof *p);
	*p = (struct pass){.loop = l, .relay = r, .client = *ip, .connecting = true, .moved_ms = now_ms()};
	int fds[] = {client, target};
	for (int i = 0; i < 2; i++) {
		socket_ready(fds[i]);
		p->ends[i] = (struct end){.waits = WAITS_END, .pass = p, .fd = fds[i], .armed = i ? EPOLLOUT : 0};
	}
	pthread_mutex_lock(&l->lock);
	bool good = is_welcome(r, ip);
	struct epoll_event ev = {.events = EPOLLOUT, .data.ptr = &p->ends[1]};
	good = good && epoll_ctl(l->epoll, EPOLL_CTL_ADD, target, &ev) == 0;
	if (good) {
		atomic_fetch_add(&l->count, 1);
		atomic_fetch_add(&r->relays->taken, 1);
		p->next = l->passes;
		if (p->next)
			p->next->prev = p;
		l->passes = p;
	}
	pthread_mutex_unlock(&l->lock);
	if (!good)
		free(p);
	return good;
}

static void client_take(struct relay *r, int client, const struct ip *ip)
{
	int target = is_welcome(r, ip) && is_room(r) ? target_connect(r) : -EACCES;
	if (target < 0 && target != -EACCES)
		atomic_fetch_add(&r->relays->failed, 1);
	if (target >= 0 && pass_begin(r, client, target, ip))
		return;
	if (target >= 0)
		close(target);
	connection_refuse(r, client);
}

/* No more descriptors: one is kept to turn people away with, who would wait at the port else, and keep us awake. Where
 * another thread has got that one, they wait, and we sleep a little. */
static void accept_spare(struct relay *r)
{
	struct relays *all = r->relays;
	if (all->reserve >= 0)
		close(all->reserve);
	int fd = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		atomic_fetch_add(&all->refused, 1);
	}
	all->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		usleep(FULL_US);
}

/* Under the lock, because the port may be closed, and its descriptor another's, at any time else. */
static int client_accept(struct relay *r, struct sockaddr_storage *ret_from)
{
	socklen_t size = sizeof *ret_from;
	pthread_mutex_lock(&r->lock);
	int fd = r->open ? accept4(r->fd, (struct sockaddr *)ret_from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC) : -1;
	int error = r->open ? errno : EBADF;
	if (fd >= 0)
		atomic_fetch_add(&r->connections, 1);
	else if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS)
		accept_spare(r);
	pthread_mutex_unlock(&r->lock);
	return fd >= 0 ? fd : -error;
}

void passes_accept(struct relay *r)
{
	for (int i = 0; i < ACCEPTS; i++) {
		struct sockaddr_storage from;
		int fd = client_accept(r, &from);
		if (fd < 0 && fd != -EINTR && fd != -ECONNABORTED)
			return;
		if (fd < 0)
			continue;
		struct ip ip = ip_from_sockaddr((struct sockaddr *)&from);
		client_take(r, fd, &ip);
	}
}

/* --- from outside, and now and then */

void passes_cut(struct relays *relays, struct relay *r, bool all)
{
	for (size_t i = 0; i < relays->loop_count; i++) {
		struct loop *l = &relays->loops[i];
		pthread_mutex_lock(&l->lock);
		for (struct pass *p = l->passes; p; p = p->next) {
			if (p->relay != r || (!all && is_welcome(r, &p->client)))
				continue;
			atomic_store(&p->cut, true);
			shutdown(p->ends[0].fd, SHUT_RDWR);
			shutdown(p->ends[1].fd, SHUT_RDWR);
		}
		pthread_mutex_unlock(&l->lock);
	}
}

static bool has_waited(const struct pass *p, int64_t now)
{
	const struct relays_options *o = &p->loop->relays->options;
	int64_t age = now - p->moved_ms;
	return p->connecting ? age > o->connect_ms : (p->flows[0].held || p->flows[1].held) && age > o->stall_ms;
}

void passes_tidy(struct loop *l, bool sweep)
{
	int64_t now = sweep ? now_ms() : 0;
	struct pass *next = NULL;
	if (sweep) {
		pthread_mutex_lock(&l->lock);
		next = l->passes;
		pthread_mutex_unlock(&l->lock);
	}
	/* Others put new ones before the first only; none but this thread takes any away. */
	for (struct pass *p = next; p; p = next) {
		next = p->next;
		if (atomic_load(&p->cut) || has_waited(p, now))
			pass_end(p);
	}
	while (l->ended) {
		struct pass *p = l->ended;
		l->ended = p->next;
		free(p);
	}
}

void passes_free(struct loop *l)
{
	while (l->passes)
		pass_end(l->passes);
	passes_tidy(l, false);
}

/* A connection's socket: a look at the first byte, the handshake, reading and writing through TLS, back-pressure by
 * leaving EPOLLIN out, and a close that lets the peer read the last answer. */
#include "http/loop.h"
#include "http/proxy.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_US 2000000
#define LINGER_DRAINING_US 300000
#define LINGER_BYTES (4u << 20)
#define READS_A_TURN 8
#define WRITE_A_TURN (256u << 10)
#define READY_US 300 /* for all that are ready, in a turn */
#define TICKS_A_TURN 16
#define RECORD_MAX 16384u /* bytes in one TLS record */

enum sock_state { SOCK_PROXIED, SOCK_FIRST, SOCK_HANDSHAKE, SOCK_OPEN, SOCK_LINGER };

struct sock {
	struct loop *loop;
	struct sock *prev, *next, *ready_prev, *ready_next;
	int fd;
	enum sock_state state;
	uint32_t interest;
	bool counted, in_ready, write_blocked, ended, corked;
	bool inner;      /* came by the inner port */
	bool more_input; /* we stopped reading although OpenSSL's buffer may hold more */
	SSL *ssl;        /* NULL before the first byte, and for plain HTTP, which is only refused */
	struct conn *conn;
	struct ip peer;
	int64_t since_us, deadline_us;
	size_t lingered;
};

static void ready_remove(struct sock *s)
{
	if (!s->in_ready)
		return;
	if (s->ready_prev)
		s->ready_prev->ready_next = s->ready_next;
	else
		s->loop->ready = s->ready_next;
	if (s->ready_next)
		s->ready_next->ready_prev = s->ready_prev;
	else
		s->loop->ready_last = s->ready_prev;
	s->in_ready = false;
}

static void ready_add(struct sock *s)
{
	if (s->in_ready)
		return;
	s->in_ready = true;
	s->ready_next = NULL;
	s->ready_prev = s->loop->ready_last;
	if (s->ready_prev)
		s->ready_prev->ready_next = s;
	else
		s->loop->ready = s;
	s->loop->ready_last = s;
}

void sock_wake(struct conn *c)
{
	struct sock *s = conn_owner(c);
	if (s)
		ready_add(s);
}

static void sock_close(struct sock *s)
{
	struct loop *l = s->loop;
	ready_remove(s);
	if (l->tick_next == s)
		l->tick_next = s->next;
	if (s->prev)
		s->prev->next = s->next;
	else
		l->socks = s->next;
	if (s->next)
		s->next->prev = s->prev;
	if (s->ssl) {
		/* Otherwise OpenSSL would consider the session broken and not resume it. */
		SSL_set_shutdown(s->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
		SSL_free(s->ssl);
	}
	/* close() alone is not enough: a child process that is being spawned holds a copy of the descriptor until its
	 * exec, and epoll would keep reporting events. */
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, s->fd, NULL);
	close(s->fd);
	conn_free(s->conn);
	if (s->counted)
		peers_leave(s->inner ? l->inner_peers : l->peers, &s->peer);
	ENV_COUNT(l->env, connections_open, -1);
	free(s);
}

static void interest_set(struct sock *s, uint32_t interest)
{
	if (s->interest == interest)
		return;
	struct epoll_event e = {.events = interest, .data.ptr = s};
	epoll_ctl(s->loop->epoll, EPOLL_CTL_MOD, s->fd, &e);
	s->interest = interest;
}

static bool peer_is_proxy(const struct http_options *o, const struct ip *peer)
{
	for (size_t i = 0; i < o->proxy_count; i++)
		if (cidr_contains(&o->proxies[i], peer))
			return true;
	return false;
}

void sock_accept(struct loop *l, int fd, const struct ip *peer, bool inner)
{
	if (!peers_enter(inner ? l->inner_peers : l->peers, peer)) {
		ENV_COUNT(l->env, connections_refused, 1);
		close(fd);
		return;
	}
	struct sock *s = must_calloc(1, sizeof *s);
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
	s->loop = l;
	s->fd = fd;
	s->counted = true;
	s->interest = EPOLLIN;
	s->peer = *peer;
	s->inner = inner;
	s->state = !inner && peer_is_proxy(&l->env->limits, peer) ? SOCK_PROXIED : SOCK_FIRST;
	s->since_us = l->env->now_us;
	s->deadline_us = s->since_us + (int64_t)l->env->limits.header_seconds * 1000000;
	s->next = l->socks;
	if (s->next)
		s->next->prev = s;
	l->socks = s;
	ENV_COUNT(l->env, connections_accepted, 1);
	ENV_COUNT(l->env, connections_open, 1);
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
		sock_close(s);
}

/* Bytes written, -EAGAIN, or another negative number when the connection is dead. */
static ssize_t transport_write(struct sock *s, struct str out)
{
	if (!s->ssl) {
		ssize_t n = send(s->fd, out.p, out.n, MSG_NOSIGNAL | MSG_DONTWAIT);
		return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? -EAGAIN : -EIO;
	}
	int n = SSL_write(s->ssl, out.p, (int)(out.n > (1 << 30) ? 1 << 30 : out.n));
	if (n > 0)
		return n;
	int e = SSL_get_error(s->ssl, n);
	ERR_clear_error();
	return e == SSL_ERROR_WANT_WRITE || e == SSL_ERROR_WANT_READ ? -EAGAIN : -EIO;
}

/* Bytes read, 0 at the end, -EAGAIN, or another negative number when the connection is dead. */
static ssize_t transport_read(struct sock *s)
{
	int n = SSL_read(s->ssl, s->loop->scratch, (int)sizeof s->loop->scratch);
	if (n > 0)
		return n;
	int e = SSL_get_error(s->ssl, n);
	ERR_clear_error();
	if (e == SSL_ERROR_ZERO_RETURN)
		return 0;
	return e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE ? -EAGAIN : -EIO;
}

/* We have sent everything. For a moment, input that still arrives is read and dropped: closing with unread input would
 * make the kernel discard the answer. `silent`: there was no answer. */
static void sock_linger(struct sock *s, bool silent)
{
	struct conn_env *env = s->loop->env;
	if (s->ssl && SSL_shutdown(s->ssl) < 0)
		ERR_clear_error();
	if (silent || s->ended || shutdown(s->fd, SHUT_WR) < 0) {
		sock_close(s);
		return;
	}
	conn_free(s->conn);
	s->conn = NULL;
	s->state = SOCK_LINGER;
	s->deadline_us = env->now_us + (env->draining ? LINGER_DRAINING_US : LINGER_US);
	interest_set(s, EPOLLIN);
}

static void sock_drop_input(struct sock *s)
{
	ssize_t n = recv(s->fd, s->loop->scratch, sizeof s->loop->scratch, MSG_DONTWAIT);
	if (n > 0)
		s->lingered += (size_t)n;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || s->lingered > LINGER_BYTES)
		sock_close(s);
}

/* Corking makes several records leave as few large segments. */
static void sock_cork(struct sock *s, bool on)
{
	int value = on;
	if (s->corked != on && setsockopt(s->fd, IPPROTO_TCP, TCP_CORK, &value, sizeof value) == 0)
		s->corked = on;
}

/* Sends pending output, closes when nothing follows it, sets epoll's interest. May free the socket. */
static void sock_flush(struct sock *s)
{
	size_t written = 0;
	struct str out;
	s->write_blocked = false;
	while (!conn_is_broken(s->conn) && (out = conn_output(s->conn)).n) {
		if (out.n > RECORD_MAX)
			sock_cork(s, true);
		ssize_t n = transport_write(s, out);
		if (n == -EAGAIN) {
			s->write_blocked = true;
			break;
		}
		if (n < 0) {
			sock_close(s);
			return;
		}
		conn_sent(s->conn, (size_t)n);
		written += (size_t)n;
		if (written > WRITE_A_TURN) {
			ready_add(s);
			break;
		}
	}
	sock_cork(s, false);
	if (conn_is_broken(s->conn)) {
		sock_close(s);
		return;
	}
	if (conn_is_closing(s->conn) && !conn_output(s->conn).n) {
		sock_linger(s, written == 0);
		return;
	}
	conn_account(s->conn);
	bool wants = conn_wants_input(s->conn) && !s->ended;
	if (wants && s->more_input)
		ready_add(s);
	interest_set(s, (wants ? EPOLLIN : 0u) | (s->write_blocked ? EPOLLOUT : 0u));
}

/* False when the socket was freed. */
static bool sock_read(struct sock *s)
{
	s->more_input = false;
	if (!s->ssl || s->ended)
		return true;
	for (int i = 0; i < READS_A_TURN; i++) {
		if (!conn_wants_input(s->conn))
			break;
		ssize_t n = transport_read(s);
		if (n == -EAGAIN)
			return true;
		if (n < 0) {
			sock_close(s);
			return false;
		}
		if (n == 0) {
			s->ended = true;
			conn_input_end(s->conn);
			return true;
		}
		conn_input(s->conn, (struct str){s->loop->scratch, (size_t)n});
		/* OpenSSL has no buffered bytes: another read would only cost a system call, and epoll reports new
		 * input. */
		if (!SSL_has_pending(s->ssl))
			return true;
	}
	s->more_input = true;
	return true;
}

static void sock_open(struct sock *s, enum conn_protocol protocol)
{
	s->conn = conn_new(s->loop->env, protocol, &s->peer, s->since_us);
	conn_set_owner(s->conn, s);
	s->state = SOCK_OPEN;
	s->deadline_us = INT64_MAX;
}

/* A peer on the inner port whose certificate names no host is nobody. */
static bool sock_open_inner(struct sock *s)
{
	char host[25];
	if (!tls_peer_name(s->ssl, host))
		return false;
	sock_open(s, CONN_HTTP1);
	conn_set_host(s->conn, host);
	return true;
}

static void sock_handshake(struct sock *s)
{
	struct conn_env *env = s->loop->env;
	int n = SSL_do_handshake(s->ssl);
	if (n == 1) {
		if (SSL_session_reused(s->ssl))
			ENV_COUNT(env, handshakes_resumed, 1);
		else
			ENV_COUNT(env, handshakes_full, 1);
		if (s->inner && !sock_open_inner(s)) {
			ENV_COUNT(env, handshakes_failed, 1);
			sock_close(s);
			return;
		}
		if (!s->inner)
			sock_open(s, tls_chose_http2(s->ssl) ? CONN_HTTP2 : CONN_HTTP1);
		if (env->draining)
			conn_drain(s->conn);
		if (sock_read(s))
			sock_flush(s);
		return;
	}
	int e = SSL_get_error(s->ssl, n);
	ERR_clear_error();
	if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE) {
		interest_set(s, e == SSL_ERROR_WANT_READ ? EPOLLIN : EPOLLOUT);
		return;
	}
	ENV_COUNT(env, handshakes_failed, 1);
	sock_close(s);
}

static bool looks_like_http(const char *p, size_t n)
{
	static const char *const methods[] = {"GET ",    "POST ",  "PUT ",     "HEAD ",    "PATCH ",
	                                      "DELETE ", "TRACE ", "OPTIONS ", "CONNECT ", "PRI * HTTP"};
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		size_t m = strlen(methods[i]);
		if (memcmp(p, methods[i], n < m ? n : m) == 0)
			return true;
	}
	return false;
}

static void sock_first(struct sock *s)
{
	char first[16];
	ssize_t n = recv(s->fd, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && first[0] == 0x16) {
		s->ssl = tls_accept(s->inner ? s->loop->inner_tls : s->loop->tls, s->fd);
		s->state = SOCK_HANDSHAKE;
		if (s->ssl)
			sock_handshake(s);
		else
			sock_close(s);
	} else if (n > 0 && looks_like_http(first, (size_t)n)) {
		sock_open(s, CONN_HTTP1);
		conn_refuse_plain(s->conn);
		sock_flush(s);
	} else {
		if (n > 0)
			ENV_COUNT(s->loop->env, handshakes_failed, 1);
		sock_close(s);
	}
}

/* Epoll stays quiet until so many bytes have arrived. */
static void wait_for_bytes(struct sock *s, int count)
{
	setsockopt(s->fd, SOL_SOCKET, SO_RCVLOWAT, &count, sizeof count);
}

/* A balancer's header comes first. From then on the connection counts as the client's: in limits, access lists and
 * events. The header is not optional: where the balancer adds none, a client could write one itself. */
static void sock_proxied(struct sock *s)
{
	struct loop *l = s->loop;
	struct ip client = s->peer;
	ssize_t n = recv(s->fd, l->scratch, PROXY_HEADER_MAX, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	int length = n > 0 ? proxy_header_read((struct str){l->scratch, (size_t)n}, &client) : -EINVAL;
	if (length == -EAGAIN) {
		wait_for_bytes(s, (int)n + 1);
		return;
	}
	if (length < 0 || recv(s->fd, l->scratch, (size_t)length, MSG_DONTWAIT) != length) {
		if (n > 0)
			ENV_COUNT(l->env, protocol_errors, 1);
		sock_close(s);
		return;
	}
	wait_for_bytes(s, 1);
	peers_leave(l->peers, &s->peer);
	s->counted = peers_enter(l->peers, &client);
	if (!s->counted) {
		ENV_COUNT(l->env, connections_refused, 1);
		sock_close(s);
		return;
	}
	s->peer = client;
	s->state = SOCK_FIRST;
	sock_first(s);
}

bool sock_is_open(const struct sock *s)
{
	return s->state == SOCK_OPEN;
}

void sock_event(struct sock *s, uint32_t events)
{
	if (!(events & (EPOLLIN | EPOLLOUT))) {
		sock_close(s); /* error or hang-up alone */
		return;
	}
	switch (s->state) {
	case SOCK_PROXIED: sock_proxied(s); return;
	case SOCK_FIRST: sock_first(s); return;
	case SOCK_HANDSHAKE: sock_handshake(s); return;
	case SOCK_LINGER: sock_drop_input(s); return;
	case SOCK_OPEN:
		if ((events & EPOLLIN) && !sock_read(s))
			return;
		sock_flush(s);
		return;
	}
}

void socks_run_ready(struct loop *l)
{
	/* Sockets that become ready during this loop wait for the next turn. */
	struct sock *s, *last = l->ready_last;
	int64_t until = l->ready ? clock_mono_us() + READY_US : 0;
	bool over = false;
	while (!over && (s = l->ready)) {
		over = s == last;
		ready_remove(s);
		if (s->state == SOCK_OPEN) {
			conn_continue(s->conn);
			if (!s->more_input || sock_read(s))
				sock_flush(s);
		}
		over |= clock_mono_us() >= until;
	}
}

void socks_tick(struct loop *l)
{
	int64_t now = l->env->now_us;
	struct sock *s;
	for (int i = 0; i < TICKS_A_TURN && (s = l->tick_next); i++) {
		l->tick_next = s->next;
		if (s->conn) {
			conn_tick(s->conn, now);
			if (conn_is_broken(s->conn) || conn_is_closing(s->conn) || conn_output(s->conn).n)
				sock_flush(s);
		} else if (now > s->deadline_us) {
			if (s->state != SOCK_LINGER)
				ENV_COUNT(l->env, timeouts, 1);
			sock_close(s);
		}
	}
}

void socks_drain(struct loop *l)
{
	for (struct sock *s = l->socks, *next; s; s = next) {
		next = s->next;
		if (s->state == SOCK_OPEN) {
			conn_drain(s->conn);
			sock_flush(s);
		} else if (s->state == SOCK_FIRST || s->state == SOCK_PROXIED) {
			sock_close(s);
		}
	}
}

void socks_close_all(struct loop *l)
{
	for (struct sock *s = l->socks, *next; s; s = next) {
		next = s->next;
		sock_close(s);
	}
}

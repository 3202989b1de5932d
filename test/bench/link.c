/* One TLS connection of the load client: connect, handshake, send, read, again. Edge-triggered, so that a request costs
 * one write, one read and a share of one epoll_wait: the client must not be what is measured. */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void link_down(struct link *l)
{
	/* A reset, not a farewell: thousands of ports would wait for their time to pass. */
	struct linger at_once = {.l_onoff = 1};
	if (l->fd >= 0) {
		setsockopt(l->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
		close(l->fd);
	}
	streams_end(l);
	SSL_free(l->ssl);
	l->fd = -1;
	l->ssl = NULL;
	l->state = LINK_DOWN;
}

static void link_fail(struct link *l)
{
	if (atomic_load(l->worker->phase) != PHASE_OVER)
		l->worker->tally.broken++;
	link_down(l);
}

static bool link_connect(struct link *l)
{
	const struct plan *p = l->worker->plan;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(p->port, NULL, 10))};
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = l};
	int one = 1;
	if (inet_pton(AF_INET, p->host, &to.sin_addr) != 1)
		return false;
	l->began_us = now_us();
	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	l->ssl = SSL_new(l->worker->tls);
	if (l->fd < 0 || !l->ssl || !SSL_set_fd(l->ssl, l->fd))
		return false;
	setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	SSL_set_connect_state(l->ssl);
	l->nonce[0] = '\0';
	l->state = LINK_CONNECTING;
	if (connect(l->fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
		return false;
	return epoll_ctl(l->worker->poll, EPOLL_CTL_ADD, l->fd, &event) == 0;
}

static void sample_add(struct tally *t, uint64_t micros)
{
	if (t->sample_count == t->sample_cap) {
		t->sample_cap = t->sample_cap ? 2 * t->sample_cap : 65536;
		t->micros = realloc(t->micros, t->sample_cap * sizeof *t->micros);
		if (!t->micros) {
			fputs("load: out of memory\n", stderr);
			exit(1);
		}
	}
	t->micros[t->sample_count++] = micros > UINT32_MAX ? UINT32_MAX : (uint32_t)micros;
}

static void request_start(struct link *l)
{
	if (!l->worker->plan->reconnect)
		l->began_us = now_us();
	link_compose(l);
	l->out_at = 0;
	l->head_n = 0;
	l->head_done = false;
	l->body_n = 0;
	l->state = LINK_SENDING;
}

void answer_count(struct link *l, int status, uint64_t body_n, uint64_t began_us)
{
	struct worker *w = l->worker;
	if (atomic_load_explicit(w->phase, memory_order_relaxed) == PHASE_COUNTING) {
		w->tally.requests++;
		w->tally.statuses[status]++;
		w->tally.body_bytes += body_n;
		sample_add(&w->tally, now_us() - began_us);
		if (w->plan->count)
			atomic_fetch_add(w->done, 1);
	}
	if (!l->settled) {
		l->settled = true;
		atomic_fetch_add(w->settled, 1);
	}
}

/* An answer is complete. */
static void request_end(struct link *l)
{
	struct worker *w = l->worker;
	const struct plan *p = w->plan;
	if (!(p->user && l->status == 401 && l->nonce[0] && l->nonce_count == 0))
		answer_count(l, l->status, l->body_n, l->began_us);
	else if (atomic_load_explicit(w->phase, memory_order_relaxed) == PHASE_COUNTING)
		w->tally.challenges++;
	if (p->hold && l->settled)
		l->state = LINK_HELD;
	else if (p->reconnect)
		link_down(l);
	else
		request_start(l);
}

int tls_result(const struct link *l, int r)
{
	if (r > 0)
		return 1;
	int error = SSL_get_error(l->ssl, r);
	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

static int link_send(struct link *l)
{
	size_t n = 0;
	int r = tls_result(l, SSL_write_ex(l->ssl, l->out + l->out_at, l->out_n - l->out_at, &n));
	if (r <= 0)
		return r;
	l->out_at += n;
	if (l->out_at < l->out_n)
		return 1;
	l->state = LINK_READING;
	return 0; /* the answer cannot be here yet, and its coming is an event */
}

/* Takes n bytes into the header block and the count of the body. False: not an answer that we understand. */
static bool answer_take(struct link *l, const char *bytes, size_t n)
{
	if (!l->head_done) {
		size_t room = HEAD_MAX - 1 - l->head_n, taken = n < room ? n : room, before = l->head_n;
		memcpy(l->head + l->head_n, bytes, taken);
		l->head_n += taken;
		l->head[l->head_n] = '\0';
		char *end = strstr(l->head, "\r\n\r\n");
		if (!end)
			return l->head_n < HEAD_MAX - 1;
		size_t used = (size_t)(end + 4 - l->head) - before;
		end[2] = '\0';
		l->head_done = true;
		if (!link_understand(l))
			return false;
		n -= used;
	}
	if (n > l->body_left)
		return false;
	l->body_left -= n;
	l->body_n += n;
	return true;
}

static int link_read(struct link *l)
{
	static _Thread_local char bytes[65536];
	size_t n = 0;
	int r = tls_result(l, SSL_read_ex(l->ssl, bytes, sizeof bytes, &n));
	if (r <= 0)
		return r;
	if (!answer_take(l, bytes, n))
		return -1;
	if (l->head_done && l->body_left == 0) {
		request_end(l);
		return 1;
	}
	return 1;
}

static int link_shake(struct link *l)
{
	int r = tls_result(l, SSL_do_handshake(l->ssl));
	if (r <= 0)
		return r;
	if (l->worker->plan->streams) {
		l->state = LINK_STREAMS;
		return streams_start(l) ? 1 : -1;
	}
	request_start(l);
	return 1;
}

static int link_held(struct link *l)
{
	char byte;
	size_t n = 0;
	int r = tls_result(l, SSL_read_ex(l->ssl, &byte, 1, &n));
	return r > 0 ? -1 : r; /* nothing was asked for */
}

void link_drive(struct link *l)
{
	int r = 1;
	while (r > 0) {
		if (atomic_load_explicit(l->worker->phase, memory_order_relaxed) == PHASE_OVER)
			return;
		switch (l->state) {
		case LINK_DOWN: r = link_connect(l) ? 0 : -1; break;
		case LINK_CONNECTING: l->state = LINK_HANDSHAKE; break;
		case LINK_HANDSHAKE: r = link_shake(l); break;
		case LINK_SENDING: r = link_send(l); break;
		case LINK_READING: r = link_read(l); break;
		case LINK_HELD: r = link_held(l); break;
		case LINK_STREAMS: r = streams_drive(l); break;
		}
	}
	if (r < 0)
		link_fail(l);
}

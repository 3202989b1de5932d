/* One thread: its listening socket, its connections, its mailbox. */
#ifndef STEWARD_HTTP_LOOP_H
#define STEWARD_HTTP_LOOP_H

#include "http/exchange.h"
#include "http/peers.h"
#include "http/tls.h"

#include <pthread.h>
#include <semaphore.h>

struct sock;

#define LOOP_SCRATCH (32u * 1024)

struct loop {
	struct conn_env *env;
	struct tls *tls, *inner_tls; /* inner: of the second port, or NULL */
	struct peers *peers, *inner_peers;
	pthread_t thread;
	int epoll, wakeup, listener, inner; /* inner: the second listener, or -1 */
	bool listening;
	sem_t *started;
	_Atomic(struct post *) mailbox;
	atomic_llong drain_until_us; /* 0: serving */
	int64_t last_tick_us, abandon_us;
	bool draining, abandoned; /* abandoned: the application did not return all requests in time */
	struct sock *socks;
	struct sock *ready, *ready_last; /* sockets with work that needs no event, first come first served */
	struct sock *tick_next;          /* the check of the deadlines goes on here; NULL: it is over */
	int64_t newcomers_after_us;      /* see newcomers_run() */
	unsigned newcomers_turn;
	char scratch[LOOP_SCRATCH];
};

must_check int loop_start(struct loop *l);
void loop_post(struct loop *l, struct post *p);
/* From any thread. */
void loop_drain(struct loop *l, int64_t until_us);

/* sock.c: the connections of a loop. */
void sock_accept(struct loop *l, int fd, const struct ip *peer, bool inner);
void sock_event(struct sock *s, uint32_t events);
/* Its handshake is done and its last answer is not sent yet. No event of another socket frees one that is not open. */
bool sock_is_open(const struct sock *s);
/* Some of those that are ready; the others stay so. */
void socks_run_ready(struct loop *l);
/* Checks the deadlines of some sockets, from tick_next on. */
void socks_tick(struct loop *l);
void socks_drain(struct loop *l);
void socks_close_all(struct loop *l);
void sock_wake(struct conn *c);

#endif

/* What a relay's thread has in hand; for this folder alone. */
#ifndef STEWARD_RELAY_PASS_H
#define STEWARD_RELAY_PASS_H

#include "relay/relay.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#define CHUNK ((size_t)16 << 10) /* a record of TLS has about as much */

struct pass;

/* What a loop waits for. The first thing in each of them. */
enum waits { WAITS_RELAY, WAITS_END, WAITS_STOP };

/* One port. A closed one is kept, since an event of it may still be on its way, and used again once it has no
 * connections. */
struct relay {
	enum waits waits;
	struct relay *next;
	struct relays *relays;
	char name[RELAY_NAME];
	struct ip address, source;
	unsigned port;
	_Atomic unsigned connections; /* also those that are just being taken */
	/* Under `lock`. */
	pthread_mutex_t lock;
	bool open;
	int fd;
	struct cidr *allowed;
	size_t allowed_count;
};

/* One thread. */
struct loop {
	struct relays *relays;
	pthread_t thread;
	int epoll;
	char buffer[CHUNK]; /* of one event: what was received, until it is sent or kept */
	struct pass *ended; /* of this turn: events of them may follow */
	/* Under `lock`: connections are added by the thread that accepts, cut by any, and ended by this one alone. */
	pthread_mutex_t lock;
	struct pass *passes;
	_Atomic unsigned count;
};

#define LOOPS_MAX 16
struct relays {
	struct relays_options options;
	struct loop loops[LOOPS_MAX]; /* the first one accepts */
	size_t loop_count, started;
	int stop;    /* an eventfd; readable: the threads end */
	int reserve; /* given up to take and close a connection when there are no more descriptors */
	pthread_mutex_t lock;
	struct relay *list;
	_Atomic uint64_t taken, refused, failed;
};

struct sockaddr_in relay_address(const struct ip *ip, unsigned port);

/* Takes what waits at the port. */
void passes_accept(struct relay *r);
/* One event of a connection. */
void pass_turn(struct loop *l, void *end, uint32_t events);
/* After a turn: what has ended is freed; now and then, what has waited for too long is ended. */
void passes_tidy(struct loop *l, bool sweep);
/* Cuts the connections of a relay: all, or those that it does not allow any more. From any thread. */
void passes_cut(struct relays *relays, struct relay *r, bool all);
/* The thread has ended: everything of it. */
void passes_free(struct loop *l);

#endif

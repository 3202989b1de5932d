/* Relays: ports of this host through which chosen addresses reach something else, byte for byte. A thread that relays
 * copies from socket to socket and looks at nothing. Who connects is told by the kernel's address of the peer alone:
 * nothing that a client sends, a PROXY header for example, is looked at.
 *
 * What relays hold is bounded: connections in all and for each relay, 16 KB for each direction, the time
 * that a target has to answer, and the time that a peer takes nothing of what waits for it. */
#ifndef STEWARD_RELAY_RELAY_H
#define STEWARD_RELAY_RELAY_H

#include "base/ip.h"

#define RELAY_NAME 64

struct relays;

struct relays_options {
	unsigned threads;         /* 0: one for each processor, four at most */
	unsigned connections;     /* of all relays; 0: 10000 */
	unsigned connections_one; /* of one; 0: 4000 */
	unsigned connect_ms;      /* 0: 5000 */
	unsigned stall_ms;        /* that a peer may take nothing of what waits for it; 0: 900000 */
	/* Where a new connection of that relay goes; false: nowhere, and it is closed. On a thread of the relays, which
	 * waits for it: must be quick. */
	bool (*target)(void *ctx, const char *name, struct ip *ret_ip, unsigned *ret_port);
	void *ctx;
};

/* A relay as it shall be. Borrowed for the call. */
struct relay_wish {
	const char *name; /* of at most RELAY_NAME - 1 bytes */
	struct ip address;
	unsigned port;    /* 0: a free one */
	struct ip source; /* address that it connects from */
	const struct cidr *allowed;
	size_t allowed_count;
};

struct relays_figures {
	uint64_t relays, connections, taken, refused, failed;
};

must_check int relays_start(const struct relays_options *o, struct relays **ret_relays);
/* Ends all of them. Accepts NULL. */
void relays_stop(struct relays *r);

/* Makes the relay, or changes who may use it; another address or port is another relay. When it returns, connections
 * from addresses that are not allowed any more have ended. *ret_port: where it listens. -errno of the socket. */
must_check int relay_open(struct relays *r, const struct relay_wish *wish, unsigned *ret_port);
/* Ends those whose names begin with the prefix and are none of `names`: their ports, and every connection. */
void relays_keep(struct relays *r, const char *prefix, const char *const *names, size_t count);

/* Asks of each open one who may use it now: true, with a list that is borrowed until the next question. False: it stays
 * as it is. Nobody: it ends. When it returns, connections of those who may not any more have ended. */
typedef bool relay_allowed(void *ctx, const char *name, const struct cidr **ret_list, size_t *ret_count);
void relays_review(struct relays *r, relay_allowed *allowed, void *ctx);

struct relays_figures relays_figures(struct relays *r);

#endif

/* How many connections there are, in total and per address. Shared by the loops, used only when a connection opens or
 * closes. */
#ifndef STEWARD_HTTP_PEERS_H
#define STEWARD_HTTP_PEERS_H

#include "base/ip.h"

struct peers;

/* The address as it is counted (IPv6 by its /64), and a seeded hash of it, because strangers may choose addresses. */
struct ip peer_key(const struct ip *ip);
uint64_t peer_hash(const struct ip *key, uint64_t seed);

struct peers *peers_new(unsigned max, unsigned max_per_address);
void peers_free(struct peers *p);
/* False at either limit. True counts the connection until peers_leave(). */
must_check bool peers_enter(struct peers *p, const struct ip *ip);
void peers_leave(struct peers *p, const struct ip *ip);

#endif

/* How many connections there are, in all and per address. Shared by the loops, touched only when one opens or closes.
 */
#ifndef STEWARD_HTTP_PEERS_H
#define STEWARD_HTTP_PEERS_H

#include "base/ip.h"

struct peers;

/* What an address counts as, and a hash of that: by it addresses are found that a stranger may choose. */
struct ip peer_key(const struct ip *ip);
uint64_t peer_hash(const struct ip *key, uint64_t seed);

struct peers *peers_new(unsigned max, unsigned max_per_address);
void peers_free(struct peers *p);
/* False at either limit; true counts, until peers_leave(). */
must_check bool peers_enter(struct peers *p, const struct ip *ip);
void peers_leave(struct peers *p, const struct ip *ip);

#endif

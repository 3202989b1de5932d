/* How many connections there are, in all and per address. Shared by the loops, touched only when one opens or closes.
 */
#ifndef STEWARD_HTTP_PEERS_H
#define STEWARD_HTTP_PEERS_H

#include "base/ip.h"

struct peers;

struct peers *peers_new(unsigned max, unsigned max_per_address);
void peers_free(struct peers *p);
/* False at either limit; true counts, until peers_leave(). */
must_check bool peers_enter(struct peers *p, const struct ip *ip);
void peers_leave(struct peers *p, const struct ip *ip);

#endif

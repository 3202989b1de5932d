/* Limits the memory of everything that waits in the process for a client: incomplete input, and answers that the client
 * has not read. One limit for all loops.
 *
 * Five eighths are for addresses that hold much: an address may take more while it holds less than is still free of
 * this part, so one address alone gets half of it, and a hundred get a hundredth each. The rest is for addresses that
 * hold little, and for the cost of each connection: so a new client is served even when others have taken all they can
 * get. There are only counters, no lock. */
#ifndef STEWARD_HTTP_BUDGET_H
#define STEWARD_HTTP_BUDGET_H

#include "base/ip.h"

struct budget;

struct budget *budget_new(size_t max);
void budget_free(struct budget *b); /* accepts NULL */

/* The counter of an address. IPv6 addresses count by their /64, as connections do. */
unsigned budget_place(const struct budget *b, const struct ip *ip);
/* Whether that address may hold so much more. Takes nothing itself. A NULL budget always admits. */
bool budget_admits(const struct budget *b, unsigned place, size_t more);
/* Changes what a holder counts, from the old amount to the new one. Accepts NULL. */
void budget_move(struct budget *b, unsigned place, size_t from, size_t to);

size_t budget_used(const struct budget *b);
size_t budget_max(const struct budget *b);

#endif

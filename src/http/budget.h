/* How much memory everything may take that waits in the process for a client: input that is not complete, answers that are
 * not taken. One number for all loops.
 *
 * Five eighths are shared by the greedy: an address may take more while it holds less than is still free of them, so one
 * alone gets half of that part, and a hundred get a hundredth each. The rest is for addresses that hold little, and for what
 * each connection costs: it is why somebody new is served while others have taken all they can get. Counters only: nothing
 * is locked. */
#ifndef STEWARD_HTTP_BUDGET_H
#define STEWARD_HTTP_BUDGET_H

#include "base/ip.h"

struct budget;

struct budget *budget_new(size_t max);
void budget_free(struct budget *b); /* accepts NULL */

/* Where an address is counted. IPv6 by its /64, as connections are. */
unsigned budget_place(const struct budget *b, const struct ip *ip);
/* Whether that address may hold so much more. Asking takes nothing. NULL: always. */
bool budget_admits(const struct budget *b, unsigned place, size_t more);
/* What a holder held and what it holds now. Accepts NULL. */
void budget_move(struct budget *b, unsigned place, size_t from, size_t to);

size_t budget_used(const struct budget *b);
size_t budget_max(const struct budget *b);

#endif

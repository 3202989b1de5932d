/* Failed sign-ins, counted so that guessing is slow and nobody is locked out by somebody else's.
 *
 * Counted are failures of a name (key, account, invitation) from an address, and of an address. Where one of both is used up,
 * sign-ins of that name from there are refused for the rest of the minute, before anything is looked at. So whoever hammers
 * a name from elsewhere does not touch its owner; and a name that has signed in from the address within the last hour is
 * looked at all the same, so that a neighbour behind the same address does not either.
 *
 * Of this process alone, in tables of fixed size; addresses are IPv4 addresses and IPv6 networks of 64 bits. */
#ifndef STEWARD_GATE_ATTEMPTS_H
#define STEWARD_GATE_ATTEMPTS_H

#include "base/ip.h"

#define ATTEMPTS_PER_NAME 20 /* failures a minute, of a name from an address */
#define ATTEMPTS_PER_ADDRESS 1000

struct attempts;

struct attempts *attempts_new(void);
void attempts_free(struct attempts *a); /* accepts NULL */
/* All forgotten (the test control's reset). */
void attempts_reset(struct attempts *a);

enum attempt_state {
	ATTEMPT_OPEN,
	ATTEMPT_KNOWN, /* too many have failed, but this name has signed in from there: right ones pass, wrong ones are told so */
	ATTEMPT_REFUSED /* not even looked at */
};
/* An empty name: only the address counts. ret_seconds: until it can be tried again, when it is not open. */
must_check enum attempt_state attempt_ask(struct attempts *a, struct str name, const struct ip *peer,
                                          unsigned *ret_seconds);
void attempt_failed(struct attempts *a, struct str name, const struct ip *peer);
/* For what takes long to check: counted as failed before it is looked at, and taken back when it was right. Otherwise as many
 * as fit into that time would be tried at once. */
void attempt_take_back(struct attempts *a, struct str name, const struct ip *peer);
void attempt_succeeded(struct attempts *a, struct str name, const struct ip *peer);

struct attempts_stats {
	uint64_t failed, refused;
};
void attempts_stats(struct attempts *a, struct attempts_stats *ret_stats);

#endif

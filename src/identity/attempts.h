/* Counts failed sign-ins, so that guessing is slow and nobody is locked out by somebody else's failures.
 *
 * Two counters: failures of a name (key, account, invitation) from an address, and failures of an address. When one of
 * them is used up, sign-ins of that name from that address are refused for the rest of the minute, without checking
 * anything. So an attacker who guesses a name from another address does not affect its owner. And a name that has
 * signed in from the address within the last hour is still checked, so that a neighbour behind the same address does
 * not affect it either.
 *
 * People's passwords are guessed more easily than keys, so those of a name are counted from everywhere too
 * (attempt_anywhere()); a browser that the person has signed in with before passes.
 *
 * The tables belong to this process and have a fixed size; addresses are IPv4 addresses and IPv6 networks of 64
 * bits. */
#ifndef STEWARD_IDENTITY_ATTEMPTS_H
#define STEWARD_IDENTITY_ATTEMPTS_H

#include "base/ip.h"

#define ATTEMPTS_PER_NAME 20 /* failures per minute, of a name from an address */
#define ATTEMPTS_PER_ADDRESS 1000

struct attempts;

struct attempts *attempts_new(void);
void attempts_free(struct attempts *a); /* accepts NULL */
/* Forgets everything (the test control's reset). */
void attempts_reset(struct attempts *a);

enum attempt_state {
	ATTEMPT_OPEN,
	/* Too many have failed, but this name has signed in from there: right credentials pass, wrong ones get this
	 * refusal. */
	ATTEMPT_KNOWN,
	ATTEMPT_REFUSED /* refused without checking */
};
/* An empty name: only the address counts. ret_seconds: when it is not open, the time until the next try. */
must_check enum attempt_state attempt_ask(struct attempts *a, struct str name, const struct ip *peer,
                                          unsigned *ret_seconds);
void attempt_failed(struct attempts *a, struct str name, const struct ip *peer);
/* For slow checks (passwords): asks, and unless it is refused the attempt counts as failed, before the check, and is
 * taken back when it was right. Otherwise many attempts could run at the same time before the first one is counted. */
must_check enum attempt_state attempt_begin(struct attempts *a, struct str name, const struct ip *peer,
                                            unsigned *ret_seconds);
void attempt_take_back(struct attempts *a, struct str name, const struct ip *peer);
/* For /metrics: one that was begun so was wrong; somebody has signed in with a browser. */
void attempt_wrong(struct attempts *a);
void attempt_signed_in(struct attempts *a);
void attempt_succeeded(struct attempts *a, struct str name, const struct ip *peer);
/* The same for a caller that succeeds again and again: where `mark` says that it was told within the last minute,
 * nothing shared is touched. A mark begins as zero, belongs to one name and one thread, and is kept by this
 * function. */
struct attempt_mark {
	struct ip peer;
	int64_t at_ms;
	uint64_t epoch;
};
void attempt_succeeded_again(struct attempts *a, struct str name, const struct ip *peer, struct attempt_mark *mark);

/* For passwords, after attempt_ask(): whether one more attempt at the name may be made, as to failures from all
 * addresses together; if so it counts as failed, which attempt_anywhere_right() takes back. A name that has signed in
 * from that address within the last hour always may. */
must_check bool attempt_anywhere(struct attempts *a, struct str name, const struct ip *peer, unsigned *ret_seconds);
void attempt_anywhere_right(struct attempts *a, struct str name);

struct attempts_stats {
	uint64_t failed, refused, signed_in;
};
void attempts_stats(struct attempts *a, struct attempts_stats *ret_stats);

#endif

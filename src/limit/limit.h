/* Token buckets, in memory. A bucket is (set, scope instance); it starts full and gets `refill` tokens at each full
 * `seconds` since its first use, never above `capacity`. The table is bounded and forgets full buckets first. */
#ifndef STEWARD_LIMIT_LIMIT_H
#define STEWARD_LIMIT_LIMIT_H

#include "base/arena.h"
#include "catalog/catalog.h"

struct limiter;

struct limit_answer {
	bool granted;
	unsigned capacity, refill, seconds;
	unsigned remaining;
	unsigned retry_after; /* whole seconds until the next refill, at least 1; when not granted */
};

struct limiter *limiter_new(unsigned buckets_max); /* 0: default (65536) */
void limiter_free(struct limiter *l);
/* Buckets that other processes use too. They are asked first while they can be reached; a take may then wait, so none
 * may run on a loop. Set before the first take; they must outlive the limiter. */
struct redis_limits;
void limiter_share(struct limiter *l, struct redis_limits *shared);
/* Whether buckets are shared, so that a take may wait. */
bool limiter_is_shared(const struct limiter *l);

/* Takes one token of the set's bucket for that scope instance (project id, organization id, caller id, address
 * text). */
void limiter_take(struct limiter *l, const struct bucket_set *set, struct str scope, struct limit_answer *ret_answer);
/* The same answer, but takes no token and creates no bucket: `granted` says whether a token is available. */
void limiter_peek(struct limiter *l, const struct bucket_set *set, struct str scope, struct limit_answer *ret_answer);

/* Overrides, most specific first: set and scope, set, all sets and scope, all sets. Replaces all rules at once. A
 * bucket keeps its tokens; a smaller capacity cuts them, and a larger one adds the difference. */
struct limit_rule {
	const struct bucket_set *set; /* NULL: all */
	struct str scope;             /* empty: all */
	unsigned capacity, refill;
};
void limiter_set_rules(struct limiter *l, const struct limit_rule *rules, size_t count);
/* The limits in force for a set and scope. */
void limiter_effective(struct limiter *l, const struct bucket_set *set, struct str scope, unsigned *ret_capacity,
                       unsigned *ret_refill);

/* All buckets full again (the test control's reset). */
void limiter_reset(struct limiter *l);

struct limiter_stats {
	uint64_t granted, refused, buckets, evicted; /* buckets: of this process */
	bool shared, shared_up;
};
void limiter_stats(struct limiter *l, struct limiter_stats *ret_stats);

#endif

/* Buckets that several processes share, in Redis. Each take is one round trip, to a script that runs alone: exact
 * however many take at once. While Redis is away nobody waits for it: takes say so at once, and the caller's own buckets
 * decide. One thread looks for it until it is back. */
#ifndef STEWARD_LIMIT_REDIS_H
#define STEWARD_LIMIT_REDIS_H

#include "limit/limit.h"

struct redis_limits;

/* redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]. `prefix` begins every key. A Redis that is away is no failure; a URL
 * that is none is: a sentence to stderr, negative. */
must_check int redis_limits_open(const char *url, const char *prefix, struct redis_limits **ret_limits);
void redis_limits_close(struct redis_limits *r); /* accepts NULL */

struct redis_take {
	const char *set;
	struct str scope;
	unsigned capacity, refill, seconds;
	bool only_look; /* takes nothing, makes no bucket */
};
/* False: Redis is away. May wait for it for a fraction of a second: never on a loop. */
must_check bool redis_limits_take(struct redis_limits *r, const struct redis_take *t, struct limit_answer *ret_answer);
/* All buckets full again. */
void redis_limits_reset(struct redis_limits *r);
bool redis_limits_up(struct redis_limits *r);

#endif

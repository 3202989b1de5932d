/* Buckets that several processes share, in Redis. Each take is one round trip to a script that runs atomically: exact
 * for any number of concurrent takes. While Redis cannot be reached nobody waits for it: takes fail at once, and the
 * caller's own buckets decide. One thread tries to reach it again. */
#ifndef STEWARD_LIMIT_REDIS_H
#define STEWARD_LIMIT_REDIS_H

#include "limit/limit.h"

struct redis_limits;

/* redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]. `prefix` begins every key. A Redis that cannot be reached is not an
 * error; a malformed URL is: a message on stderr, negative. */
must_check int redis_limits_open(const char *url, const char *prefix, struct redis_limits **ret_limits);
void redis_limits_close(struct redis_limits *r); /* accepts NULL */

struct redis_take {
	const char *set;
	struct str scope;
	unsigned capacity, refill, seconds;
	bool only_look; /* takes no token, creates no bucket */
};
/* False: Redis cannot be reached. May wait a fraction of a second: never call it on a loop. */
must_check bool redis_limits_take(struct redis_limits *r, const struct redis_take *t, struct limit_answer *ret_answer);
/* All buckets full again. */
void redis_limits_reset(struct redis_limits *r);
bool redis_limits_up(struct redis_limits *r);

#endif

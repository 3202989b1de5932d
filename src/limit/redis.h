/* Buckets that several processes share, in Redis. Each take is one round trip to a script that runs atomically: exact
 * for any number of concurrent takes. While Redis cannot be reached nobody waits for it: takes fail at once, and the
 * caller's own buckets decide. One thread tries to reach it again. */
#ifndef STEWARD_LIMIT_REDIS_H
#define STEWARD_LIMIT_REDIS_H

#include "limit/limit.h"

struct redis_limits;

/* Each file may be NULL. */
struct redis_options {
	const char *url;                  /* redis[s]://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]; rediss: with TLS */
	const char *password_file;        /* in place of the URL's */
	const char *ca_file;              /* by which the server is trusted, instead of the system's authorities */
	const char *cert_file, *key_file; /* that this node shows, where Redis wants a certificate */
};
/* `prefix` begins every key. A Redis that cannot be reached, or is not the one that it should be, is not an error; a
 * malformed URL and a file that cannot be used are: a message on stderr, negative. */
must_check int redis_limits_open(const struct redis_options *o, const char *prefix, struct redis_limits **ret_limits);
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

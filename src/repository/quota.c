/* A bound for what one project takes in a region's repository: what is there stays, and can be restored; nothing is
 * added. Other processes' puts are seen with the next sweep. */
#include "repository/quota.h"

#include "base/log.h"
#include "repository/internal.h"
#include "repository/sweep.h"
#include "repository/why.h"

#include <errno.h>

#define WARN_PERCENT 90

static void warn(struct quota *q)
{
	bool near = q->used / 100 >= q->most / 100 * WARN_PERCENT / 100;
	if (near && !q->warned)
		log_warn("backups: %s: %llu MB are taken, of %llu that may be", q->place,
		         (unsigned long long)(q->used >> 20), (unsigned long long)(q->most >> 20));
	q->warned = near;
}

int quota_check(struct repository *r)
{
	struct quota *q = r->quota;
	uint64_t chunks = 0, log = 0;
	int result = 0;
	if (!q)
		return 0;
	pthread_mutex_lock(&q->lock);
	if (!q->counted) {
		pthread_mutex_unlock(&q->lock); /* a store that hangs holds up nobody else */
		result = repo_usage(r, &chunks, &log);
		pthread_mutex_lock(&q->lock);
		if (result == 0 && !q->counted) {
			q->counted = true;
			q->used = chunks + log;
			warn(q);
		}
	}
	if (result == 0 && q->used >= q->most)
		result = repo_fail(-EDQUOT, "the project has used up its quota of %llu MB for backups in this region",
		                   (unsigned long long)(q->most >> 20));
	pthread_mutex_unlock(&q->lock);
	return result;
}

void quota_add(struct repository *r, uint64_t bytes)
{
	struct quota *q = r->quota;
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	q->used += bytes;
	warn(q);
	pthread_mutex_unlock(&q->lock);
}

void quota_set(struct repository *r, uint64_t bytes)
{
	struct quota *q = r->quota;
	if (!q)
		return;
	pthread_mutex_lock(&q->lock);
	q->used = bytes;
	q->counted = true;
	warn(q);
	pthread_mutex_unlock(&q->lock);
}

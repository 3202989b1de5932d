/* Bytes that a project takes in a region, where there is a bound: counted by each process as it puts, and anew with
 * each sweep. */
#ifndef STEWARD_REPOSITORY_QUOTA_H
#define STEWARD_REPOSITORY_QUOTA_H

#include "repository/common.h"

#include <pthread.h>

struct quota {
	pthread_mutex_t lock;
	char *place;
	uint64_t most, used;
	bool counted, warned;
	struct quota *next;
};
/* Before chunks or log are put. -EDQUOT. Manifests, indexes, leases and what a sweep writes are never refused. */
must_check int quota_check(struct repository *r);
void quota_add(struct repository *r, uint64_t bytes);
void quota_set(struct repository *r, uint64_t bytes);

#endif

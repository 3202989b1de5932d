/* Places for work that lasts as long as its client likes, such as downloads: so many in all, and shares of them, so
 * that nobody keeps the others out. A share is counted twice: by organization, and by caller, who may act in several.
 * The last places are a reserve for those that have none. Work that finds no place is refused: nothing waits. */
#ifndef STEWARD_CALL_PLACES_H
#define STEWARD_CALL_PLACES_H

#include "base/str.h"

#include <pthread.h>

#define PLACES_MAX 64

struct places {
	pthread_mutex_t lock;
	unsigned most, org_most, caller_most, reserve;
	unsigned count;
	struct {
		uint64_t org, caller;
	} taken[PLACES_MAX];
};

/* A quarter of the places for one organization, an eighth for one caller, and a quarter as the reserve. */
#define PLACES(all)                                                                      \
	{                                                                                \
		.lock = PTHREAD_MUTEX_INITIALIZER, .most = (all), .org_most = (all) / 4, \
		.caller_most = (all) / 8 ? (all) / 8 : 1, .reserve = (all) / 4           \
	}

/* -EDQUOT: the organization or the caller has its share; -EBUSY: there is no place left for it. */
must_check int places_enter(struct places *p, uint64_t org, uint64_t caller);
void places_leave(struct places *p, uint64_t org, uint64_t caller);
/* Whether only the reserve is left: whoever has a place must use it well then. */
bool places_are_scarce(struct places *p);

#endif

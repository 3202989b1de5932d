/* A table of who has which place: it is small, so that all of it is looked at. */
#include "call/places.h"

#include <assert.h>
#include <errno.h>

int places_enter(struct places *p, uint64_t org, uint64_t caller)
{
	unsigned of_org = 0, of_caller = 0;
	int r = 0;
	pthread_mutex_lock(&p->lock);
	assert(p->most <= PLACES_MAX);
	for (unsigned i = 0; i < p->count; i++) {
		of_org += p->taken[i].org == org;
		of_caller += p->taken[i].caller == caller;
	}
	if (of_org >= p->org_most || of_caller >= p->caller_most)
		r = -EDQUOT;
	else if (p->count >= p->most || (p->count >= p->most - p->reserve && (of_org || of_caller)))
		r = -EBUSY;
	if (r == 0) {
		p->taken[p->count].org = org;
		p->taken[p->count++].caller = caller;
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

void places_leave(struct places *p, uint64_t org, uint64_t caller)
{
	unsigned i = 0;
	pthread_mutex_lock(&p->lock);
	while (i < p->count && (p->taken[i].org != org || p->taken[i].caller != caller))
		i++;
	assert(i < p->count);
	p->taken[i] = p->taken[--p->count];
	pthread_mutex_unlock(&p->lock);
}

bool places_are_scarce(struct places *p)
{
	pthread_mutex_lock(&p->lock);
	bool scarce = p->count >= p->most - p->reserve;
	pthread_mutex_unlock(&p->lock);
	return scarce;
}

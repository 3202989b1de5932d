/* Whoever has the turn waits until what was taken before is over, takes, and gives the turn on. Nothing is saved up
 * while nobody asks, so that no second sees more than its rate and one piece. */
#include "base/pace.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/fair.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define WAITING_MAX 4096

struct pace {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct fair *waiting;
	uint64_t rate;
	int64_t free_us; /* when all that was taken is over */
	bool taken;      /* somebody has the turn */
};

struct turn {
	struct fair_item item; /* the first field */
	bool given;
};

struct pace *pace_new(uint64_t rate)
{
	struct pace *p = must_calloc(1, sizeof *p);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->changed, NULL);
	p->waiting = fair_new(WAITING_MAX, 0);
	p->rate = rate;
	return p;
}

void pace_free(struct pace *p)
{
	if (!p)
		return;
	fair_free(p->waiting);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->changed);
	free(p);
}

/* With the lock. */
static void turn_give(struct pace *p)
{
	struct turn *next = p->taken ? NULL : (struct turn *)fair_take(p->waiting);
	if (!next)
		return;
	p->taken = next->given = true;
	pthread_cond_broadcast(&p->changed);
}

static void sleep_until(int64_t at_us)
{
	for (int64_t left; (left = at_us - clock_mono_us()) > 0;)
		nanosleep(&(struct timespec){.tv_sec = left / 1000000, .tv_nsec = left % 1000000 * 1000}, NULL);
}

void pace_take(struct pace *p, struct str tenant, size_t bytes)
{
	struct turn own = {.given = false};
	if (!p || !p->rate || !bytes)
		return;
	pthread_mutex_lock(&p->lock);
	if (!fair_add(p->waiting, &own.item, fair_key(tenant))) { /* more threads than anybody has */
		pthread_mutex_unlock(&p->lock);
		return;
	}
	turn_give(p);
	while (!own.given)
		pthread_cond_wait(&p->changed, &p->lock);
	int64_t from = p->free_us;
	pthread_mutex_unlock(&p->lock);
	sleep_until(from);
	pthread_mutex_lock(&p->lock);
	int64_t now = clock_mono_us();
	p->free_us = (from > now ? from : now) + (int64_t)((uint64_t)bytes * 1000000 / p->rate);
	p->taken = false;
	turn_give(p);
	pthread_mutex_unlock(&p->lock);
}

/* Lines are found by key in a hash table; those with waiting items are also in a ring. A line exists only while one of
 * its items waits or runs, so there are never more lines than places. */
#include "base/fair.h"

#include "base/arena.h"
#include "base/id.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 256u
#define SHARE 3u /* a key may run up to this many times the free slots: see fair.h */

struct line {
	struct line *next;         /* in its bucket */
	struct line *left, *right; /* in the ring; NULL: nothing waits */
	uint64_t key;
	struct fair_item *first, **last;
	unsigned waiting, running;
};

struct fair {
	unsigned waiting_max, running_max, each_max, waiting, running;
	struct line *turn; /* in the ring: the line that is served next */
	struct line *buckets[BUCKETS];
};

static pthread_once_t seed_once = PTHREAD_ONCE_INIT;
static uint64_t seed;

static void seed_make(void)
{
	random_bytes(&seed, sizeof seed);
}

static uint64_t mix(uint64_t h)
{
	h = (h ^ (h >> 32)) * 0x9e3779b97f4a7c15u;
	h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9u;
	return h ^ (h >> 32);
}

uint64_t fair_key(struct str text)
{
	pthread_once(&seed_once, seed_make);
	uint64_t h = seed ^ text.n;
	for (size_t i = 0; i < text.n; i += 8) {
		uint64_t part = 0;
		memcpy(&part, text.p + i, text.n - i < 8 ? text.n - i : 8);
		h = mix(h ^ part);
	}
	return h;
}

struct fair *fair_new(unsigned waiting_max, unsigned running_max)
{
	struct fair *f = must_calloc(1, sizeof *f);
	f->waiting_max = waiting_max;
	f->running_max = running_max;
	return f;
}

void fair_limit_each(struct fair *f, unsigned each_max)
{
	f->each_max = each_max;
}

void fair_free(struct fair *f)
{
	if (!f)
		return;
	assert(!f->waiting && !f->running);
	free(f);
}

static struct line **line_find(const struct fair *f, uint64_t key)
{
	struct line **at = (struct line **)(uintptr_t)&f->buckets[mix(key) % BUCKETS];
	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

static struct line *line_of(struct fair *f, uint64_t key)
{
	struct line **at = line_find(f, key);
	if (!*at) {
		*at = must_calloc(1, sizeof **at);
		(*at)->key = key;
		(*at)->last = &(*at)->first;
	}
	return *at;
}

static void line_drop_if_over(struct fair *f, const struct line *l)
{
	if (l->waiting || l->running)
		return;
	struct line **at = line_find(f, l->key), *gone = *at;
	*at = gone->next;
	free(gone);
}

/* Enters behind all others, so that a new line waits for its turn. */
static void ring_enter(struct fair *f, struct line *l)
{
	if (!f->turn) {
		f->turn = l->left = l->right = l;
		return;
	}
	l->right = f->turn;
	l->left = f->turn->left;
	l->left->right = l->right->left = l;
}

static void ring_leave(struct fair *f, struct line *l)
{
	if (f->turn == l)
		f->turn = l->right == l ? NULL : l->right;
	l->left->right = l->right;
	l->right->left = l->left;
	l->left = l->right = NULL;
}

static bool may_wait(const struct fair *f, uint64_t key, const struct line *l)
{
	unsigned left = f->waiting < f->waiting_max ? f->waiting_max - f->waiting : 0;
	return left && (key == 0 || (l ? l->waiting : 0) < left);
}

static bool may_run(const struct fair *f, const struct line *l)
{
	return !f->running_max ||
	       (l->running < SHARE * (f->running_max - f->running) && (!f->each_max || l->running < f->each_max));
}

bool fair_has_room(const struct fair *f, uint64_t key)
{
	return may_wait(f, key, *line_find(f, key));
}

bool fair_add(struct fair *f, struct fair_item *item, uint64_t key)
{
	if (!fair_has_room(f, key))
		return false;
	struct line *l = line_of(f, key);
	*item = (struct fair_item){.key = key};
	*l->last = item;
	l->last = &item->next;
	f->waiting++;
	if (l->waiting++ == 0)
		ring_enter(f, l);
	return true;
}

static struct fair_item *line_pop(struct fair *f, struct line *l)
{
	struct fair_item *item = l->first;
	if (!(l->first = item->next))
		l->last = &l->first;
	item->next = NULL;
	f->waiting--;
	f->turn = l->right;
	if (--l->waiting == 0)
		ring_leave(f, l);
	if (f->running_max) {
		f->running++;
		l->running++;
	}
	line_drop_if_over(f, l);
	return item;
}

struct fair_item *fair_take(struct fair *f)
{
	struct line *l = f->turn;
	if (!l || (f->running_max && f->running >= f->running_max))
		return NULL;
	do {
		if (may_run(f, l))
			return line_pop(f, l);
		l = l->right;
	} while (l != f->turn);
	return NULL;
}

static void stop_one(struct fair *f, struct line *l)
{
	if (!f->running_max)
		return;
	assert(l && l->running && f->running);
	f->running--;
	l->running--;
}

void fair_done(struct fair *f, uint64_t key)
{
	struct line *l = *line_find(f, key);
	if (!f->running_max || !l)
		return;
	stop_one(f, l);
	line_drop_if_over(f, l);
}

bool fair_enter(struct fair *f, uint64_t key)
{
	struct line *l = line_of(f, key);
	bool may = f->running < f->running_max && may_run(f, l);
	if (may) {
		f->running++;
		l->running++;
	}
	line_drop_if_over(f, l);
	return may;
}

void fair_return(struct fair *f, struct fair_item *item)
{
	struct line *l = line_of(f, item->key);
	stop_one(f, l);
	item->next = l->first;
	if (!l->first)
		l->last = &item->next;
	l->first = item;
	f->waiting++;
	if (l->waiting++ == 0)
		ring_enter(f, l);
}

unsigned fair_waiting(const struct fair *f)
{
	return f->waiting;
}

unsigned fair_running(const struct fair *f)
{
	return f->running;
}

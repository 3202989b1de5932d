/* The counters per address are in a table of fixed size, indexed by a hash with a secret seed. Two addresses may share
 * a counter. In return there is no allocation, no lock, and no entry to expire. */
#include "http/budget.h"

#include "base/arena.h"
#include "base/id.h"
#include "http/peers.h"

#include <stdatomic.h>
#include <stdlib.h>

#define PLACES 65536u
#define LITTLE ((size_t)128 * 1024) /* every address may hold this much */

struct budget {
	size_t max, shared; /* shared: the part for addresses that hold more than LITTLE */
	uint64_t seed;
	_Alignas(64) atomic_size_t used;
	_Alignas(64) atomic_size_t by_place[PLACES];
};

struct budget *budget_new(size_t max)
{
	struct budget *b = aligned_alloc(64, sizeof *b);
	if (!b)
		abort();
	memset(b, 0, sizeof *b);
	b->max = max;
	b->shared = max / 8 * 5;
	random_bytes(&b->seed, sizeof b->seed);
	return b;
}

void budget_free(struct budget *b)
{
	free(b);
}

unsigned budget_place(const struct budget *b, const struct ip *ip)
{
	if (!b)
		return 0;
	struct ip key = peer_key(ip);
	return (unsigned)(peer_hash(&key, b->seed) % PLACES);
}

bool budget_admits(const struct budget *b, unsigned place, size_t more)
{
	if (!b)
		return true;
	size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);
	size_t mine = atomic_load_explicit(&b->by_place[place], memory_order_relaxed);
	size_t free_for_many = used < b->shared ? b->shared - used : 0;
	return used < b->max && (mine + more <= free_for_many || mine + more <= LITTLE);
}

void budget_move(struct budget *b, unsigned place, size_t from, size_t to)
{
	if (!b || from == to)
		return;
	/* `to - from` may wrap below zero; unsigned addition wraps back. */
	atomic_fetch_add_explicit(&b->used, to - from, memory_order_relaxed);
	atomic_fetch_add_explicit(&b->by_place[place], to - from, memory_order_relaxed);
}

size_t budget_used(const struct budget *b)
{
	return b ? atomic_load_explicit(&b->used, memory_order_relaxed) : 0;
}

size_t budget_max(const struct budget *b)
{
	return b ? b->max : 0;
}

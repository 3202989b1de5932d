/* Counters by address lie in a table of fixed size, by a hash that nobody outside knows: two addresses may meet in a place
 * and share it, which needs no memory, no lock and no end of an entry's life. */
#include "http/budget.h"

#include "base/arena.h"
#include "base/id.h"
#include "http/peers.h"

#include <stdatomic.h>
#include <stdlib.h>

#define PLACES 65536u
#define LITTLE ((size_t)128 * 1024) /* is held by anybody */

struct budget {
	size_t max, shared; /* shared: what those may fill who hold more than a little */
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
	/* A difference below zero wraps around, as addition of unsigned numbers does. */
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

/* Connections per address: a hash table with open addressing. It holds at most one entry per connection and is twice as
 * large as the limit of connections, so it never fills. An IPv6 client controls a whole /64, so that is what is
 * counted. */
#include "http/peers.h"

#include "base/arena.h"
#include "base/id.h"

#include <pthread.h>
#include <stdlib.h>

struct peer {
	struct ip key;
	unsigned count; /* 0: free */
};

struct peers {
	pthread_mutex_t lock;
	unsigned max, max_per_address, total;
	size_t mask;
	uint64_t seed;
	struct peer table[];
};

struct peers *peers_new(unsigned max, unsigned max_per_address)
{
	size_t size = 16;
	while (size < (size_t)max * 2)
		size *= 2;
	struct peers *p = must_calloc(1, sizeof *p + size * sizeof *p->table);
	pthread_mutex_init(&p->lock, NULL);
	p->max = max;
	p->max_per_address = max_per_address;
	p->mask = size - 1;
	random_bytes(&p->seed, sizeof p->seed);
	return p;
}

void peers_free(struct peers *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct ip peer_key(const struct ip *ip)
{
	struct ip key = *ip;
	if (!ip_is_v4(ip))
		memset(key.b + 8, 0, 8);
	return key;
}

/* A product carries only upwards, and IPv4 addresses differ only in the topmost bits: so a shift down follows each
 * product. */
static uint64_t mix(uint64_t h)
{
	h = (h ^ (h >> 32)) * 0x9e3779b97f4a7c15u;
	h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9u;
	return h ^ (h >> 32);
}

uint64_t peer_hash(const struct ip *key, uint64_t seed)
{
	uint64_t a, b;
	memcpy(&a, key->b, 8);
	memcpy(&b, key->b + 8, 8);
	return mix(mix(a ^ seed) ^ b);
}

static size_t slot_of(const struct peers *p, const struct ip *key)
{
	return (size_t)peer_hash(key, p->seed) & p->mask;
}

/* The key's entry, or the free slot where it would go. */
static struct peer *find(struct peers *p, const struct ip *key)
{
	size_t i = slot_of(p, key);
	while (p->table[i].count && !ip_equal(&p->table[i].key, key))
		i = (i + 1) & p->mask;
	return &p->table[i];
}

bool peers_enter(struct peers *p, const struct ip *ip)
{
	struct ip key = peer_key(ip);
	pthread_mutex_lock(&p->lock);
	struct peer *e = find(p, &key);
	bool free_place = p->total < p->max && e->count < p->max_per_address;
	if (free_place) {
		e->key = key;
		e->count++;
		p->total++;
	}
	pthread_mutex_unlock(&p->lock);
	return free_place;
}

/* Closes the gap that a removed entry leaves, so that no search stops too early. */
static void close_gap(struct peers *p, size_t gap)
{
	for (size_t i = (gap + 1) & p->mask; p->table[i].count; i = (i + 1) & p->mask) {
		size_t home = slot_of(p, &p->table[i].key);
		if (((i - home) & p->mask) >= ((i - gap) & p->mask)) {
			p->table[gap] = p->table[i];
			p->table[i].count = 0;
			gap = i;
		}
	}
}

void peers_leave(struct peers *p, const struct ip *ip)
{
	struct ip key = peer_key(ip);
	pthread_mutex_lock(&p->lock);
	struct peer *e = find(p, &key);
	if (e->count) {
		p->total--;
		if (--e->count == 0)
			close_gap(p, (size_t)(e - p->table));
	}
	pthread_mutex_unlock(&p->lock);
}

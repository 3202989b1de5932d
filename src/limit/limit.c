/* Token buckets, in memory.
 *
 * The table is divided into stripes, each with its own lock, hash chains and share of the limit, so that loops seldom
 * meet and a take needs only one lock. A bucket stores the time of its first use, the refills that it has already got
 * and its tokens; refills are computed when somebody asks, so no timer runs.
 *
 * The rules are an immutable snapshot that is read only while a stripe is locked. Whoever replaces it locks every
 * stripe once before it frees the old one: after that nobody can still be reading it. A bucket remembers which snapshot
 * its limits came from, so that rules are searched once per bucket and change, not once per take. */
#include "limit/limit.h"

#include "base/clock.h"
#include "base/id.h"
#include "limit/redis.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define STRIPES 64
#define SCOPE_MAX 64
#define BUCKETS_DEFAULT 65536
#define NONE UINT32_MAX
#define FIRST_ENTRIES 16

struct bucket {
	const struct bucket_set *set;
	int64_t first_ms; /* of the first use: refills are counted from here */
	uint64_t steps;   /* refills that `tokens` already includes */
	uint64_t rules;   /* serial of the rules that capacity and refill came from */
	unsigned capacity, refill, tokens;
	uint32_t hash, next; /* next: in the chain, or in the free list */
	unsigned char scope_n;
	char scope[SCOPE_MAX];
};

struct stripe {
	pthread_mutex_t lock;
	struct bucket *buckets; /* grows to `max` */
	uint32_t *heads;        /* `room` of them, a power of two */
	uint32_t room, used, max, free;
	uint64_t granted, refused, evicted;
};

struct rules {
	uint64_t serial;
	size_t count;
	struct limit_rule *list;
};

struct limiter {
	uint64_t seed;
	_Atomic(struct rules *) rules;
	pthread_mutex_t rules_lock;  /* only one thread replaces the rules at a time */
	struct redis_limits *shared; /* asked first; NULL: buckets are in memory only */
	struct stripe stripes[STRIPES];
};

static struct rules *rules_new(uint64_t serial, const struct limit_rule *list, size_t count)
{
	struct rules *r = must_calloc(1, sizeof *r);
	r->serial = serial;
	r->count = count;
	r->list = count ? must_calloc(count, sizeof *r->list) : NULL;
	for (size_t i = 0; i < count; i++) {
		r->list[i] = list[i];
		r->list[i].scope = STR_NONE;
		if (list[i].scope.n) {
			char *copy = must_malloc(list[i].scope.n);
			memcpy(copy, list[i].scope.p, list[i].scope.n);
			r->list[i].scope = (struct str){copy, list[i].scope.n};
		}
	}
	return r;
}

static void rules_free(struct rules *r)
{
	for (size_t i = 0; i < r->count; i++)
		free((void *)(uintptr_t)r->list[i].scope.p);
	free(r->list);
	free(r);
}

struct limiter *limiter_new(unsigned buckets_max)
{
	struct limiter *l = must_calloc(1, sizeof *l);
	unsigned max = buckets_max ? buckets_max : BUCKETS_DEFAULT;
	random_bytes(&l->seed, sizeof l->seed);
	l->rules = rules_new(1, NULL, 0);
	pthread_mutex_init(&l->rules_lock, NULL);
	for (unsigned i = 0; i < STRIPES; i++) {
		pthread_mutex_init(&l->stripes[i].lock, NULL);
		l->stripes[i].max = max / STRIPES ? max / STRIPES : 1;
		l->stripes[i].free = NONE;
	}
	return l;
}

void limiter_free(struct limiter *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < STRIPES; i++) {
		pthread_mutex_destroy(&l->stripes[i].lock);
		free(l->stripes[i].buckets);
		free(l->stripes[i].heads);
	}
	pthread_mutex_destroy(&l->rules_lock);
	rules_free(l->rules);
	free(l);
}

static uint64_t hash_mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93u;
	h ^= h >> 29;
	h *= 0xd6e8feb86659fd93u;
	return h ^ h >> 32;
}

/* Seeded, so that nobody can choose scopes that fall into one chain. */
static uint64_t hash_of(const struct limiter *l, const struct bucket_set *set, struct str scope)
{
	uint64_t h = hash_mix(l->seed ^ (uint64_t)(uintptr_t)set);
	for (size_t i = 0; i < scope.n; i += 8) {
		uint64_t word = 0;
		memcpy(&word, scope.p + i, scope.n - i < 8 ? scope.n - i : 8);
		h = hash_mix(h ^ word) + l->seed;
	}
	return hash_mix(h ^ scope.n);
}

static void effective(const struct rules *rules, const struct bucket_set *set, struct str scope, unsigned *ret_capacity,
                      unsigned *ret_refill)
{
	int best = -1;
	*ret_capacity = set->capacity;
	*ret_refill = set->refill;
	for (size_t i = 0; i < rules->count; i++) {
		const struct limit_rule *r = &rules->list[i];
		if ((r->set && r->set != set) || (r->scope.n && !str_eq(r->scope, scope)))
			continue;
		int rank = (r->set ? 2 : 0) + (r->scope.n ? 1 : 0);
		if (rank <= best)
			continue;
		best = rank;
		*ret_capacity = r->capacity;
		*ret_refill = r->refill;
	}
}

/* Updates a bucket: new limits if the rules changed, and the refills that are due. */
static void bucket_advance(struct bucket *b, const struct rules *rules, int64_t now)
{
	if (b->rules != rules->serial) {
		unsigned capacity, refill;
		effective(rules, b->set, (struct str){b->scope, b->scope_n}, &capacity, &refill);
		if (capacity > b->capacity)
			b->tokens += capacity - b->capacity;
		else if (b->tokens > capacity)
			b->tokens = capacity;
		b->capacity = capacity;
		b->refill = refill;
		b->rules = rules->serial;
	}
	int64_t period = (int64_t)(b->set->seconds ? b->set->seconds : 1) * 1000;
	if (now < b->first_ms + (int64_t)b->steps * period) {
		b->first_ms = now; /* the clock went back: count from here */
		b->steps = 0;
		return;
	}
	uint64_t steps = (uint64_t)((now - b->first_ms) / period);
	if (steps == b->steps)
		return;
	uint64_t due = steps - b->steps, room = b->capacity - b->tokens;
	b->steps = steps;
	if (b->refill && due >= (room + b->refill - 1) / b->refill)
		b->tokens = b->capacity;
	else
		b->tokens += (unsigned)(due * b->refill);
}

static void bucket_answer(const struct bucket *b, int64_t now, bool granted, struct limit_answer *ret_answer)
{
	unsigned seconds = b->set->seconds ? b->set->seconds : 1;
	int64_t next = b->first_ms + (int64_t)(b->steps + 1) * seconds * 1000;
	int64_t wait = (next - now + 999) / 1000;
	*ret_answer = (struct limit_answer){
	        .granted = granted,
	        .capacity = b->capacity,
	        .refill = b->refill,
	        .seconds = seconds,
	        .remaining = b->tokens,
	        .retry_after = granted ? 0 : (unsigned)(wait < 1 ? 1 : wait),
	};
}

static struct bucket *stripe_find(struct stripe *s, uint32_t hash, const struct bucket_set *set, struct str scope)
{
	if (!s->room)
		return NULL;
	for (uint32_t i = s->heads[hash & (s->room - 1)]; i != NONE; i = s->buckets[i].next) {
		struct bucket *b = &s->buckets[i];
		if (b->hash == hash && b->set == set && str_eq((struct str){b->scope, b->scope_n}, scope))
			return b;
	}
	return NULL;
}

static void stripe_forget(struct stripe *s, uint32_t index)
{
	struct bucket *b = &s->buckets[index];
	uint32_t *at = &s->heads[b->hash & (s->room - 1)];
	while (*at != index)
		at = &s->buckets[*at].next;
	*at = b->next;
	b->set = NULL;
	b->next = s->free;
	s->free = index;
	s->used--;
}

/* Makes room in a full stripe: removes all full buckets, because a full bucket is the same as none; without any, the
 * fullest one. */
static void stripe_evict(struct stripe *s, const struct rules *rules, int64_t now)
{
	uint32_t fullest = NONE;
	uint64_t most = 0;
	uint32_t before = s->used;
	for (uint32_t i = 0; i < s->room; i++) {
		struct bucket *b = &s->buckets[i];
		if (!b->set)
			continue;
		bucket_advance(b, rules, now);
		if (b->tokens >= b->capacity) {
			stripe_forget(s, i);
			continue;
		}
		uint64_t share = ((uint64_t)b->tokens << 31) / b->capacity;
		if (fullest == NONE || share > most) {
			fullest = i;
			most = share;
		}
	}
	if (s->used >= s->max)
		stripe_forget(s, fullest);
	s->evicted += before - s->used;
}

static void stripe_grow(struct stripe *s)
{
	uint32_t room = s->room ? s->room * 2 : FIRST_ENTRIES;
	s->buckets = must_realloc(s->buckets, room * sizeof *s->buckets);
	s->heads = must_realloc(s->heads, room * sizeof *s->heads);
	memset(s->buckets + s->room, 0, (room - s->room) * sizeof *s->buckets);
	for (uint32_t i = 0; i < room; i++)
		s->heads[i] = NONE;
	for (uint32_t i = room; i-- > s->room;) {
		s->buckets[i].next = s->free;
		s->free = i;
	}
	for (uint32_t i = 0; i < s->room; i++) {
		if (!s->buckets[i].set)
			continue;
		uint32_t *head = &s->heads[s->buckets[i].hash & (room - 1)];
		s->buckets[i].next = *head;
		*head = i;
	}
	s->room = room;
}

static void bucket_start(struct bucket *b, const struct rules *rules, const struct bucket_set *set, struct str scope,
                         int64_t now)
{
	*b = (struct bucket){.set = set, .first_ms = now, .rules = rules->serial, .scope_n = (unsigned char)scope.n};
	memcpy(b->scope, scope.p, scope.n);
	effective(rules, set, scope, &b->capacity, &b->refill);
	b->tokens = b->capacity;
}

static struct bucket *stripe_add(struct stripe *s, const struct rules *rules, uint32_t hash,
                                 const struct bucket_set *set, struct str scope, int64_t now)
{
	if (s->used >= s->max)
		stripe_evict(s, rules, now);
	else if (s->free == NONE)
		stripe_grow(s);
	uint32_t index = s->free;
	struct bucket *b = &s->buckets[index];
	s->free = b->next;
	bucket_start(b, rules, set, scope, now);
	b->hash = hash;
	uint32_t *head = &s->heads[hash & (s->room - 1)];
	b->next = *head;
	*head = index;
	s->used++;
	return b;
}

static struct str scope_cut(struct str scope)
{
	if (!scope.p)
		return STR("");
	return (struct str){scope.p, scope.n > SCOPE_MAX ? SCOPE_MAX : scope.n};
}

void limiter_share(struct limiter *l, struct redis_limits *shared)
{
	l->shared = shared;
}

bool limiter_is_shared(const struct limiter *l)
{
	return l->shared;
}

/* Asks the buckets that all nodes share. False: there are none, or they cannot be reached. */
static bool shared_take(struct limiter *l, const struct bucket_set *set, struct str scope, bool only_look,
                        struct limit_answer *ret_answer)
{
	struct redis_take take = {
	        .set = set->id, .scope = scope, .seconds = set->seconds ? set->seconds : 1, .only_look = only_look};
	if (!l->shared)
		return false;
	limiter_effective(l, set, scope, &take.capacity, &take.refill);
	return redis_limits_take(l->shared, &take, ret_answer);
}

void limiter_take(struct limiter *l, const struct bucket_set *set, struct str scope, struct limit_answer *ret_answer)
{
	scope = scope_cut(scope);
	uint64_t hash = hash_of(l, set, scope);
	struct stripe *s = &l->stripes[hash >> 58];
	bool shared = shared_take(l, set, scope, false, ret_answer);
	pthread_mutex_lock(&s->lock);
	if (shared) {
		s->granted += ret_answer->granted;
		s->refused += !ret_answer->granted;
		pthread_mutex_unlock(&s->lock);
		return;
	}
	/* Inside the lock, so that two takes never see time go backwards. */
	int64_t now = clock_now_ms();
	const struct rules *rules = l->rules;
	struct bucket *b = stripe_find(s, (uint32_t)hash, set, scope);
	if (!b)
		b = stripe_add(s, rules, (uint32_t)hash, set, scope, now);
	bucket_advance(b, rules, now);
	bool granted = b->tokens > 0;
	if (granted) {
		b->tokens--;
		s->granted++;
	} else {
		s->refused++;
	}
	bucket_answer(b, now, granted, ret_answer);
	pthread_mutex_unlock(&s->lock);
}

void limiter_peek(struct limiter *l, const struct bucket_set *set, struct str scope, struct limit_answer *ret_answer)
{
	scope = scope_cut(scope);
	uint64_t hash = hash_of(l, set, scope);
	struct stripe *s = &l->stripes[hash >> 58];
	struct bucket fresh;
	if (shared_take(l, set, scope, true, ret_answer))
		return;
	pthread_mutex_lock(&s->lock);
	int64_t now = clock_now_ms();
	struct bucket *b = stripe_find(s, (uint32_t)hash, set, scope);
	if (!b) {
		b = &fresh;
		bucket_start(b, l->rules, set, scope, now);
	}
	bucket_advance(b, l->rules, now);
	bucket_answer(b, now, b->tokens > 0, ret_answer);
	pthread_mutex_unlock(&s->lock);
}

void limiter_set_rules(struct limiter *l, const struct limit_rule *rules, size_t count)
{
	pthread_mutex_lock(&l->rules_lock);
	struct rules *old = l->rules;
	l->rules = rules_new(old->serial + 1, rules, count);
	for (unsigned i = 0; i < STRIPES; i++) {
		pthread_mutex_lock(&l->stripes[i].lock);
		pthread_mutex_unlock(&l->stripes[i].lock);
	}
	rules_free(old);
	pthread_mutex_unlock(&l->rules_lock);
}

void limiter_effective(struct limiter *l, const struct bucket_set *set, struct str scope, unsigned *ret_capacity,
                       unsigned *ret_refill)
{
	scope = scope_cut(scope);
	struct stripe *s = &l->stripes[hash_of(l, set, scope) >> 58];
	pthread_mutex_lock(&s->lock);
	effective(l->rules, set, scope, ret_capacity, ret_refill);
	pthread_mutex_unlock(&s->lock);
}

void limiter_reset(struct limiter *l)
{
	if (l->shared)
		redis_limits_reset(l->shared);
	for (unsigned i = 0; i < STRIPES; i++) {
		struct stripe *s = &l->stripes[i];
		pthread_mutex_lock(&s->lock);
		for (uint32_t b = 0; b < s->room; b++)
			if (s->buckets[b].set)
				stripe_forget(s, b);
		pthread_mutex_unlock(&s->lock);
	}
}

void limiter_stats(struct limiter *l, struct limiter_stats *ret_stats)
{
	struct limiter_stats sum = {0};
	for (unsigned i = 0; i < STRIPES; i++) {
		struct stripe *s = &l->stripes[i];
		pthread_mutex_lock(&s->lock);
		sum.granted += s->granted;
		sum.refused += s->refused;
		sum.evicted += s->evicted;
		sum.buckets += s->used;
		pthread_mutex_unlock(&s->lock);
	}
	sum.shared = l->shared != NULL;
	sum.shared_up = l->shared && redis_limits_up(l->shared);
	*ret_stats = sum;
}

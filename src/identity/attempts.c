/* Failed sign-ins. Names and addresses are hashed with a seed of this process, into sets of four slots. A full set
 * drops the slot with the fewest failures, so that a flood of made-up names does not push out the name that is being
 * guessed. */
#include "identity/attempts.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 16384
#define WAYS 4
#define LOCKS 64
#define WINDOW_MS 60000
#define KNOWN_MS 3600000

struct slot {
	uint64_t key; /* 0: free */
	int64_t at_ms;
	uint64_t count; /* failures since at_ms; for a success its time, so that a full set drops the oldest */
};

struct table {
	pthread_mutex_t locks[LOCKS];
	struct slot slots[SLOTS];
};

struct attempts {
	uint64_t seed;
	_Atomic int64_t last_ms; /* time of the newest failure: when it is long ago, no slot needs to be looked up */
	_Atomic uint64_t failed, refused, signed_in; /* never less: what is taken back was not counted yet */
	_Atomic uint64_t epoch;                      /* from 1; a reset begins another, in which no mark is known */
	struct table names, addresses, successes;
};

static void table_setup(struct table *t)
{
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_init(&t->locks[i], NULL);
}

static void table_clear(struct table *t)
{
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_lock(&t->locks[i]);
	memset(t->slots, 0, sizeof t->slots);
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_unlock(&t->locks[i]);
}

static void table_free(struct table *t)
{
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&t->locks[i]);
}

struct attempts *attempts_new(void)
{
	struct attempts *a = must_calloc(1, sizeof *a);
	random_bytes(&a->seed, sizeof a->seed);
	a->last_ms = INT64_MIN;
	a->epoch = 1;
	table_setup(&a->names);
	table_setup(&a->addresses);
	table_setup(&a->successes);
	return a;
}

void attempts_free(struct attempts *a)
{
	if (!a)
		return;
	table_free(&a->names);
	table_free(&a->addresses);
	table_free(&a->successes);
	free(a);
}

void attempts_reset(struct attempts *a)
{
	table_clear(&a->names);
	table_clear(&a->addresses);
	table_clear(&a->successes);
	a->last_ms = INT64_MIN;
	atomic_fetch_add(&a->epoch, 1);
}

static uint64_t mix(uint64_t h, const void *p, size_t n)
{
	const unsigned char *bytes = p;
	for (size_t i = 0; i < n; i++)
		h = (h ^ bytes[i]) * 0x100000001b3u;
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdu;
	return h ^ h >> 29;
}

/* Never 0, which is a free slot. */
static uint64_t key_of(const struct attempts *a, struct str name, const struct ip *peer)
{
	uint64_t h = mix(a->seed, peer->b, ip_is_v4(peer) ? sizeof peer->b : 8);
	return mix(h, name.p ? name.p : "", name.n) | 1;
}

static size_t set_of(uint64_t key)
{
	return (size_t)(key >> 20) % (SLOTS / WAYS);
}

static int64_t window_of(const struct table *t, const struct attempts *a)
{
	return t == &a->successes ? KNOWN_MS : WINDOW_MS;
}

/* A slot that is too old counts as free; after the clock was set back, too. */
static bool in_time(const struct slot *s, int64_t now, int64_t window)
{
	return s->key && s->at_ms <= now && now - s->at_ms < window;
}

/* Returns a copy; all zero when there is none. */
static struct slot slot_get(struct attempts *a, struct table *t, uint64_t key, int64_t now)
{
	size_t set = set_of(key);
	struct slot found = {0};
	pthread_mutex_lock(&t->locks[set % LOCKS]);
	for (size_t i = 0; i < WAYS; i++) {
		const struct slot *s = &t->slots[set * WAYS + i];
		if (s->key == key && in_time(s, now, window_of(t, a)))
			found = *s;
	}
	pthread_mutex_unlock(&t->locks[set % LOCKS]);
	return found;
}

/* Counts one more, and returns how many there are. With `fresh` (a success) the slot starts over now. */
static uint64_t slot_count(struct attempts *a, struct table *t, uint64_t key, int64_t now, bool fresh)
{
	size_t set = set_of(key);
	int64_t window = window_of(t, a);
	pthread_mutex_lock(&t->locks[set % LOCKS]);
	struct slot *to = &t->slots[set * WAYS];
	for (size_t i = 0; i < WAYS; i++) {
		struct slot *s = &t->slots[set * WAYS + i];
		if (s->key == key) {
			to = s;
			break;
		}
		bool better = in_time(to, now, window) && (!in_time(s, now, window) || s->count < to->count);
		if (better)
			to = s;
	}
	if (to->key != key || fresh || !in_time(to, now, window))
		*to = (struct slot){.key = key, .at_ms = now, .count = fresh ? (uint64_t)now : 0};
	to->count += !fresh;
	uint64_t count = to->count;
	pthread_mutex_unlock(&t->locks[set % LOCKS]);
	return count;
}

static unsigned seconds_left(const struct slot *s, int64_t now)
{
	return (unsigned)((s->at_ms + WINDOW_MS - now + 999) / 1000);
}

enum attempt_state attempt_ask(struct attempts *a, struct str name, const struct ip *peer, unsigned *ret_seconds)
{
	int64_t last = atomic_load_explicit(&a->last_ms, memory_order_relaxed);
	unsigned seconds = 0;
	*ret_seconds = 0;
	if (last == INT64_MIN)
		return ATTEMPT_OPEN;
	int64_t now = clock_now_ms();
	if (now - last >= WINDOW_MS)
		return ATTEMPT_OPEN;
	struct slot one = slot_get(a, &a->addresses, key_of(a, STR_NONE, peer), now);
	if (one.count >= ATTEMPTS_PER_ADDRESS)
		seconds = seconds_left(&one, now);
	if (name.n) {
		one = slot_get(a, &a->names, key_of(a, name, peer), now);
		if (one.count >= ATTEMPTS_PER_NAME && seconds_left(&one, now) > seconds)
			seconds = seconds_left(&one, now);
	}
	if (!seconds)
		return ATTEMPT_OPEN;
	*ret_seconds = seconds;
	if (name.n && slot_get(a, &a->successes, key_of(a, name, peer), now).key)
		return ATTEMPT_KNOWN;
	atomic_fetch_add_explicit(&a->refused, 1, memory_order_relaxed);
	return ATTEMPT_REFUSED;
}

/* Whether as many as may fail have failed before this one. */
static bool failure_count(struct attempts *a, struct str name, const struct ip *peer)
{
	int64_t now = clock_now_ms();
	bool over = slot_count(a, &a->addresses, key_of(a, STR_NONE, peer), now, false) > ATTEMPTS_PER_ADDRESS;
	if (name.n)
		over |= slot_count(a, &a->names, key_of(a, name, peer), now, false) > ATTEMPTS_PER_NAME;
	atomic_store_explicit(&a->last_ms, now, memory_order_relaxed);
	return over;
}

void attempt_failed(struct attempts *a, struct str name, const struct ip *peer)
{
	failure_count(a, name, peer);
	attempt_wrong(a);
}

void attempt_wrong(struct attempts *a)
{
	atomic_fetch_add_explicit(&a->failed, 1, memory_order_relaxed);
}

void attempt_signed_in(struct attempts *a)
{
	atomic_fetch_add_explicit(&a->signed_in, 1, memory_order_relaxed);
}

static void slot_take_back(struct table *t, uint64_t key)
{
	size_t set = set_of(key);
	pthread_mutex_lock(&t->locks[set % LOCKS]);
	for (size_t i = 0; i < WAYS; i++) {
		struct slot *s = &t->slots[set * WAYS + i];
		if (s->key == key && s->count)
			s->count--;
	}
	pthread_mutex_unlock(&t->locks[set % LOCKS]);
}

void attempt_take_back(struct attempts *a, struct str name, const struct ip *peer)
{
	slot_take_back(&a->addresses, key_of(a, STR_NONE, peer));
	if (name.n)
		slot_take_back(&a->names, key_of(a, name, peer));
}

enum attempt_state attempt_begin(struct attempts *a, struct str name, const struct ip *peer, unsigned *ret_seconds)
{
	enum attempt_state state = attempt_ask(a, name, peer, ret_seconds);
	if (state == ATTEMPT_REFUSED || !failure_count(a, name, peer) || state == ATTEMPT_KNOWN)
		return state;
	/* Others came between the question and the count. */
	state = attempt_ask(a, name, peer, ret_seconds);
	if (state == ATTEMPT_REFUSED)
		attempt_take_back(a, name, peer);
	return state;
}

/* No address is all zero, so its key is no other's. */
static uint64_t key_anywhere(const struct attempts *a, struct str name)
{
	static const struct ip nowhere;
	return key_of(a, name, &nowhere);
}

bool attempt_anywhere(struct attempts *a, struct str name, const struct ip *peer, unsigned *ret_seconds)
{
	int64_t now = clock_now_ms();
	uint64_t key = key_anywhere(a, name);
	if (slot_count(a, &a->names, key, now, false) <= ATTEMPTS_PER_NAME ||
	    slot_get(a, &a->successes, key_of(a, name, peer), now).key)
		return true;
	struct slot all = slot_get(a, &a->names, key, now);
	*ret_seconds = seconds_left(&all, now);
	slot_take_back(&a->names, key);
	atomic_fetch_add_explicit(&a->refused, 1, memory_order_relaxed);
	return false;
}

void attempt_anywhere_right(struct attempts *a, struct str name)
{
	slot_take_back(&a->names, key_anywhere(a, name));
}

void attempt_succeeded(struct attempts *a, struct str name, const struct ip *peer)
{
	int64_t now = clock_now_ms();
	uint64_t key = key_of(a, name, peer);
	struct slot known = slot_get(a, &a->successes, key, now);
	/* A success is remembered for an hour, so refreshing it once a minute is enough. */
	if (!known.key || now - known.at_ms >= WINDOW_MS)
		slot_count(a, &a->successes, key, now, true);
}

void attempt_succeeded_again(struct attempts *a, struct str name, const struct ip *peer, struct attempt_mark *mark)
{
	int64_t now = clock_now_ms();
	uint64_t epoch = atomic_load_explicit(&a->epoch, memory_order_relaxed);
	bool told = mark->epoch == epoch && mark->at_ms <= now && now - mark->at_ms < WINDOW_MS;
	if (told && memcmp(&mark->peer, peer, sizeof *peer) == 0)
		return;
	attempt_succeeded(a, name, peer);
	*mark = (struct attempt_mark){.peer = *peer, .at_ms = now, .epoch = epoch};
}

void attempts_stats(struct attempts *a, struct attempts_stats *ret_stats)
{
	ret_stats->failed = atomic_load_explicit(&a->failed, memory_order_relaxed);
	ret_stats->refused = atomic_load_explicit(&a->refused, memory_order_relaxed);
	ret_stats->signed_in = atomic_load_explicit(&a->signed_in, memory_order_relaxed);
}

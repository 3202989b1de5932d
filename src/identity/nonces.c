/* Nonces of digest authentication, and the window against replays.
 *
 * A nonce is the time, a number in order of issue, and a MAC under a salt of this process: a challenge keeps nothing,
 * so a flood of them costs no memory, and a nonce of an earlier process, whose window is lost, is not taken for one of
 * ours. The window is a ring of slots by that number, written only by uses that were proved right. A slot is taken over
 * by a higher number only; a nonce that finds a higher one there has been forgotten and counts as used up. One that
 * finds itself there is ours: its MAC is asked for once, not for each of its uses. */
#include "base/base64.h"
#include "base/clock.h"
#include "identity/identity.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdatomic.h>

#define SLOTS 65536
#define LOCKS 64
#define WINDOW 64
#define STAMP 14 /* 6 bytes of time, 8 of number */
#define MAC 16
#define SALT 16
#define CLOCK_SLACK_MS 5000 /* the clock may be set back a little between issue and use */

/* Nonces that follow each other are used by several threads at once: each slot and lock has a cache line to itself. */
#define LINE 64

struct nonce_slot {
	_Alignas(LINE) uint64_t number; /* 0: never used */
	uint64_t seen;                  /* bit i: count `highest` - i was used */
	uint32_t highest;
	unsigned char raw[STAMP + MAC]; /* the nonce itself: its MAC was right */
};

struct nonce_lock {
	_Alignas(LINE) pthread_mutex_t mutex;
};

struct nonce_window {
	_Atomic uint64_t issued;
	unsigned char salt[SALT];
	struct nonce_lock locks[LOCKS];
	struct nonce_slot slots[SLOTS];
};

struct nonce_window *nonce_window_new(void)
{
	struct nonce_window *w = aligned_alloc(LINE, sizeof *w);
	if (!w)
		abort();
	memset(w, 0, sizeof *w);
	random_bytes(w->salt, sizeof w->salt);
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_init(&w->locks[i].mutex, NULL);
	return w;
}

void nonce_window_free(struct nonce_window *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&w->locks[i].mutex);
	free(w);
}

static struct str nonce_message(const struct nonce_window *w, const unsigned char stamp[STAMP],
                                unsigned char ret_message[STAMP + SALT])
{
	memcpy(ret_message, stamp, STAMP);
	memcpy(ret_message + STAMP, w->salt, SALT);
	return (struct str){(const char *)ret_message, STAMP + SALT};
}

static void number_put(unsigned char *p, uint64_t value, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = (unsigned char)(value >> (8 * (n - 1 - i)));
}

static uint64_t number_get(const unsigned char *p, int n)
{
	uint64_t value = 0;
	for (int i = 0; i < n; i++)
		value = value << 8 | p[i];
	return value;
}

void nonce_issue(struct nonce_window *w, char ret_nonce[NONCE_TEXT])
{
	unsigned char raw[STAMP + MAC], mac[32], message[STAMP + SALT];
	_Static_assert(BASE64_TEXT(sizeof raw) == NONCE_TEXT, "the buffer fits a nonce");
	number_put(raw, (uint64_t)clock_now_ms(), 6);
	number_put(raw + 6, atomic_fetch_add_explicit(&w->issued, 1, memory_order_relaxed) + 1, 8);
	seal_mac("nonce", nonce_message(w, raw, message), mac);
	memcpy(raw + STAMP, mac, MAC);
	base64url_encode(raw, sizeof raw, ret_nonce);
}

/* A count is good once, while it is not too far behind the highest seen. */
static bool slot_use(struct nonce_slot *s, const unsigned char raw[STAMP + MAC], uint32_t count)
{
	uint64_t number = number_get(raw + 6, 8);
	if (s->number > number)
		return false;
	if (s->number < number) {
		*s = (struct nonce_slot){.number = number};
		memcpy(s->raw, raw, sizeof s->raw);
	}
	if (count > s->highest) {
		uint32_t ahead = count - s->highest;
		s->seen = ahead < WINDOW ? s->seen << ahead : 0;
		s->seen |= 1;
		s->highest = count;
		return true;
	}
	uint32_t behind = s->highest - count;
	if (behind >= WINDOW || s->seen >> behind & 1)
		return false;
	s->seen |= (uint64_t)1 << behind;
	return true;
}

/* Never true of a slot that was not used: no nonce has the number 0. */
static bool slot_has(const struct nonce_slot *s, const unsigned char raw[STAMP + MAC])
{
	return s->number && CRYPTO_memcmp(s->raw, raw, sizeof s->raw) == 0;
}

static bool mac_is_right(const struct nonce_window *w, const unsigned char raw[STAMP + MAC])
{
	unsigned char message[STAMP + SALT];
	return seal_mac_is("nonce", nonce_message(w, raw, message), raw + STAMP, MAC);
}

bool nonce_use(struct nonce_window *w, struct str nonce, uint32_t count)
{
	unsigned char raw[STAMP + MAC];
	if (nonce.n != NONCE_TEXT - 1 || count == 0 || base64_decode(nonce, raw, sizeof raw) != sizeof raw)
		return false;
	int64_t age = clock_now_ms() - (int64_t)number_get(raw, 6);
	if (age < -CLOCK_SLACK_MS || age >= NONCE_SECONDS * INT64_C(1000))
		return false;
	size_t slot = number_get(raw + 6, 8) % SLOTS;
	pthread_mutex_t *lock = &w->locks[slot % LOCKS].mutex;
	pthread_mutex_lock(lock);
	if (!slot_has(&w->slots[slot], raw)) {
		/* A MAC is long for a lock that others wait for. */
		pthread_mutex_unlock(lock);
		if (!mac_is_right(w, raw))
			return false;
		pthread_mutex_lock(lock);
	}
	bool fresh = slot_use(&w->slots[slot], raw, count);
	pthread_mutex_unlock(lock);
	return fresh;
}

/* Identifiers and randomness. Random bytes are drawn per thread in blocks, so that an id costs no system call. */
#include "base/id.h"

#include "base/arena.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define ID_RANDOM 7

void random_bytes(void *ret_bytes, size_t n)
{
	char *p = ret_bytes;
	while (n > 0) {
		ssize_t got = getrandom(p, n, 0);
		if (got <= 0) {
			fprintf(stderr, "steward: the system gives no random bytes\n");
			abort();
		}
		p += got;
		n -= (size_t)got;
	}
}

static char hex_digit(unsigned value)
{
	return (char)('0' + value + (value > 9 ? 'a' - '9' - 1 : 0));
}

/* Calculated, because a compiler can do that for many bytes at once. */
void hex_encode(const void *bytes, size_t n, char *ret_text)
{
	const unsigned char *restrict p = bytes;
	char *restrict to = ret_text;
	for (size_t i = 0; i < n; i++) {
		to[2 * i] = hex_digit(p[i] >> 4);
		to[2 * i + 1] = hex_digit(p[i] & 15);
	}
	ret_text[2 * n] = '\0';
}

static _Thread_local unsigned char pool[512];
static _Thread_local size_t left;

static void pool_forget(void)
{
	left = 0;
}

/* A child that went on with its parent's block would make the same ids. */
static void forks_watch(void)
{
	pthread_atfork(NULL, NULL, pool_forget);
}

struct id id_new(void)
{
	static pthread_once_t watched = PTHREAD_ONCE_INIT;
	unsigned char raw[12];
	struct id id;
	int64_t now_ms = clock_now_ms();
	uint32_t seconds = (uint32_t)(now_ms / 1000);
	if (left < ID_RANDOM) {
		pthread_once(&watched, forks_watch);
		random_bytes(pool, sizeof pool);
		left = sizeof pool;
	}
	left -= ID_RANDOM;
	for (int i = 0; i < 4; i++)
		raw[i] = (unsigned char)(seconds >> (24 - 8 * i));
	raw[4] = (unsigned char)(now_ms % 1000 * 256 / 1000);
	memcpy(raw + 5, pool + left, ID_RANDOM);
	hex_encode(raw, sizeof raw, id.z);
	return id;
}

struct str id_make(struct arena *a)
{
	struct id id = id_new();
	return arena_dup(a, id_str(&id));
}

bool id_is_valid(struct str s)
{
	if (s.n != ID_LEN)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
			return false;
	return true;
}

void random_text(char *ret_text, size_t n, const char *alphabet)
{
	size_t letters = strlen(alphabet);
	size_t limit = 256 - 256 % letters;
	for (size_t i = 0; i < n;) {
		unsigned char c;
		random_bytes(&c, 1);
		if (c < limit)
			ret_text[i++] = alphabet[c % letters];
	}
	ret_text[n] = '\0';
}

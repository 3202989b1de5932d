/* Identifiers and randomness. Random bytes are drawn per thread in blocks, so that an id costs no system call. */
#include "base/id.h"

#include "base/arena.h"
#include "base/clock.h"

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

void hex_encode(const void *bytes, size_t n, char *ret_text)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *p = bytes;
	for (size_t i = 0; i < n; i++) {
		ret_text[2 * i] = hex[p[i] >> 4];
		ret_text[2 * i + 1] = hex[p[i] & 15];
	}
	ret_text[2 * n] = '\0';
}

struct id id_new(void)
{
	static _Thread_local unsigned char pool[512];
	static _Thread_local size_t left;
	unsigned char raw[12];
	struct id id;
	int64_t now_ms = clock_now_ms();
	uint32_t seconds = (uint32_t)(now_ms / 1000);
	if (left < ID_RANDOM) {
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

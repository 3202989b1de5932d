/* Base64, as tokens, nonces, sealed values and Basic credentials need it. Decoding is strict where two texts could mean
 * the same bytes: no line breaks, no bits left over. */
#include "base/base64.h"

#include <errno.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_encode(const void *bytes, size_t n, char *ret_text)
{
	const unsigned char *p = bytes;
	unsigned bits = 0, held = 0;
	for (size_t i = 0; i < n; i++) {
		held = (held << 8 | p[i]) & 0xffff;
		for (bits += 8; bits >= 6; bits -= 6)
			*ret_text++ = alphabet[held >> (bits - 6) & 63];
	}
	if (bits)
		*ret_text++ = alphabet[held << (6 - bits) & 63];
	*ret_text = '\0';
}

#define NO_DIGIT 64

static unsigned char values[256];

/* Before main, so that threads need no lock. */
__attribute__((constructor)) static void values_fill(void)
{
	memset(values, NO_DIGIT, sizeof values);
	for (unsigned char i = 0; i < 64; i++)
		values[(unsigned char)alphabet[i]] = i;
	values['+'] = 62;
	values['/'] = 63;
}

static unsigned value_of(char c)
{
	return values[(unsigned char)c];
}

ssize_t base64_decode(struct str text, void *ret_bytes, size_t max)
{
	unsigned char *out = ret_bytes;
	unsigned bits = 0, held = 0;
	size_t n = 0;
	if (text.n % 4 == 0)
		for (int pad = 0; pad < 2 && text.n && text.p[text.n - 1] == '='; pad++)
			text.n--;
	if (text.n % 4 == 1 || text.n / 4 * 3 > max)
		return -EINVAL;
	size_t i = 0;
	for (; text.n - i >= 4 && max - n >= 3; i += 4, n += 3) {
		unsigned a = value_of(text.p[i]), b = value_of(text.p[i + 1]), c = value_of(text.p[i + 2]),
		         d = value_of(text.p[i + 3]);
		if ((a | b | c | d) & NO_DIGIT)
			return -EINVAL;
		out[n] = (unsigned char)(a << 2 | b >> 4);
		out[n + 1] = (unsigned char)(b << 4 | c >> 2);
		out[n + 2] = (unsigned char)(c << 6 | d);
	}
	for (; i < text.n; i++) {
		unsigned v = value_of(text.p[i]);
		if (v == NO_DIGIT)
			return -EINVAL;
		held = (held << 6 | v) & 0xffff;
		bits += 6;
		if (bits < 8)
			continue;
		if (n == max)
			return -EINVAL;
		bits -= 8;
		out[n++] = (unsigned char)(held >> bits);
	}
	return held & ((1u << bits) - 1) ? -EINVAL : (ssize_t)n;
}

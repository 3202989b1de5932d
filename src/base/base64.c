/* Base64, as tokens, nonces, sealed values and Basic credentials need it. Decoding is strict where two texts could mean
 * the same bytes: no line breaks, no bits left over. */
#include "base/base64.h"

#include <errno.h>

void base64url_encode(const void *bytes, size_t n, char *ret_text)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
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

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '-' || c == '+' ? 62 : c == '_' || c == '/' ? 63 : -1;
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
	for (size_t i = 0; i < text.n; i++) {
		int v = value_of(text.p[i]);
		if (v < 0)
			return -EINVAL;
		held = (held << 6 | (unsigned)v) & 0xffff;
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

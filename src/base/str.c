/* Small string helpers. Nothing here allocates. */
#include "base/str.h"

#include <openssl/crypto.h>
#include <stdio.h>

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

bool str_ieq(struct str a, struct str b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (a.p[i] != b.p[i] && lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n && (suffix.n == 0 || memcmp(s.p + (s.n - suffix.n), suffix.p, suffix.n) == 0);
}

struct str str_trim(struct str s)
{
	while (s.n > 0 && (*s.p == ' ' || *s.p == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

bool str_cut(struct str s, char sep, struct str *ret_left, struct str *ret_right)
{
	const char *at = s.n ? memchr(s.p, sep, s.n) : NULL;
	if (!at) {
		*ret_left = s;
		*ret_right = (struct str){s.n ? s.p + s.n : s.p, 0};
		return false;
	}
	*ret_left = (struct str){s.p, (size_t)(at - s.p)};
	*ret_right = (struct str){at + 1, s.n - ret_left->n - 1};
	return true;
}

bool str_is_one_of(const char *choices, struct str text)
{
	struct str one, rest = str_of(choices);
	bool more = true;
	while (more) {
		more = str_cut(rest, '|', &one, &rest);
		if (str_eq(one, text))
			return true;
	}
	return false;
}

bool str_list_has(struct str list, struct str word)
{
	struct str one;
	while (list.n) {
		str_cut(list, ',', &one, &list);
		if (str_eq(str_trim(one), word))
			return true;
	}
	return false;
}

void str_copy(struct str s, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%.*s", STR_ARG(s));
}

bool str_to_u64(struct str s, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;
	if (s.n == 0 || s.n > 20)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		uint64_t digit = (uint64_t)(s.p[i] - '0');
		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	if (value > max)
		return false;
	*ret_value = value;
	return true;
}

unsigned str_distance(struct str a, struct str b)
{
	unsigned row[DISTANCE_MAX + 1];
	if (a.n > DISTANCE_MAX || b.n > DISTANCE_MAX)
		return DISTANCE_MAX;
	for (size_t j = 0; j <= b.n; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= a.n; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b.n; j++) {
			unsigned best = diagonal + (a.p[i - 1] != b.p[j - 1]);
			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[b.n];
}

bool str_eq_secret(struct str a, struct str b)
{
	return a.n == b.n && CRYPTO_memcmp(a.p, b.p, a.n) == 0;
}

int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

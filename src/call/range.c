/* Range and If-Range (RFC 9110, 13.1.5 and 14.2). The header is a stranger's: numbers saturate instead of wrapping, so
 * that no sum of them can lead outside the body. */
#include "call/range.h"

/* Digits alone. A number that is too large means a place behind every body. */
static bool number_read(struct str s, uint64_t *ret_value)
{
	uint64_t value = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		uint64_t digit = (uint64_t)(s.p[i] - '0');
		value = value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
	}
	*ret_value = value;
	return s.n > 0;
}

/* "-N": the last N bytes. */
static enum range_kind suffix_read(struct str count, uint64_t size, uint64_t *ret_first, uint64_t *ret_last)
{
	uint64_t n;
	if (!number_read(count, &n))
		return RANGE_ALL;
	if (!n || !size)
		return RANGE_OUTSIDE;
	*ret_first = n < size ? size - n : 0;
	*ret_last = size - 1;
	return RANGE_PART;
}

enum range_kind range_parse(struct str header, uint64_t size, uint64_t *ret_first, uint64_t *ret_last)
{
	struct str unit, set, from, to;
	uint64_t first, last = UINT64_MAX;
	if (!str_cut(header, '=', &unit, &set) || !str_ieq(str_trim(unit), STR("bytes")))
		return RANGE_ALL;
	if (!str_cut(str_trim(set), '-', &from, &to))
		return RANGE_ALL;
	if (!from.n)
		return suffix_read(to, size, ret_first, ret_last);
	if (!number_read(from, &first) || (to.n && !number_read(to, &last)) || last < first)
		return RANGE_ALL;
	if (first >= size)
		return RANGE_OUTSIDE;
	*ret_first = first;
	*ret_last = last < size ? last : size - 1;
	return RANGE_PART;
}

bool range_is_of(struct str if_range, struct str etag)
{
	return !if_range.p || str_eq(str_trim(if_range), etag);
}

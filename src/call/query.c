/* Query strings, parsed piece by piece. Nothing is copied unless it is encoded. */
#include "call/query.h"

#include "catalog/formats.h"

bool query_next(struct str *rest, struct str *ret_name, struct str *ret_value)
{
	struct str piece;
	do {
		if (rest->n == 0)
			return false;
		str_cut(*rest, '&', &piece, rest);
	} while (piece.n == 0);
	str_cut(piece, '=', ret_name, ret_value);
	return true;
}

static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c == '%' || c == '+' || c == 0 || c >= 0x80)
			return false;
	}
	return true;
}

bool query_decode(struct str encoded, struct arena *a, struct str *ret_text)
{
	if (is_plain(encoded)) {
		*ret_text = encoded;
		return true;
	}
	char *out = arena_alloc(a, encoded.n + 1);
	size_t n = 0;
	for (size_t i = 0; i < encoded.n; i++) {
		char c = encoded.p[i];
		if (c == '+') {
			c = ' ';
		} else if (c == '%') {
			int high = encoded.n - i > 2 ? hex_value(encoded.p[i + 1]) : -1;
			int low = encoded.n - i > 2 ? hex_value(encoded.p[i + 2]) : -1;
			if (high < 0 || low < 0)
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (c == 0)
			return false;
		out[n++] = c;
	}
	struct str text = {out, n};
	if (!utf8_is_valid(text))
		return false;
	*ret_text = text;
	return true;
}

void query_peek(struct str query, bool *ret_envelope, bool *ret_pretty)
{
	struct str rest = query, name, value;
	bool envelope = false, pretty = false;
	for (unsigned i = 0; i < QUERY_PARAMS_MAX && query_next(&rest, &name, &value); i++) {
		if (str_is(name, "envelope"))
			envelope = str_is(value, "true");
		else if (str_is(name, "pretty"))
			pretty = str_is(value, "true");
	}
	*ret_envelope = envelope;
	*ret_pretty = pretty;
}

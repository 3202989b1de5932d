/* Arguments of statements, in the form in which PostgreSQL takes them. */
#include "store/pg/pg.h"

#include <assert.h>

bool pg_utf8(struct str s)
{
	for (size_t i = 0; i < s.n;) {
		unsigned char c = (unsigned char)s.p[i];
		size_t more = c < 0x80                ? 0
		              : c >= 0xc2 && c < 0xe0 ? 1
		              : c >= 0xe0 && c < 0xf0 ? 2
		              : c >= 0xf0 && c < 0xf5 ? 3
		                                      : 9;
		if (c == 0 || more > s.n - i - 1)
			return false;
		uint32_t v = more ? c & (0x3fu >> more) : c;
		for (size_t k = 1; k <= more; k++) {
			unsigned char next = (unsigned char)s.p[i + k];
			if ((next & 0xc0) != 0x80)
				return false;
			v = v << 6 | (next & 0x3fu);
		}
		if ((more == 2 && (v < 0x800 || (v >= 0xd800 && v < 0xe000))) ||
		    (more == 3 && (v < 0x10000 || v > 0x10ffff)))
			return false;
		i += more + 1;
	}
	return true;
}

/* Texts are sent in binary form: with a length, and without a NUL. */
void pg_str(struct pg_args *a, struct str s)
{
	assert(a->count < PG_ARGS_MAX);
	if (!pg_utf8(s))
		a->impossible = true;
	a->values[a->count] = s.n ? s.p : "";
	a->lengths[a->count] = (int)s.n;
	a->formats[a->count++] = 1;
}

void pg_str_or_null(struct pg_args *a, struct str s)
{
	pg_str(a, s);
	if (!s.n)
		a->values[a->count - 1] = NULL;
}

void pg_z(struct pg_args *a, const char *z)
{
	pg_str(a, str_of(z));
}

/* As decimal text, which works for every numeric type. */
void pg_int(struct pg_args *a, int64_t v)
{
	assert(a->count < PG_ARGS_MAX);
	a->lengths[a->count] = snprintf(a->numbers[a->count], sizeof a->numbers[a->count], "%lld", (long long)v);
	a->values[a->count] = a->numbers[a->count];
	a->formats[a->count++] = 0;
}

void pg_bytes(struct pg_args *a, const void *p, size_t n)
{
	assert(a->count < PG_ARGS_MAX);
	a->values[a->count] = p;
	a->lengths[a->count] = (int)n;
	a->formats[a->count++] = 1;
}

/* Strings are passed as (pointer, length). A struct str borrows its bytes and is not NUL-terminated unless said. */
#ifndef STEWARD_BASE_STR_H
#define STEWARD_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *p;
	size_t n;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})
#define STR_NONE ((struct str){NULL, 0})
/* For printf's "%.*s". The argument is evaluated twice, so it is a name, a member, or a call that only looks:
 * script/check-order refuses others. */
#define STR_ARG(s) (int)(s).n, (s).p

#define must_check __attribute__((warn_unused_result))
#define printf_like(f, a) __attribute__((format(printf, f, a)))

static inline struct str str_of(const char *z)
{
	return (struct str){z, z ? strlen(z) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || (a.p && b.p && memcmp(a.p, b.p, a.n) == 0));
}

static inline bool str_is(struct str a, const char *z)
{
	return str_eq(a, str_of(z));
}

/* ASCII case-insensitive. */
bool str_ieq(struct str a, struct str b);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

/* Without leading and trailing spaces and tabs. */
struct str str_trim(struct str s);

/* Splits at the first `sep`. False, with *ret_left = s and *ret_right empty, when there is none. */
bool str_cut(struct str s, char sep, struct str *ret_left, struct str *ret_right);
/* Choices are separated by "|". */
bool str_is_one_of(const char *choices, struct str text);
/* Whether one of the items between the commas is that word; spaces around them do not count. */
bool str_list_has(struct str list, struct str word);

/* Copies what there is room for; the copy is NUL-terminated. */
void str_copy(struct str s, char *ret_text, size_t size);

/* Whole string, digits only, no sign, no overflow past `max`. */
must_check bool str_to_u64(struct str s, uint64_t max, uint64_t *ret_value);

/* The value of a hexadecimal digit; -1: it is none. */
int hex_value(char c);

#define U64_TEXT 20
/* Writes digits without printf, for numbers that every request writes. They end at the end of ret_text. */
static inline struct str str_from_u64(uint64_t v, char ret_text[U64_TEXT])
{
	char *p = ret_text + U64_TEXT;
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	return (struct str){p, (size_t)(ret_text + U64_TEXT - p)};
}

#define DISTANCE_MAX 64
/* How many letters must be added, left out or changed to make one of the other; DISTANCE_MAX for longer names. */
unsigned str_distance(struct str a, struct str b);

/* Compares without an early exit, for secrets. */
bool str_eq_secret(struct str a, struct str b);

#endif

/* Identifiers are 24 lower-case hexadecimal digits: 8 for the seconds since 1970, 2 for the 256th part of the second
 * and 14 random. The time comes first so that documents made together are neighbours in an index. */
#ifndef STEWARD_BASE_ID_H
#define STEWARD_BASE_ID_H

#include "base/str.h"

#define ID_LEN 24

struct id {
	char z[ID_LEN + 1];
};

struct id id_new(void);
/* The same as a text in the arena. */
struct arena;
struct str id_make(struct arena *a);
bool id_is_valid(struct str s);

static inline struct str id_str(const struct id *id)
{
	return (struct str){id->z, ID_LEN};
}

/* n random bytes from the system; n random characters of the alphabet, NUL-terminated (buffer of n + 1). */
void random_bytes(void *ret_bytes, size_t n);
void random_text(char *ret_text, size_t n, const char *alphabet);
/* Lower-case hexadecimal of n bytes; the buffer holds 2 n + 1. */
void hex_encode(const void *bytes, size_t n, char *ret_text);

#endif

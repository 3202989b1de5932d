/* A growable byte buffer on the heap, and a JSON writer on top of it. Zero-initialise, use, buf_free(). */
#ifndef STEWARD_BASE_BUF_H
#define STEWARD_BASE_BUF_H

#include "base/str.h"

struct buf {
	char *p;
	size_t n, cap;
};

void buf_free(struct buf *b);
void buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_printf(struct buf *b, const char *format, ...) printf_like(2, 3);

static inline void buf_str(struct buf *b, struct str s)
{
	buf_add(b, s.p, s.n);
}

static inline void buf_z(struct buf *b, const char *z)
{
	buf_add(b, z, strlen(z));
}

static inline void buf_c(struct buf *b, char c)
{
	if (b->n == b->cap)
		buf_reserve(b, 1);
	b->p[b->n++] = c;
}

/* The bytes as a text in the arena, NUL-terminated; the buffer is freed. */
struct arena;
struct str buf_keep(struct buf *b, struct arena *a);

/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);

static inline struct str buf_view(const struct buf *b)
{
	return (struct str){b->p, b->n};
}

/* JSON. json_sep() writes a comma unless the last byte opens a container or follows a key, so that the callers below
 * can be called one after the other without bookkeeping. */
void json_sep(struct buf *b);
void json_open(struct buf *b, char bracket);  /* '{' or '[' */
void json_close(struct buf *b, char bracket); /* '}' or ']' */
void json_key(struct buf *b, const char *key);
void json_key_str(struct buf *b, struct str key);
void json_str(struct buf *b, struct str s);
void json_z(struct buf *b, const char *z);
void json_int(struct buf *b, int64_t v);
void json_bool(struct buf *b, bool v);
void json_nil(struct buf *b); /* null. Not json_string() and json_null(): those are Jansson's */
/* A key with its value; a time is in ISO 8601. */
void json_pair_str(struct buf *b, const char *key, struct str s);
void json_pair_z(struct buf *b, const char *key, const char *z);
void json_pair_int(struct buf *b, const char *key, int64_t v);
void json_pair_bool(struct buf *b, const char *key, bool v);
void json_pair_time(struct buf *b, const char *key, int64_t ms);
/* Text that is JSON already. */
void json_raw(struct buf *b, struct str json);

#endif

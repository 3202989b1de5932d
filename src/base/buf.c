/* Growable buffer and JSON writer. The writer decides on commas from the last byte written, so it keeps no state. */
#include "base/buf.h"

#include "base/arena.h"
#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void buf_free(struct buf *b)
{
	free(b->p);
	*b = (struct buf){0};
}

struct str buf_keep(struct buf *b, struct arena *a)
{
	struct str text = arena_dup(a, buf_view(b));
	buf_free(b);
	return text;
}

void buf_reserve(struct buf *b, size_t more)
{
	if (b->cap - b->n >= more)
		return;
	size_t cap = b->cap ? b->cap : 256;
	while (cap - b->n < more)
		cap *= 2;
	b->p = must_realloc(b->p, cap);
	b->cap = cap;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
	if (n == 0)
		return;
	buf_reserve(b, n);
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	buf_reserve(b, 64);
	int n = vsnprintf(b->p + b->n, b->cap - b->n, format, args);
	if (n >= 0 && (size_t)n >= b->cap - b->n) {
		buf_reserve(b, (size_t)n + 1);
		vsnprintf(b->p + b->n, b->cap - b->n, format, again);
	}
	if (n > 0)
		b->n += (size_t)n;
	va_end(again);
	va_end(args);
}

void buf_consume(struct buf *b, size_t n)
{
	if (n >= b->n) {
		b->n = 0;
		return;
	}
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
}

void json_sep(struct buf *b)
{
	if (b->n == 0)
		return;
	char last = b->p[b->n - 1];
	if (last != '{' && last != '[' && last != ':' && last != ',')
		buf_c(b, ',');
}

void json_open(struct buf *b, char bracket)
{
	json_sep(b);
	buf_c(b, bracket);
}

void json_close(struct buf *b, char bracket)
{
	buf_c(b, bracket);
}

static void quoted(struct buf *b, struct str s)
{
	static const char hex[] = "0123456789abcdef";
	buf_reserve(b, s.n + 2);
	buf_c(b, '"');
	size_t from = 0;
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_add(b, s.p + from, i - from);
		from = i + 1;
		switch (c) {
		case '"': buf_z(b, "\\\""); break;
		case '\\': buf_z(b, "\\\\"); break;
		case '\n': buf_z(b, "\\n"); break;
		case '\r': buf_z(b, "\\r"); break;
		case '\t': buf_z(b, "\\t"); break;
		default: {
			char esc[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
			buf_add(b, esc, sizeof esc);
		}
		}
	}
	if (s.n > from)
		buf_add(b, s.p + from, s.n - from);
	buf_c(b, '"');
}

void json_key_str(struct buf *b, struct str key)
{
	json_sep(b);
	quoted(b, key);
	buf_c(b, ':');
}

void json_key(struct buf *b, const char *key)
{
	json_key_str(b, str_of(key));
}

void json_str(struct buf *b, struct str s)
{
	json_sep(b);
	quoted(b, s);
}

void json_z(struct buf *b, const char *z)
{
	json_str(b, str_of(z));
}

void json_int(struct buf *b, int64_t v)
{
	json_sep(b);
	buf_printf(b, "%lld", (long long)v);
}

void json_bool(struct buf *b, bool v)
{
	json_sep(b);
	buf_z(b, v ? "true" : "false");
}

void json_nil(struct buf *b)
{
	json_sep(b);
	buf_z(b, "null");
}

void json_raw(struct buf *b, struct str json)
{
	json_sep(b);
	buf_str(b, json);
}

void json_pair_str(struct buf *b, const char *key, struct str s)
{
	json_key(b, key);
	json_str(b, s);
}

void json_pair_z(struct buf *b, const char *key, const char *z)
{
	json_pair_str(b, key, str_of(z));
}

void json_pair_int(struct buf *b, const char *key, int64_t v)
{
	json_key(b, key);
	json_int(b, v);
}

void json_pair_bool(struct buf *b, const char *key, bool v)
{
	json_key(b, key);
	json_bool(b, v);
}

void json_pair_time(struct buf *b, const char *key, int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	json_pair_z(b, key, text);
}

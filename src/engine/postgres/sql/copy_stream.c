/* A message is a byte that says what it is, four bytes of length, and its body. Of those in a copy only the rows and a
 * refusal are looked at: the others say how it begins and ends. */
#include "engine/postgres/sql/copy_stream.h"

#include "catalog/formats.h"

#include <errno.h>
#include <stdio.h>

#define HEAD 5              /* bytes of a message before its body */
#define LENGTH_OWN 4        /* of its length, which counts itself */
#define BODY_MAX (1u << 30) /* no message of a server is longer */

enum { ROWS = 'd', REFUSED = 'E', COMPLETE = 'C', READY = 'Z' };

/* How many of the bytes are whole characters: one that is cut at the end waits for the rest of it. */
static size_t whole_characters(const unsigned char *p, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = p[n - back];
		if ((c & 0xc0u) == 0x80u)
			continue;
		size_t wanted = c >= 0xf0u ? 4 : c >= 0xe0u ? 3 : c >= 0xc0u ? 2 : 1;
		return wanted > back ? n - back : n;
	}
	return n;
}

static int bytes_pass(struct pg_copy *s, const char *p, size_t n)
{
	int r = s->write(s->ctx, p, n);
	s->unwritten = r < 0;
	return r;
}

static int rows_pass(struct pg_copy *s, const char *p, size_t n)
{
	for (const char *at = p, *end = p + n; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		if (newline == at && !s->in_line) {
			s->left_out = true;
			return -EBADMSG;
		}
		s->rows += newline != NULL;
		s->in_line = !newline;
		at = newline ? newline + 1 : end;
	}
	if (!utf8_is_valid((struct str){p, n}))
		return -EBADMSG;
	return bytes_pass(s, p, n);
}

/* The beginning of it. */
static void text_keep(char *text, size_t size, size_t *n, const char *p, size_t more)
{
	more = more < size - *n ? more : size - *n;
	memcpy(text + *n, p, more);
	*n += more;
}

/* Of the current message; returns how many bytes of it were taken. */
static ssize_t body_take(struct pg_copy *s, const char *p, size_t n)
{
	bool all = n >= s->left;
	n = all ? s->left : n;
	if (s->type == REFUSED)
		text_keep(s->refusal, sizeof s->refusal, &s->refusal_n, p, n);
	if (s->type == COMPLETE)
		text_keep(s->count, sizeof s->count, &s->count_n, p, n);
	if (s->type == ROWS && s->binary) {
		int r = bytes_pass(s, p, n);
		if (r < 0)
			return r;
	} else if (s->type == ROWS) {
		n = all ? n : whole_characters((const unsigned char *)p, n);
		int r = n ? rows_pass(s, p, n) : 0;
		if (r < 0)
			return r;
	}
	s->left -= (uint32_t)n;
	return (ssize_t)n;
}

static int head_take(struct pg_copy *s, const unsigned char *p)
{
	uint32_t length = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
	if (length < LENGTH_OWN || length > BODY_MAX)
		return -EPROTO;
	s->within = true;
	s->type = (char)p[0];
	s->left = length - LENGTH_OWN;
	return 0;
}

/* "COPY 12", with a NUL behind it. */
static bool count_read(struct pg_copy *s)
{
	struct str text = {s->count, strnlen(s->count, s->count_n)};
	size_t head = strlen("COPY ");
	return str_starts(text, STR("COPY ")) &&
	       str_to_u64((struct str){text.p + head, text.n - head}, UINT64_MAX, &s->rows);
}

static void message_end(struct pg_copy *s)
{
	s->within = false;
	s->copied |= s->type == COMPLETE && (!s->binary || count_read(s));
	s->over = s->type == READY;
}

ssize_t pg_copy_take(struct pg_copy *s, const void *bytes, size_t n)
{
	const char *p = bytes;
	size_t used = 0;
	while (!s->over) {
		if (!s->within && n - used < HEAD)
			break;
		if (!s->within) {
			int r = head_take(s, (const unsigned char *)p + used);
			if (r < 0)
				return r;
			used += HEAD;
		}
		ssize_t taken = s->left ? body_take(s, p + used, n - used) : 0;
		if (taken < 0)
			return taken;
		used += (size_t)taken;
		if (s->left)
			break;
		message_end(s);
	}
	return (ssize_t)used;
}

/* Its fields are a byte that says what they are, and a text; M is the message for people. */
void pg_copy_refusal(const struct pg_copy *s, char *ret_text, size_t size)
{
	*ret_text = 0;
	for (size_t at = 0; at < s->refusal_n && s->refusal[at];) {
		const char *text = s->refusal + at + 1;
		size_t n = strnlen(text, s->refusal_n - at - 1);
		if (s->refusal[at] == 'M') {
			snprintf(ret_text, size, "%.*s", (int)n, text);
			return;
		}
		at += n + 2;
	}
}

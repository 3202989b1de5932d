/* From bytes to tokens, each with its line and column. Text outside strings and comments is ASCII. */
#include "policy/lexer.h"

static const char *const marks[] = {"::", "==", "!=", "<=", ">=", "&&", "||", "(", ")", "{", "}", "[", "]",
                                    ",",  ";",  ":",  ".",  "@",  "<",  ">",  "!", "-", "+", "*", "?"};

static bool is_word(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

/* Skips n bytes. A character is counted at its first byte. */
static void skip(struct lexer *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)x->rest.p[i];
		if (c == '\n') {
			x->line++;
			x->column = 1;
		} else if ((c & 0xc0) != 0x80) {
			x->column++;
		}
	}
	x->rest = (struct str){x->rest.p + n, x->rest.n - n};
}

static void skip_blank(struct lexer *x)
{
	while (x->rest.n) {
		if (strchr(" \t\r\n\f\v", x->rest.p[0]) && x->rest.p[0]) {
			skip(x, 1);
		} else if (str_starts(x->rest, STR("//"))) {
			const char *end = memchr(x->rest.p, '\n', x->rest.n);
			skip(x, end ? (size_t)(end - x->rest.p) : x->rest.n);
		} else {
			return;
		}
	}
}

static bool lexer_refuse(const struct lexer *x, struct policy_fault *ret_fault, struct str text)
{
	*ret_fault = (struct policy_fault){x->line, x->column, text};
	return false;
}

/* Bytes up to the closing quote; SIZE_MAX when there is none. */
static size_t string_length(struct str s)
{
	for (size_t i = 1; i < s.n; i++) {
		if (s.p[i] == '"')
			return i - 1;
		if (s.p[i] == '\\')
			i++;
	}
	return SIZE_MAX;
}

static bool mark_next(struct lexer *x, struct arena *a, struct token *t, struct policy_fault *ret_fault)
{
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (str_starts(x->rest, str_of(marks[i]))) {
			t->kind = TOKEN_MARK;
			t->text = (struct str){x->rest.p, strlen(marks[i])};
			return true;
		}
	char c = x->rest.p[0];
	if (c > ' ' && c < 0x7f)
		return lexer_refuse(x, ret_fault, arena_printf(a, "the character '%c' has no meaning here", c));
	return lexer_refuse(x, ret_fault, STR("this character has no meaning outside of strings and comments"));
}

bool lexer_next(struct lexer *x, struct arena *a, struct token *ret_token, struct policy_fault *ret_fault)
{
	skip_blank(x);
	struct token t = {.kind = TOKEN_END, .line = x->line, .column = x->column, .text = {x->rest.p, 0}};
	size_t n = 0;
	if (x->rest.n && is_word(x->rest.p[0], true)) {
		t.kind = TOKEN_WORD;
		while (n < x->rest.n && is_word(x->rest.p[n], false))
			n++;
		t.text.n = n;
	} else if (x->rest.n && x->rest.p[0] >= '0' && x->rest.p[0] <= '9') {
		t.kind = TOKEN_NUMBER;
		while (n < x->rest.n && x->rest.p[n] >= '0' && x->rest.p[n] <= '9')
			n++;
		t.text.n = n;
	} else if (x->rest.n && x->rest.p[0] == '"') {
		n = string_length(x->rest);
		if (n == SIZE_MAX)
			return lexer_refuse(x, ret_fault, STR("this string does not end: expected '\"'"));
		t.kind = TOKEN_STRING;
		t.text = (struct str){x->rest.p + 1, n};
		n += 2;
	} else if (x->rest.n) {
		if (!mark_next(x, a, &t, ret_fault))
			return false;
		n = t.text.n;
	}
	skip(x, n);
	*ret_token = t;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to `most` digits; -1 when there is none. */
static long hex_take(struct str *s, size_t most)
{
	long value = -1;
	for (size_t i = 0; i < most && s->n && hex_digit(s->p[0]) >= 0; i++) {
		value = (value < 0 ? 0 : value) * 16 + hex_digit(s->p[0]);
		*s = (struct str){s->p + 1, s->n - 1};
	}
	return value;
}

static size_t utf8_write(char *out, long code)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	for (size_t i = n; i-- > 1; code >>= 6)
		out[i] = (char)(0x80 | (code & 0x3f));
	out[0] = (char)(lead[n] | code);
	return n;
}

/* What follows a backslash: the code point, or -1. */
static long escape_take(struct str *s, bool pattern)
{
	static const char names[] = "nrt\\0'\"", codes[] = "\n\r\t\\\0'\"";
	if (!s->n)
		return -1;
	char c = s->p[0];
	*s = (struct str){s->p + 1, s->n - 1};
	const char *at = memchr(names, c, sizeof names - 1);
	if (at)
		return codes[at - names];
	if (c == '*' && pattern)
		return c;
	if (c == 'x') {
		struct str before = *s;
		long code = hex_take(s, 2);
		return before.n - s->n == 2 && code < 0x80 ? code : -1;
	}
	if (c != 'u' || !s->n || s->p[0] != '{')
		return -1;
	*s = (struct str){s->p + 1, s->n - 1};
	long code = hex_take(s, 6);
	if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || !s->n || s->p[0] != '}')
		return -1;
	*s = (struct str){s->p + 1, s->n - 1};
	return code;
}

bool lexer_unescape(const struct token *t, struct arena *a, struct str *raw, bool *ret_wild, struct str *ret_text,
                    struct policy_fault *ret_fault)
{
	char *out = arena_alloc(a, raw->n + 4);
	size_t n = 0;
	bool wild = false;
	while (raw->n && !wild) {
		char c = raw->p[0];
		*raw = (struct str){raw->p + 1, raw->n - 1};
		if (c == '*' && ret_wild) {
			wild = true;
		} else if (c != '\\') {
			out[n++] = c;
		} else {
			long code = escape_take(raw, ret_wild != NULL);
			if (code < 0) {
				*ret_fault = (struct policy_fault){t->line, t->column,
				                                   STR("an escape in this string is none of \\n \\r "
				                                       "\\t \\0 \\\\ \\\" \\' \\x00-\\x7f \\u{...}")};
				return false;
			}
			n += utf8_write(out + n, code);
		}
	}
	if (ret_wild)
		*ret_wild = wild;
	*ret_text = (struct str){out, n};
	return true;
}

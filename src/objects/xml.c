/* Reading the XML of servers: elements and their texts. Attributes are skipped; comments, instructions and CDATA
 * are known; a document type is refused, and with it every entity but XML's own five and characters by number. */
#include "objects/xml.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>

#define DEPTH_MAX 8
#define NUMBER_MAX 8 /* digits of a character's number */

struct scan {
	struct str rest;
	struct str open[DEPTH_MAX]; /* names of the elements around us */
	unsigned depth;
	struct buf text; /* since the last tag */
	size_t used;     /* of it, at most: answers with keys are read too, and no copy of those stays behind */
};

static bool take(struct str *s, const char *z)
{
	if (!str_starts(*s, str_of(z)))
		return false;
	s->p += strlen(z);
	s->n -= strlen(z);
	return true;
}

/* Up to `end`, which is taken too. False: it never comes. */
static bool take_until(struct str *s, const char *end, struct str *ret_text)
{
	const char *at = s->n ? memmem(s->p, s->n, end, strlen(end)) : NULL;
	if (!at)
		return false;
	*ret_text = (struct str){s->p, (size_t)(at - s->p)};
	s->n -= ret_text->n + strlen(end);
	s->p = at + strlen(end);
	return true;
}

static void utf8_add(struct buf *b, unsigned c)
{
	if (c < 0x80) {
		buf_c(b, (char)c);
		return;
	}
	if (c < 0x800) {
		buf_c(b, (char)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			buf_c(b, (char)(0xe0 | c >> 12));
		} else {
			buf_c(b, (char)(0xf0 | c >> 18));
			buf_c(b, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		buf_c(b, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	buf_c(b, (char)(0x80 | (c & 0x3f)));
}

static bool number_add(struct buf *b, struct str digits)
{
	unsigned base = take(&digits, "x") ? 16 : 10, c = 0;
	if (digits.n == 0 || digits.n > NUMBER_MAX)
		return false;
	for (size_t i = 0; i < digits.n; i++) {
		int v = hex_value(digits.p[i]);
		if (v < 0 || (unsigned)v >= base)
			return false;
		c = c * base + (unsigned)v;
		if (c > 0x10ffff)
			return false;
	}
	if (c == 0 || (c >= 0xd800 && c < 0xe000))
		return false;
	utf8_add(b, c);
	return true;
}

static bool entity_add(struct buf *b, struct str name)
{
	static const struct {
		const char *name;
		char c;
	} known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (str_is(name, known[i].name)) {
			buf_c(b, known[i].c);
			return true;
		}
	return take(&name, "#") && number_add(b, name);
}

static bool text_add(struct buf *b, struct str raw)
{
	struct str name;
	while (raw.n > 0) {
		const char *and = memchr(raw.p, '&', raw.n);
		size_t plain = and? (size_t)(and-raw.p) : raw.n;
		buf_add(b, raw.p, plain);
		raw.p += plain;
		raw.n -= plain;
		if (take(&raw, "&") && (!take_until(&raw, ";", &name) || !entity_add(b, name)))
			return false;
	}
	return true;
}

static struct str name_of(struct str tag)
{
	size_t n = 0;
	while (n < tag.n && !memchr(" \t\r\n/", tag.p[n], 5))
		n++;
	return (struct str){tag.p, n};
}

static void text_drop(struct scan *s)
{
	if (s->text.n > s->used)
		s->used = s->text.n;
	s->text.n = 0;
}

static int element_close(struct scan *s, struct str name, object_xml_end *end, void *ctx)
{
	if (s->depth == 0 || !str_eq(name, s->open[s->depth - 1]))
		return -EPROTO;
	struct str around = s->depth > 1 ? s->open[s->depth - 2] : STR_NONE;
	int r = end(ctx, s->depth, around, name, buf_view(&s->text));
	s->depth--;
	text_drop(s);
	return r;
}

/* Quotes in attributes may hold a ">". */
static bool tag_take(struct str *rest, struct str *ret_tag)
{
	char quote = 0;
	for (size_t i = 0; i < rest->n; i++) {
		char c = rest->p[i];
		if (quote) {
			if (c == quote)
				quote = 0;
		} else if (c == '"' || c == '\'') {
			quote = c;
		} else if (c == '<') {
			return false;
		} else if (c == '>') {
			*ret_tag = (struct str){rest->p, i};
			rest->p += i + 1;
			rest->n -= i + 1;
			return true;
		}
	}
	return false;
}

static int element_open(struct scan *s, object_xml_end *end, void *ctx)
{
	struct str tag, name;
	if (!tag_take(&s->rest, &tag))
		return -EPROTO;
	name = name_of(tag);
	if (name.n == 0 || s->depth == DEPTH_MAX)
		return -EPROTO;
	s->open[s->depth++] = name;
	text_drop(s);
	return tag.p[tag.n - 1] == '/' ? element_close(s, name, end, ctx) : 0;
}

/* What begins with "<", up to its end. */
static int markup(struct scan *s, bool *seen_root, object_xml_end *end, void *ctx)
{
	struct str ignored;
	if (take(&s->rest, "<?"))
		return take_until(&s->rest, "?>", &ignored) ? 0 : -EPROTO;
	if (take(&s->rest, "<!--"))
		return take_until(&s->rest, "-->", &ignored) ? 0 : -EPROTO;
	if (take(&s->rest, "<![CDATA[")) {
		if (!s->depth || !take_until(&s->rest, "]]>", &ignored))
			return -EPROTO;
		buf_str(&s->text, ignored);
		return 0;
	}
	if (take(&s->rest, "<!"))
		return -EPROTO;
	if (take(&s->rest, "</"))
		return tag_take(&s->rest, &ignored) ? element_close(s, name_of(ignored), end, ctx) : -EPROTO;
	if (!take(&s->rest, "<") || (s->depth == 0 && *seen_root))
		return -EPROTO;
	*seen_root = true;
	return element_open(s, end, ctx);
}

static bool is_blank(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!memchr(" \t\r\n", s.p[i], 4))
			return false;
	return true;
}

int object_xml_walk(struct str xml, object_xml_end *end, void *ctx)
{
	struct scan s = {.rest = xml};
	bool seen_root = false;
	int r = 0;
	/* At once: no text is longer than its XML, and growing would leave copies of it. */
	buf_reserve(&s.text, xml.n + 1);
	take(&s.rest, "\xef\xbb\xbf");
	while (r == 0 && s.rest.n > 0) {
		const char *less = memchr(s.rest.p, '<', s.rest.n);
		struct str raw = {s.rest.p, less ? (size_t)(less - s.rest.p) : s.rest.n};
		s.rest.p += raw.n;
		s.rest.n -= raw.n;
		if (s.depth == 0 ? !is_blank(raw) : !text_add(&s.text, raw))
			r = -EPROTO;
		else if (s.rest.n > 0)
			r = markup(&s, &seen_root, end, ctx);
	}
	if (r == 0 && (s.depth > 0 || !seen_root))
		r = -EPROTO;
	text_drop(&s);
	OPENSSL_cleanse(s.text.p, s.used);
	buf_free(&s.text);
	return r;
}

/* Faults. */

static int fault_end(void *ctx, unsigned depth, struct str around, struct str name, struct str text)
{
	struct object_fault *f = ctx;
	if (depth == 2 && str_is(around, "Error") && str_is(name, "Code"))
		snprintf(f->code, sizeof f->code, "%.*s", (int)(text.n < 63 ? text.n : 63), text.n ? text.p : "");
	else if (depth == 2 && str_is(around, "Error") && str_is(name, "Message"))
		snprintf(f->message, sizeof f->message, "%.*s", (int)(text.n < OBJECT_WORDS ? text.n : OBJECT_WORDS),
		         text.n ? text.p : "");
	return 0;
}

void object_xml_fault(struct str xml, struct object_fault *ret_fault)
{
	struct object_fault fault = {.code = ""};
	int r = object_xml_walk(xml, fault_end, &fault);
	*ret_fault = r == 0 ? fault : (struct object_fault){.code = ""};
}

/* One field. */

struct field {
	const char *root, *name;
	struct buf *text;
	bool found;
};

static int field_end(void *ctx, unsigned depth, struct str around, struct str name, struct str text)
{
	struct field *f = ctx;
	if (depth == 2 && str_is(around, f->root) && str_is(name, f->name)) {
		f->text->n = 0;
		buf_str(f->text, text);
		f->found = true;
	}
	return 0;
}

int object_xml_field(struct str xml, const char *root, const char *name, struct buf *ret_text)
{
	struct field f = {.root = root, .name = name, .text = ret_text};
	int r = object_xml_walk(xml, field_end, &f);
	return r == 0 && !f.found ? -EPROTO : r;
}

struct find {
	const char *root, *around, *name;
	struct buf *text;
	bool found, is_root;
};

static int find_end(void *ctx, unsigned depth, struct str around, struct str name, struct str text)
{
	struct find *f = ctx;
	if (depth == 1)
		f->is_root = str_is(name, f->root);
	if (!f->found && str_is(around, f->around) && str_is(name, f->name)) {
		f->text->n = 0;
		buf_str(f->text, text);
		f->found = true;
	}
	return 0;
}

int object_xml_find(struct str xml, const char *root, const char *around, const char *name, struct buf *ret_text)
{
	struct find f = {.root = root, .around = around, .name = name, .text = ret_text};
	int r = object_xml_walk(xml, find_end, &f);
	return r == 0 && (!f.found || !f.is_root) ? -EPROTO : r;
}

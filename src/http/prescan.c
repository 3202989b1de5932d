/* The strict reading of an HTTP/1 header block. It decides on framing (Content-Length, chunked) and on whether the
 * block is accepted at all; llhttp then parses the fields, and both must agree. It is one pass over a table of
 * character classes, since every request goes through it. */
#include "http/prescan.h"

#include <errno.h>
#include <sys/types.h>

enum { TOKEN = 1, TARGET = 2, HOST = 4 };

static unsigned char classes[256];

/* Before main, so that the loops need no lock. */
__attribute__((constructor)) static void classes_fill(void)
{
	for (int c = 0; c < 256; c++) {
		bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (alnum || (c && strchr("!#$%&'*+-.^_`|~", c)))
			classes[c] |= TOKEN;
		if (c > 0x20 && c < 0x7f && c != '#')
			classes[c] |= TARGET;
		if (alnum || (c && strchr("-._~!$&'()*+;=%:[]", c)))
			classes[c] |= HOST;
	}
}

/* Most of a header block is values. There is no table and no early exit here, so that a compiler can check many bytes
 * at once. */
static bool value_ok(struct str s)
{
	unsigned char wrong = 0;
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		wrong |= (unsigned char)((c < 0x20) & (c != '\t')) | (unsigned char)(c == 0x7f);
	}
	return !wrong;
}

static bool all_of(struct str s, unsigned class)
{
	for (size_t i = 0; i < s.n; i++)
		if (!(classes[(unsigned char)s.p[i]] & class))
			return false;
	return true;
}

ssize_t prescan_end(const char *p, size_t n, size_t from)
{
	/* Continue at the start of the line that was incomplete. */
	const char *last = from ? memrchr(p, '\n', from) : NULL;
	size_t line = last ? (size_t)(last - p) + 1 : 0;
	while (line < n) {
		const char *lf = memchr(p + line, '\n', n - line);
		if (!lf)
			return 0;
		size_t at = (size_t)(lf - p);
		if (at == line || p[at - 1] != '\r')
			return -EBADMSG;
		if (at == line + 1)
			return (ssize_t)(at + 1);
		line = at + 1;
	}
	return 0;
}

bool prescan_method_known(struct str m)
{
	switch (m.n) {
	case 3: return !memcmp(m.p, "GET", 3) || !memcmp(m.p, "PUT", 3);
	case 4: return !memcmp(m.p, "POST", 4) || !memcmp(m.p, "HEAD", 4);
	case 5: return !memcmp(m.p, "PATCH", 5) || !memcmp(m.p, "TRACE", 5);
	case 6: return !memcmp(m.p, "DELETE", 6);
	case 7: return !memcmp(m.p, "OPTIONS", 7);
	default: return false;
	}
}

bool prescan_authority_ok(struct str host)
{
	return host.n > 0 && host.n <= 300 && all_of(host, HOST);
}

bool prescan_target_ok(struct str t)
{
	return (t.n > 0 && t.p[0] == '/' && all_of(t, TARGET)) || str_is(t, "*");
}

static void head_refuse(struct prescan *s, int status, const char *code, const char *detail)
{
	s->status = status;
	s->code = code;
	s->detail = detail;
}

static void malformed(struct prescan *s, const char *detail)
{
	head_refuse(s, 400, "MALFORMED_REQUEST", detail);
}

static void scan_version(struct prescan *s, struct str v)
{
	bool shaped = v.n == 8 && !memcmp(v.p, "HTTP/", 5) && v.p[5] >= '0' && v.p[5] <= '9' && v.p[6] == '.' &&
	              v.p[7] >= '0' && v.p[7] <= '9';
	if (!shaped)
		malformed(s, "request line: must be METHOD SP TARGET SP HTTP/1.1.");
	else if (v.p[5] != '1' || v.p[7] > '1')
		head_refuse(s, 505, "HTTP_VERSION_NOT_SUPPORTED",
		            "HTTP version: must be 1.1 or 1.0 here, or 2 by ALPN.");
	else
		s->version = v.p[7] == '1' ? 11 : 10;
}

static void scan_target(struct prescan *s)
{
	struct str t = s->target;
	if (t.n > TARGET_MAX)
		head_refuse(s, 414, "URI_TOO_LONG", "request target: must be at most 8192 bytes.");
	else if (!all_of(t, TARGET))
		malformed(s, "request target: must be printable ASCII without '#'.");
	else if (!prescan_method_known(s->method))
		head_refuse(s, 501, "METHOD_NOT_IMPLEMENTED", "method: is not known here.");
	else if (t.n == 0 || (t.p[0] != '/' && !(t.n > 8 && !strncasecmp(t.p, "https://", 8)) &&
	                      !(str_is(t, "*") && str_is(s->method, "OPTIONS"))))
		malformed(s, "request target: must be a path that starts with '/'.");
}

static void scan_request_line(struct prescan *s, struct str line)
{
	const char *sp = memchr(line.p, ' ', line.n);
	if (!sp) {
		malformed(s, "request line: must be METHOD SP TARGET SP HTTP/1.1.");
		return;
	}
	s->method = (struct str){line.p, (size_t)(sp - line.p)};
	struct str rest = {sp + 1, line.n - s->method.n - 1};
	const char *last = memrchr(rest.p, ' ', rest.n);
	if (!last || s->method.n == 0 || !all_of(s->method, TOKEN)) {
		malformed(s, "request line: must be METHOD SP TARGET SP HTTP/1.1.");
		return;
	}
	s->target = (struct str){rest.p, (size_t)(last - rest.p)};
	scan_version(s, (struct str){last + 1, rest.n - s->target.n - 1});
	if (!s->status)
		scan_target(s);
}

static bool value_has_token(struct str value, const char *token)
{
	struct str item;
	while (value.n) {
		str_cut(value, ',', &item, &value);
		if (str_ieq(str_trim(item), str_of(token)))
			return true;
	}
	return false;
}

static void scan_length(struct prescan *s, struct str v)
{
	if (s->has_length)
		malformed(s, "Content-Length: must occur once.");
	else if (v.n > 19 || !str_to_u64(v, INT64_MAX, &s->content_length))
		malformed(s, "Content-Length: must be a decimal number.");
	s->has_length = true;
}

/* The fields that decide where the request ends and whether the connection is kept. */
static void scan_meaning(struct prescan *s, struct str name, struct str v, bool *closes, bool *keeps)
{
	switch (name.n) {
	case 4:
		if (!str_ieq(name, STR("host")))
			return;
		if (s->has_host)
			malformed(s, "Host: must occur once.");
		else if (!prescan_authority_ok(v))
			malformed(s, "Host: must be a host name with an optional port.");
		s->has_host = true;
		return;
	case 6:
		if (!str_ieq(name, STR("expect")))
			return;
		if (!str_ieq(v, STR("100-continue")))
			head_refuse(s, 417, "EXPECTATION_FAILED", "Expect: must be 100-continue.");
		s->expect_continue = true;
		return;
	case 10:
		if (str_ieq(name, STR("connection"))) {
			*closes |= value_has_token(v, "close");
			*keeps |= value_has_token(v, "keep-alive");
		}
		return;
	case 14:
		if (str_ieq(name, STR("content-length")))
			scan_length(s, v);
		return;
	case 17:
		if (!str_ieq(name, STR("transfer-encoding")))
			return;
		if (s->chunked || !str_ieq(v, STR("chunked")))
			malformed(s, "Transfer-Encoding: must be exactly chunked, once.");
		s->chunked = true;
		return;
	default: return;
	}
}

/* Splits and checks; NULL when fine. */
static const char *field_fault(struct str line, struct str *ret_name, struct str *ret_value)
{
	size_t i = 0;
	while (i < line.n && (classes[(unsigned char)line.p[i]] & TOKEN))
		i++;
	if (i == 0 && line.n && (line.p[0] == ' ' || line.p[0] == '\t'))
		return "header field: must not be folded over lines.";
	if (i == 0 || i == line.n || line.p[i] != ':')
		return "header field: its name must be letters, digits and hyphens, directly followed by ':'.";
	struct str value = {line.p + i + 1, line.n - i - 1};
	if (!value_ok(value))
		return "header field: its value must not hold control characters.";
	*ret_name = (struct str){line.p, i};
	*ret_value = str_trim(value);
	return NULL;
}

bool prescan_field_ok(struct str line)
{
	struct str name, value;
	return field_fault(line, &name, &value) == NULL;
}

static void scan_whole(struct prescan *s, bool closes, bool keeps)
{
	if (s->chunked && s->has_length)
		malformed(s, "Content-Length: must not come with Transfer-Encoding.");
	else if (s->chunked && s->version == 10)
		malformed(s, "Transfer-Encoding: must not come with HTTP/1.0.");
	else if (!s->has_host && s->version == 11)
		malformed(s, "Host: must be present.");
	if (s->version == 10)
		s->expect_continue = false;
	s->keep_alive = !closes && (s->version == 11 || keeps);
}

/* The next line without its CRLF; false at the end of the block or at a bare CR or LF. */
static bool next_line(struct str *block, struct str *ret_line)
{
	const char *lf = memchr(block->p, '\n', block->n);
	if (!lf || lf == block->p || lf[-1] != '\r')
		return false;
	*ret_line = (struct str){block->p, (size_t)(lf - block->p) - 1};
	block->n -= (size_t)(lf + 1 - block->p);
	block->p = lf + 1;
	return true;
}

void prescan(struct str block, unsigned header_count_max, struct prescan *ret)
{
	struct prescan s = {0};
	struct str line, name, value;
	bool closes = false, keeps = false;
	if (!next_line(&block, &line))
		malformed(&s, "header block: lines must end with CR LF.");
	else
		scan_request_line(&s, line);
	while (!s.status) {
		if (!next_line(&block, &line)) {
			malformed(&s, "header block: lines must end with CR LF.");
			break;
		}
		if (line.n == 0)
			break;
		const char *fault = field_fault(line, &name, &value);
		if (fault)
			malformed(&s, fault);
		else if (++s.header_count > header_count_max)
			head_refuse(&s, 431, "HEADER_TOO_LARGE", "header block: has too many fields.");
		else
			scan_meaning(&s, name, value, &closes, &keeps);
	}
	if (!s.status && block.n)
		malformed(&s, "header block: must end with one empty line.");
	if (!s.status)
		scan_whole(&s, closes, keeps);
	*ret = s;
}

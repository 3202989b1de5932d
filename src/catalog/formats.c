/* Formats are checked by hand, not by pattern: they run on every body, and each takes a few comparisons. E-mail
 * addresses and URIs may use what the RFCs allow in practice. Quoted local parts and address literals are refused,
 * because the servers that we send mail to do not accept them. */
#include "catalog/formats.h"

#include "base/buf.h"
#include "base/clock.h"
#include "catalog/schema.h"

#include <curl/curl.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool date_fits(struct str t)
{
	int64_t ms;
	return t.n == 10 && t.p[4] == '-' && t.p[7] == '-' && clock_parse(t, &ms);
}

static bool date_time_fits(struct str t)
{
	int64_t ms;
	return clock_parse(t, &ms);
}

static bool uuid_fits(struct str t)
{
	if (t.n != 36)
		return false;
	for (size_t i = 0; i < t.n; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? t.p[i] != '-' : !is_hex(t.p[i]))
			return false;
	}
	return true;
}

static bool host_fits(struct str t)
{
	size_t label = 0;
	if (t.n == 0 || t.n > 253)
		return false;
	for (size_t i = 0; i < t.n; i++) {
		char c = t.p[i];
		if (c == '.') {
			if (label == 0 || t.p[i - 1] == '-')
				return false;
			label = 0;
		} else if (is_letter(c) || is_digit(c) || (c & 0x80) || (c == '-' && label)) {
			if (++label > 63)
				return false;
		} else {
			return false;
		}
	}
	return label && t.p[t.n - 1] != '-';
}

bool domain_fits(struct str t)
{
	const char *dot = t.n ? memrchr(t.p, '.', t.n) : NULL;
	bool letter = false;
	for (size_t i = 0; i < t.n; i++) {
		if ((unsigned char)t.p[i] > '~')
			return false;
		letter = letter || (dot && t.p + i > dot && is_letter(t.p[i]));
	}
	return letter && host_fits(t);
}

static bool email_fits(struct str t)
{
	const char *at = t.n && t.n <= 254 ? memrchr(t.p, '@', t.n) : NULL;
	if (!at)
		return false;
	struct str local = {t.p, (size_t)(at - t.p)};
	if (local.n == 0 || local.n > 64 || local.p[0] == '.' || local.p[local.n - 1] == '.')
		return false;
	for (size_t i = 0; i < local.n; i++) {
		char c = local.p[i];
		if (c == '.' && local.p[i + 1] == '.')
			return false;
		if (!is_letter(c) && !is_digit(c) && !(c & 0x80) && (c == 0 || !strchr(".!#$%&'*+/=?^_`{|}~-", c)))
			return false;
	}
	return host_fits((struct str){at + 1, t.n - local.n - 1});
}

static bool uri_fits(struct str t)
{
	size_t i = 0;
	if (t.n == 0 || !is_letter(t.p[0]))
		return false;
	while (i < t.n && (is_letter(t.p[i]) || is_digit(t.p[i]) || t.p[i] == '+' || t.p[i] == '-' || t.p[i] == '.'))
		i++;
	if (i + 1 >= t.n || t.p[i] != ':')
		return false;
	for (i++; i < t.n; i++) {
		unsigned char c = (unsigned char)t.p[i];
		if (c == '%') {
			if (t.n - i < 3 || !is_hex(t.p[i + 1]) || !is_hex(t.p[i + 2]))
				return false;
		} else if (c <= ' ' || c >= 0x7f || strchr("\"<>\\^`{|}", c)) {
			return false;
		}
	}
	return true;
}

bool https_url_fits(struct arena *a, struct str text, bool bare)
{
	char *scheme = NULL, *part = NULL;
	CURLU *u = uri_fits(text) ? curl_url() : NULL;
	bool fits = u && curl_url_set(u, CURLUPART_URL, arena_z(a, text), 0) == CURLUE_OK &&
	            curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK && str_ieq(str_of(scheme), STR("https"));
	static const CURLUPart unwanted[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_FRAGMENT, CURLUPART_QUERY};
	for (size_t i = 0; fits && i < (bare ? 4u : 3u); i++)
		if (curl_url_get(u, unwanted[i], &part, 0) == CURLUE_OK) {
			curl_free(part);
			fits = false;
		}
	curl_free(scheme);
	curl_url_cleanup(u);
	return fits;
}

bool format_fits(unsigned format, struct str text)
{
	switch (format) {
	case FORMAT_DATE_TIME: return date_time_fits(text);
	case FORMAT_DATE: return date_fits(text);
	case FORMAT_EMAIL: return email_fits(text);
	case FORMAT_UUID: return uuid_fits(text);
	case FORMAT_URI: return uri_fits(text);
	default: return true;
	}
}

const char *format_rule(unsigned format)
{
	switch (format) {
	case FORMAT_DATE_TIME: return "must be an ISO 8601 date and time";
	case FORMAT_DATE: return "must be a date such as 2026-01-31";
	case FORMAT_EMAIL: return "must be an e-mail address";
	case FORMAT_UUID: return "must be a UUID";
	case FORMAT_URI: return "must be a URI such as https://example.com/path";
	default: return NULL;
	}
}

/* Length of the character that starts with byte `c`, and the smallest code point that needs so many bytes; 0 when no
 * character starts with it. */
static size_t utf8_lead(unsigned char c, uint32_t *ret_least)
{
	*ret_least = c < 0xe0 ? 0x80 : c < 0xf0 ? 0x800 : 0x10000;
	return c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
}

bool utf8_is_valid(struct str text)
{
	const unsigned char *p = (const unsigned char *)text.p;
	for (size_t i = 0; i < text.n;) {
		if (p[i] < 0x80) {
			i++;
			continue;
		}
		uint32_t least, code;
		size_t n = utf8_lead(p[i], &least);
		if (n == 0 || text.n - i < n)
			return false;
		code = p[i] & (0xffu >> (n + 1));
		for (size_t k = 1; k < n; k++) {
			if ((p[i + k] & 0xc0) != 0x80)
				return false;
			code = code << 6 | (p[i + k] & 0x3f);
		}
		if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
			return false;
		i += n;
	}
	return true;
}

struct str utf8_shown(struct arena *a, struct str text)
{
	struct buf b = {0};
	if (utf8_is_valid(text))
		return text;
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < 0x80)
			buf_c(&b, text.p[i]);
		else
			buf_printf(&b, "\\x%02x", (unsigned char)text.p[i]);
	struct str shown = arena_dup(a, buf_view(&b));
	buf_free(&b);
	return shown;
}

size_t utf8_length(struct str text)
{
	size_t n = 0;
	for (size_t i = 0; i < text.n; i++)
		n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
	return n;
}

struct str utf8_prefix(struct str text, size_t max)
{
	if (text.n <= max)
		return text;
	while (max > 0 && ((unsigned char)text.p[max] & 0xc0) == 0x80)
		max--;
	return (struct str){text.p, max};
}
